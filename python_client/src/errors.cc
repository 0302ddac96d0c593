// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/errors.h"

#include <cstdarg>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/session.h"
#include "python_client/src/source_lines.h"

namespace holdfast::python {
namespace {

// In the order of kNames.
enum ErrorClass {
  kOpError,
  kLinAlgError,
  kIndexError,
  kOutOfMemory,
  kDataLoss,
  kUnavailable,
  kTimeout,
  kUnsupported,
  kSessionError,
  kNotFound,
  kInternal,
  kCancelledError,
  kNumErrorClasses
};
constexpr const char* kNames[kNumErrorClasses] = {
    "OpError",
    "LinAlgError",
    "OutOfRangeError",
    "OutOfMemoryError",
    "DataLossError",
    "DaemonUnavailableError",
    "DaemonTimeoutError",
    "UnsupportedError",
    "SessionError",
    "NotFoundError",
    "InternalError",
    "CancelledError",
};
PyObject* g_classes[kNumErrorClasses];

PyObject* ClassOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return g_classes[kOpError];
    case absl::StatusCode::kOutOfRange:
      return g_classes[kIndexError];
    case absl::StatusCode::kResourceExhausted:
      return g_classes[kOutOfMemory];
    case absl::StatusCode::kDataLoss:
      return g_classes[kDataLoss];
    case absl::StatusCode::kUnavailable:
      return g_classes[kUnavailable];
    case absl::StatusCode::kDeadlineExceeded:
      return g_classes[kTimeout];
    case absl::StatusCode::kUnimplemented:
      return g_classes[kUnsupported];
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return g_classes[kSessionError];
    case absl::StatusCode::kNotFound:
      return g_classes[kNotFound];
    case absl::StatusCode::kCancelled:
      return PyExc_KeyboardInterrupt;
    default:
      return g_classes[kInternal];
  }
}

// Whether a wrong index among its elements is a RuntimeError in PyTorch, and no
// IndexError as in an expression with brackets.
bool IndexIsAnArgument(absl::string_view op) {
  return op == "gather" || op == "ctc_loss" || absl::StartsWith(op, "scatter");
}

// A failed attribute assignment loses a detail, never the error itself.
void SetDetail(PyObject* error, const char* name, PyObject* owned_value) {
  PyRef value(owned_value);
  if (!value || PyObject_SetAttrString(error, name, value.get()) < 0) {
    PyErr_Clear();
  }
}

}  // namespace

bool ImportErrorClasses() {
  PyRef module(PyImport_ImportModule("holdfast.errors"));
  if (!module) return false;
  for (int i = 0; i < kNumErrorClasses; ++i) {
    g_classes[i] = PyObject_GetAttrString(module.get(), kNames[i]);
    if (g_classes[i] == nullptr) return false;
  }
  return true;
}

PyObject* RaiseStatus(const absl::Status& status) {
  if (PyErr_Occurred() != nullptr) return nullptr;
  // Ctrl-C ended a wait: its handler's turn has come.
  if (absl::IsCancelled(status) && PyErr_CheckSignals() != 0) return nullptr;
  PyObject* type = ClassOf(status.code());
  std::string message(status.message());
  const client::OpFailure failure = client::OpFailureOf(status);
  // The op was called back; else it is a wait that Ctrl-C ended.
  if (!failure.op.empty() && absl::IsCancelled(status)) {
    type = g_classes[kCancelledError];
  }
  // The session is well: it is the op that must not be called so.
  if (!failure.op.empty() && type == g_classes[kSessionError]) {
    type = g_classes[kOpError];
  }
  // What such an op finds out about its matrices on the daemon. Shapes and
  // types were refused before.
  if (absl::StartsWith(failure.op, "linalg_") && type == g_classes[kOpError]) {
    type = g_classes[kLinAlgError];
  }
  if (type == g_classes[kIndexError] && IndexIsAnArgument(failure.op)) {
    type = g_classes[kOpError];
  }
  SourceLine line;
  if (!failure.op.empty()) {
    if (FindSourceLine(failure.op_sequence, &line)) {
      message = absl::StrReplaceAll(message, line.wording);
      absl::StrAppend(&message, " (op #", failure.op_sequence,
                      ", submitted at ", PlaceText(line.filename, line.number),
                      ")");
    } else {
      absl::StrAppend(&message, " (op #", failure.op_sequence, ")");
    }
  }
  if (failure.forward_op_sequence != 0) {
    SourceLine forward;
    if (FindSourceLine(failure.forward_op_sequence, &forward)) {
      absl::StrAppend(&message, " (the forward op #",
                      failure.forward_op_sequence, " was submitted at ",
                      PlaceText(forward.filename, forward.number), ")");
    } else {
      absl::StrAppend(&message, " (the forward op was #",
                      failure.forward_op_sequence,
                      "; holdfast.autograd.set_detect_anomaly(True) tells "
                      "the line)");
    }
  }
  if (!failure.trace_id.empty()) {
    absl::StrAppend(&message, " [trace ", failure.trace_id, "]");
  }
  PyRef text(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (!text) return nullptr;
  PyRef error(PyObject_CallFunctionObjArgs(type, text.get(), nullptr));
  if (!error) return nullptr;
  if (!failure.op.empty()) {
    SetDetail(error.get(), "op", PyUnicode_FromString(failure.op.c_str()));
    SetDetail(error.get(), "op_sequence",
              PyLong_FromUnsignedLongLong(failure.op_sequence));
    SetDetail(error.get(), "forward_op_sequence",
              PyLong_FromUnsignedLongLong(failure.forward_op_sequence));
    if (line.number != 0) {
      SetDetail(error.get(), "filename",
                PyUnicode_FromString(line.filename.c_str()));
      SetDetail(error.get(), "lineno", PyLong_FromLong(line.number));
    }
  }
  if (!failure.trace_id.empty()) {
    SetDetail(error.get(), "trace_id",
              PyUnicode_FromString(failure.trace_id.c_str()));
  }
  PyErr_SetObject(type, error.get());
  return nullptr;
}

PyObject* RaiseUnsupported(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyRef text(PyUnicode_FromFormatV(format, arguments));
  va_end(arguments);
  if (text) PyErr_SetObject(g_classes[kUnsupported], text.get());
  return nullptr;
}

}  // namespace holdfast::python
