// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/admin_binding.h"

#include <string>

#include "client/admin.h"
#include "python_client/src/errors.h"
#include "python_client/src/version.h"

namespace holdfast::python {
namespace {

// (address, request as JSON, timeout in seconds, credentials) -> answer as JSON
PyObject* AskAdminFunction(PyObject*, PyObject* args) {
  const char* address = "";
  const char* request = "";
  PyObject* credentials = nullptr;
  client::ConnectOptions options;
  options.client = kClientName;
  if (!PyArg_ParseTuple(args, "ssdO", &address, &request,
                        &options.timeout_seconds, &credentials) ||
      !ReadCredentials(credentials, &options.credentials)) {
    return nullptr;
  }
  options.address = address;
  absl::StatusOr<std::string> answer;
  {
    ScopedGilRelease unlocked;
    answer = client::AskAdmin(options, request);
  }
  if (!answer.ok()) return RaiseStatus(answer.status());
  return PyUnicode_FromStringAndSize(answer->data(),
                                     static_cast<Py_ssize_t>(answer->size()));
}

// (address, timeout in seconds) -> a serialized StatsReply
PyObject* AskStatsFunction(PyObject*, PyObject* args) {
  const char* address = "";
  client::ConnectOptions options;
  if (!PyArg_ParseTuple(args, "sd", &address, &options.timeout_seconds)) {
    return nullptr;
  }
  options.address = address;
  absl::StatusOr<std::string> answer;
  {
    ScopedGilRelease unlocked;
    answer = client::AskStats(options);
  }
  if (!answer.ok()) return RaiseStatus(answer.status());
  return PyBytes_FromStringAndSize(answer->data(),
                                   static_cast<Py_ssize_t>(answer->size()));
}

}  // namespace

bool ReadCredentials(PyObject* tuple, client::Credentials* credentials) {
  const char *token = "", *ca = "", *certificate = "", *key = "";
  int plaintext = 0;
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "credentials must be a tuple");
    return false;
  }
  if (!PyArg_ParseTuple(tuple, "ssssp", &token, &ca, &certificate, &key,
                        &plaintext)) {
    return false;
  }
  *credentials = {token, ca, certificate, key, plaintext != 0};
  return true;
}

void AppendAdminFunctions(std::vector<PyMethodDef>* functions) {
  functions->push_back({"ask_admin", AskAdminFunction, METH_VARARGS, nullptr});
  functions->push_back({"ask_stats", AskStatsFunction, METH_VARARGS, nullptr});
}

}  // namespace holdfast::python
