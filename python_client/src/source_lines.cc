// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/source_lines.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/session.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

// Far more than a stream holds between two reads of a training step.
constexpr size_t kRingSize = 1 << 16;

// The place in the code; its line is looked up when somebody asks, which takes
// longer than an op.
struct Entry {
  uint64_t sequence = 0;
  PyObject* code = nullptr;     // owned
  int instruction = 0;          // frame.f_lasti, bytes
  PyObject* wording = nullptr;  // owned, or null: a tuple of pairs
};

std::vector<Entry>* g_ring;
std::string* g_package;  // "/…/holdfast/"
bool g_every_line = false;
PyObject* g_f_lasti;
PyObject* g_f_back;
PyObject* g_note_ops;  // anomaly mode's, or null

// The UTF-8 of a str, or "" with no Python error set.
std::string Utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    PyErr_Clear();
    return "";
  }
  return std::string(data, static_cast<size_t>(size));
}

// Whether code is the user's and not of the package. Remembered per code
// object, by which most ops of a program come from few.
bool IsUsers(PyObject* code) {
  struct Known {
    PyObject* code = nullptr;  // owned, so that the address stays its own
    bool users = false;
  };
  constexpr size_t kKnown = 256;
  static auto* known = new std::vector<Known>(kKnown);
  Known& entry = (*known)[(reinterpret_cast<uintptr_t>(code) >> 5) % kKnown];
  if (entry.code == code) return entry.users;
  PyRef filename(PyObject_GetAttrString(code, "co_filename"));
  if (!filename) PyErr_Clear();
  const bool users = g_package->empty() || !filename ||
                     !absl::StartsWith(Utf8(filename.get()), *g_package);
  PyRef old(entry.code);
  entry = {PyRef::Borrowed(code).release(), users};
  return users;
}

// The line of the instruction at byte `instruction`; 0 if unknown.
int LineOf(PyObject* code, int instruction) {
  // Triples (first byte, end, line), in order.
  PyRef lines(PyObject_CallMethod(code, "co_lines", nullptr));
  PyRef iterator(lines ? PyObject_GetIter(lines.get()) : nullptr);
  while (iterator) {
    PyRef item(PyIter_Next(iterator.get()));
    if (!item) break;
    int first = 0, end = 0;
    PyObject* line = nullptr;
    if (!PyArg_ParseTuple(item.get(), "iiO", &first, &end, &line)) break;
    if (instruction < first || instruction >= end) continue;
    return line == Py_None ? 0 : static_cast<int>(PyLong_AsLong(line));
  }
  PyErr_Clear();
  return 0;
}

}  // namespace

void InitSourceLines() {
  g_f_lasti = PyUnicode_InternFromString("f_lasti");
  g_f_back = PyUnicode_InternFromString("f_back");
  g_ring = new std::vector<Entry>(kRingSize);
  g_package = new std::string;
  const char* every = std::getenv("HOLDFAST_SOURCE_LINES");
  g_every_line = every != nullptr && *every != '\0' && *every != '0';
  PyRef errors(PyImport_ImportModule("holdfast.errors"));
  PyRef file(errors ? PyObject_GetAttrString(errors.get(), "__file__")
                    : nullptr);
  if (!file) {
    PyErr_Clear();
    return;
  }
  *g_package = Utf8(file.get());
  g_package->resize(g_package->rfind('/') + 1);
}

bool NoteEveryLine() { return g_every_line || g_note_ops != nullptr; }

PyObject* SetNoteOps(PyObject*, PyObject* callable) {
  PyRef old(g_note_ops);
  g_note_ops =
      callable == Py_None ? nullptr : PyRef::Borrowed(callable).release();
  Py_RETURN_NONE;
}

std::string PlaceText(const std::string& filename, int number) {
  PyRef errors(PyImport_ImportModule("holdfast.errors"));
  PyRef place(errors ? PyObject_CallMethod(errors.get(), "place", "si",
                                           filename.c_str(), number)
                     : nullptr);
  if (place && PyUnicode_Check(place.get())) return Utf8(place.get());
  PyErr_Clear();
  return absl::StrCat(filename, ":", number);
}

std::string CallersLine() {
  PyRef frame = PyRef::Borrowed(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* typed = reinterpret_cast<PyFrameObject*>(frame.get());
    PyRef code(reinterpret_cast<PyObject*>(PyFrame_GetCode(typed)));
    if (IsUsers(code.get())) {
      PyRef filename(PyObject_GetAttrString(code.get(), "co_filename"));
      if (!filename) break;
      return PlaceText(Utf8(filename.get()), PyFrame_GetLineNumber(typed));
    }
    PyRef back(PyObject_GetAttr(frame.get(), g_f_back));
    if (!back || back.get() == Py_None) break;
    frame = std::move(back);
  }
  PyErr_Clear();
  return "";
}

void NoteSourceLine(uint64_t sequence) {
  if (g_note_ops != nullptr) {
    PyRef number(PyLong_FromUnsignedLongLong(sequence));
    PyRef done(
        number ? PyObject_CallFunctionObjArgs(g_note_ops, number.get(), nullptr)
               : nullptr);
    if (!done) PyErr_Clear();
  }
  PyRef frame = PyRef::Borrowed(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* typed = reinterpret_cast<PyFrameObject*>(frame.get());
    PyRef code(reinterpret_cast<PyObject*>(PyFrame_GetCode(typed)));
    if (IsUsers(code.get())) {
      PyRef instruction(PyObject_GetAttr(frame.get(), g_f_lasti));
      if (!instruction) break;
      Entry& entry = (*g_ring)[sequence % kRingSize];
      PyRef old(entry.code);
      entry.sequence = sequence;
      entry.instruction = static_cast<int>(PyLong_AsLong(instruction.get()));
      entry.code = code.release();
      PyRef wording(std::exchange(entry.wording, nullptr));
      return;
    }
    PyRef back(PyObject_GetAttr(frame.get(), g_f_back));
    if (!back || back.get() == Py_None) break;
    frame = std::move(back);
  }
  PyErr_Clear();
}

bool FindSourceLine(uint64_t sequence, SourceLine* line) {
  const Entry& entry = (*g_ring)[sequence % kRingSize];
  if (entry.sequence != sequence || entry.code == nullptr) return false;
  PyRef filename(PyObject_GetAttrString(entry.code, "co_filename"));
  line->filename = filename ? Utf8(filename.get()) : "";
  line->number = LineOf(entry.code, entry.instruction);
  const Py_ssize_t pairs =
      entry.wording == nullptr ? 0 : PyTuple_Size(entry.wording);
  for (Py_ssize_t i = 0; i < pairs; ++i) {
    const char *old_text = nullptr, *text = nullptr;
    if (PyArg_ParseTuple(PyTuple_GetItem(entry.wording, i), "ss", &old_text,
                         &text)) {
      line->wording.emplace_back(old_text, text);
    }
  }
  PyErr_Clear();
  return true;
}

PyObject* Reword(PyObject*, PyObject* args) {
  PyObject *result = nullptr, *wording = nullptr;
  if (!PyArg_ParseTuple(args, "OO!", &result, &PyTuple_Type, &wording)) {
    return nullptr;
  }
  if (IsTensor(result)) {
    const uint64_t sequence = TensorOf(result)->session()->last_op_sequence();
    Entry& entry = (*g_ring)[sequence % kRingSize];
    if (entry.sequence == sequence) {
      PyRef old(
          std::exchange(entry.wording, PyRef::Borrowed(wording).release()));
    }
  }
  return PyRef::Borrowed(result).release();
}

}  // namespace holdfast::python
