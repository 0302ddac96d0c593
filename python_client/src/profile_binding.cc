// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/profile_binding.h"

#include <string>
#include <vector>

#include "client/profile.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"

namespace holdfast::python {

using client::Execution;
using client::Kernel;
using client::Profile;
using client::ProfiledKind;
using client::Submission;

namespace {

const char* KindName(ProfiledKind kind) {
  switch (kind) {
    case ProfiledKind::kOp:
      return "op";
    case ProfiledKind::kPut:
      return "put";
    case ProfiledKind::kBackward:
      return "backward";
    case ProfiledKind::kRead:
      return "read";
    case ProfiledKind::kWait:
      return "wait";
  }
  return "";
}

PyObject* FromSubmission(const Submission& submission) {
  const char* kind = KindName(submission.kind);
  std::string name = kind;
  if (submission.kind == ProfiledKind::kOp) {
    name = GetOp(static_cast<OpId>(submission.op)).name;
    if (submission.inplace) name += "_";
  }
  return Py_BuildValue("(ssKiLL)", kind, name.c_str(),
                       static_cast<unsigned long long>(submission.sequence),
                       static_cast<int>(submission.thread),
                       static_cast<long long>(submission.begin_ns),
                       static_cast<long long>(submission.end_ns));
}

PyObject* FromShapes(const std::vector<Dims>& shapes) {
  PyRef list(PyList_New(static_cast<Py_ssize_t>(shapes.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < shapes.size(); ++i) {
    PyObject* sizes = PyList_New(static_cast<Py_ssize_t>(shapes[i].size()));
    if (sizes == nullptr) return nullptr;
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), sizes);
    for (size_t j = 0; j < shapes[i].size(); ++j) {
      PyObject* size = PyLong_FromLongLong(shapes[i][j]);
      if (size == nullptr) return nullptr;
      PyList_SetItem(sizes, static_cast<Py_ssize_t>(j), size);
    }
  }
  return list.release();
}

PyObject* FromExecution(const Execution& execution) {
  PyRef shapes(FromShapes(execution.input_shapes));
  if (!shapes) return nullptr;
  std::string name = execution.name;
  if (execution.inplace) name += "_";
  // PyBool_FromLong's are new references, "N" takes them.
  return Py_BuildValue(
      "(ssKKNNLLLKN)", KindName(execution.kind), name.c_str(),
      static_cast<unsigned long long>(execution.sequence),
      static_cast<unsigned long long>(execution.forward_sequence),
      PyBool_FromLong(execution.in_backward), PyBool_FromLong(execution.failed),
      static_cast<long long>(execution.start_ns),
      static_cast<long long>(execution.duration_ns),
      static_cast<long long>(execution.waited_ns),
      static_cast<unsigned long long>(execution.output_bytes),
      shapes.release());
}

PyObject* FromKernel(const Kernel& kernel) {
  return Py_BuildValue("(ssKLL)", kernel.name.c_str(), kernel.stream.c_str(),
                       static_cast<unsigned long long>(kernel.sequence),
                       static_cast<long long>(kernel.start_ns),
                       static_cast<long long>(kernel.duration_ns));
}

template <typename T>
PyObject* FromList(const std::vector<T>& items,
                   PyObject* (*convert)(const T&)) {
  PyRef list(PyList_New(static_cast<Py_ssize_t>(items.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* item = convert(items[i]);
    if (item == nullptr) return nullptr;
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

}  // namespace

PyObject* StartProfile(client::Session& session, PyObject* args) {
  client::ProfileOptions options;
  int shapes = 0;
  unsigned long long max_records = 0;
  if (!PyArg_ParseTuple(args, "pK", &shapes, &max_records)) return nullptr;
  options.shapes = shapes != 0;
  options.max_records = max_records;
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = session.StartProfile(options, Interrupted);
  }
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

PyObject* StopProfile(client::Session& session) {
  absl::StatusOr<Profile> profile;
  {
    ScopedGilRelease unlocked;
    profile = session.StopProfile(Interrupted);
  }
  if (!profile.ok()) return RaiseStatus(profile.status());
  PyRef submissions(FromList(profile->submissions, FromSubmission));
  if (!submissions) return nullptr;
  PyRef executions(FromList(profile->executions, FromExecution));
  if (!executions) return nullptr;
  PyRef kernels(FromList(profile->kernels, FromKernel));
  if (!kernels) return nullptr;
  return Py_BuildValue(
      "{sNsNsNsKsKsKsLsL}", "submissions", submissions.release(), "executions",
      executions.release(), "kernels", kernels.release(), "dropped_submissions",
      static_cast<unsigned long long>(profile->dropped_submissions),
      "dropped_executions",
      static_cast<unsigned long long>(profile->dropped_executions),
      "dropped_kernels",
      static_cast<unsigned long long>(profile->dropped_kernels),
      "clock_offset_ns", static_cast<long long>(profile->clock_offset_ns),
      "clock_error_ns", static_cast<long long>(profile->clock_error_ns));
}

}  // namespace holdfast::python
