// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/user_code_binding.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/session.h"
#include "python_client/src/autograd_binding.h"
#include "python_client/src/call.h"
#include "python_client/src/errors.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Tensor;

namespace {

// Objects whose last holder went away where no Python may run: with the
// session's lock held, on a thread without the GIL. Dropped soon after.
std::mutex g_dead_mutex;
std::vector<PyObject*>* g_dead;

int DropDead(void*) {
  std::vector<PyObject*> dead;
  {
    std::lock_guard<std::mutex> lock(g_dead_mutex);
    if (g_dead != nullptr) dead.swap(*g_dead);
  }
  for (PyObject* object : dead) Py_DECREF(object);
  return 0;
}

void DropLater(PyObject* object) {
  if (Py_IsInitialized() == 0) return;
  {
    std::lock_guard<std::mutex> lock(g_dead_mutex);
    if (g_dead == nullptr) g_dead = new std::vector<PyObject*>;
    g_dead->push_back(object);
  }
  // Fails when many are pending; one of those drops this one too.
  static_cast<void>(Py_AddPendingCall(DropDead, nullptr));
}

// What the code raised, until the call of backward that ran it returns.
struct Raised {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
};
thread_local Raised g_raised;

bool AsTensors(PyObject* tuple, std::vector<Tensor>* out) {
  const Py_ssize_t size = PyTuple_Size(tuple);
  if (size < 0) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    if (item != Py_None && !IsTensor(item)) {
      PyErr_Format(PyExc_TypeError,
                   "expected Tensors or None as gradients. Got %R at index %zd",
                   reinterpret_cast<PyObject*>(Py_TYPE(item)), i);
      return false;
    }
    out->push_back(item == Py_None ? Tensor() : TensorOf(item));
  }
  return true;
}

class PythonCode final : public client::UserCode {
 public:
  PythonCode(PyRef object, PyRef callable, std::string name)
      : object_(std::move(object)),
        callable_(std::move(callable)),
        name_(std::move(name)) {}
  ~PythonCode() override {
    DropLater(callable_.release());
    if (object_) DropLater(object_.release());
  }

  absl::Status Run(absl::Span<const Tensor> gradients, bool create_graph,
                   std::vector<Tensor>* results) override {
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool enabled = SetGradEnabled(create_graph);
    const bool ran = RunHere(gradients, results);
    SetGradEnabled(enabled);
    if (!ran) {
      PyErr_Fetch(&g_raised.type, &g_raised.value, &g_raised.traceback);
      results->clear();
    }
    PyGILState_Release(state);
    if (ran) return absl::OkStatus();
    return absl::AbortedError("[backward] the user's code raised an error");
  }
  std::string name() const override { return name_; }
  PyObject* object() const { return object_.get(); }

 private:
  bool RunHere(absl::Span<const Tensor> gradients,
               std::vector<Tensor>* results) {
    PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(gradients.size())));
    if (!tuple) return false;
    for (size_t i = 0; i < gradients.size(); ++i) {
      PyObject* item = gradients[i] ? WrapTensor(gradients[i])
                                    : PyRef::Borrowed(Py_None).release();
      if (item == nullptr) return false;
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
    }
    PyRef answer(
        PyObject_CallFunctionObjArgs(callable_.get(), tuple.get(), nullptr));
    return answer && AsTensors(answer.get(), results);
  }

  PyRef object_;
  PyRef callable_;
  const std::string name_;
};

}  // namespace

PyObject* ObjectOf(const client::UserCode& code) {
  const auto* python = dynamic_cast<const PythonCode*>(&code);
  return python == nullptr ? nullptr : python->object();
}

std::shared_ptr<client::UserCode> MakeUserCode(PyRef callable,
                                               std::string name) {
  return std::make_shared<PythonCode>(PyRef(), std::move(callable),
                                      std::move(name));
}

bool RaiseFromUserCode() {
  if (g_raised.type == nullptr) return false;
  PyErr_Restore(g_raised.type, g_raised.value, g_raised.traceback);
  g_raised = Raised();
  return true;
}

PyObject* RecordFunction(PyObject*, PyObject* args) {
  PyObject *context, *inputs_tuple, *outputs_tuple, *written_tuple,
      *behind_tuple;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "OsO!O!O!O!", &context, &name, &PyTuple_Type,
                        &inputs_tuple, &PyTuple_Type, &outputs_tuple,
                        &PyTuple_Type, &written_tuple, &PyTuple_Type,
                        &behind_tuple)) {
    return nullptr;
  }
  std::vector<Tensor> inputs, outputs, behind;
  if (!AsTensors(inputs_tuple, &inputs) ||
      !AsTensors(outputs_tuple, &outputs) ||
      !AsTensors(behind_tuple, &behind)) {
    return nullptr;
  }
  std::vector<bool> written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    PyObject* item = PyTuple_GetItem(written_tuple, static_cast<Py_ssize_t>(i));
    if (item == nullptr) return nullptr;
    written.push_back(item == Py_True);
  }
  PyRef run(PyObject_GetAttrString(context, "_run"));
  if (!run) return nullptr;
  client::Session* session = nullptr;
  for (const Tensor& output : outputs) {
    if (output) session = output->session().get();
  }
  if (session == nullptr) return PyLong_FromLong(0);
  auto code = std::make_shared<PythonCode>(PyRef::Borrowed(context),
                                           std::move(run), name);
  const absl::StatusOr<int64_t> leaves = session->RecordFunction(
      std::move(code), inputs, outputs, written, behind);
  if (!leaves.ok()) return RaiseStatus(leaves.status());
  return PyLong_FromLongLong(*leaves);
}

PyObject* RegisterHook(PyObject*, PyObject* args) {
  PyObject *object, *callable;
  if (!PyArg_ParseTuple(args, "O!O", g_tensor_type, &object, &callable)) {
    return nullptr;
  }
  const Tensor& tensor = TensorOf(object);
  const absl::StatusOr<uint64_t> number = tensor->session()->RegisterHook(
      tensor, MakeUserCode(PyRef::Borrowed(callable), "hook"));
  if (!number.ok()) return RaiseStatus(number.status());
  return PyLong_FromUnsignedLongLong(*number);
}

PyObject* RemoveHook(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  unsigned long long number = 0;  // NOLINT(google-runtime-int): PyArg's type
  if (!PyArg_ParseTuple(args, "O!K", g_tensor_type, &object, &number)) {
    return nullptr;
  }
  const Tensor& tensor = TensorOf(object);
  tensor->session()->RemoveHook(tensor, number);
  Py_RETURN_NONE;
}

PyObject* RestoreOutput(PyObject*, PyObject* args) {
  PyObject *object, *context;
  unsigned int output = 0;
  if (!PyArg_ParseTuple(args, "O!OI", g_tensor_type, &object, &context,
                        &output)) {
    return nullptr;
  }
  const Tensor& tensor = TensorOf(object);
  const absl::Status status = tensor->session()->RestoreOutput(
      tensor,
      [context](const client::UserCode& code) {
        return ObjectOf(code) == context;
      },
      output);
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

}  // namespace holdfast::python
