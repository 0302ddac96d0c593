// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/source_lines.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace holdfast::python {
namespace {

// Far more than a stream holds between two reads of a training step.
constexpr size_t kRingSize = 1 << 16;

struct Entry {
  uint64_t sequence = 0;
  PyObject* filename = nullptr;  // owned; code objects share these strings
  int number = 0;
};

std::vector<Entry>* g_ring;
std::string* g_package;  // "/…/holdfast/"
bool g_every_line = false;
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

}  // namespace

void InitSourceLines() {
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
    PyRef filename(PyObject_GetAttrString(code.get(), "co_filename"));
    if (!filename) break;
    if (g_package->empty() ||
        !absl::StartsWith(Utf8(filename.get()), *g_package)) {
      Entry& entry = (*g_ring)[sequence % kRingSize];
      PyRef old(entry.filename);
      entry.sequence = sequence;
      entry.number = PyFrame_GetLineNumber(typed);
      entry.filename = filename.release();
      return;
    }
    PyRef back(PyObject_GetAttrString(frame.get(), "f_back"));
    if (!back || back.get() == Py_None) break;
    frame = std::move(back);
  }
  PyErr_Clear();
}

bool FindSourceLine(uint64_t sequence, SourceLine* line) {
  const Entry& entry = (*g_ring)[sequence % kRingSize];
  if (entry.sequence != sequence || entry.filename == nullptr) return false;
  line->filename = Utf8(entry.filename);
  line->number = entry.number;
  return true;
}

}  // namespace holdfast::python
