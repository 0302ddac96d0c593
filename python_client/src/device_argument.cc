// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/device_argument.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/meta_session.h"
#include "python_client/src/call.h"
#include "python_client/src/default_session.h"
#include "python_client/src/errors.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Session;
using client::Tensor;

namespace {

int g_default_device = 0;
int g_current_gpu = 0;  // torch.cuda.current_device()
// Of a thread: one that waits for a large upload lets others run.
thread_local int g_put_device = 0;

bool RaiseForm() {
  PyErr_SetString(PyExc_TypeError,
                  "device must be a holdfast.device, a str or an int");
  return false;
}

// Type and index (-1: none) of a str, or of an object with such attributes.
bool TakeApart(PyObject* device, std::string* type, int* index) {
  *index = -1;
  PyRef name;
  if (PyUnicode_Check(device)) {
    name = PyRef::Borrowed(device);
  } else {
    name = PyRef(PyObject_GetAttrString(device, "type"));
    PyRef number(name ? PyObject_GetAttrString(device, "index") : nullptr);
    if (!number || !PyUnicode_Check(name.get())) return RaiseForm();
    if (number.get() != Py_None) {
      *index = static_cast<int>(PyLong_AsLong(number.get()));
      if (*index == -1 && PyErr_Occurred() != nullptr) return false;
    }
  }
  const char* text = PyUnicode_AsUTF8AndSize(name.get(), nullptr);
  if (text == nullptr) return false;
  const absl::string_view whole(text);
  const size_t colon = whole.find(':');
  *type = std::string(whole.substr(0, colon));
  if (colon != whole.npos &&
      (!absl::SimpleAtoi(whole.substr(colon + 1), index) || *index < 0)) {
    PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'", text);
    return false;
  }
  return true;
}

bool CheckIndex(const Session& session, int index) {
  if (index < session.device_count()) return true;
  PyErr_Format(PyExc_RuntimeError,
               "CUDA error: invalid device ordinal: the daemon has %d GPU%s, "
               "counted from 0. Got cuda:%d. Start it with more: holdfastd "
               "--device=cuda:all.",
               session.device_count(), session.device_count() == 1 ? "" : "s",
               index);
  return false;
}

}  // namespace

Session* MetaSession() {
  // Never destroyed: the process may end while threads still run.
  static auto* const session = new std::shared_ptr<Session>;
  if (*session == nullptr || (*session)->forked()) {
    absl::StatusOr<std::shared_ptr<Session>> opened = client::OpenMetaSession();
    if (!opened.ok()) {
      RaiseStatus(opened.status());
      return nullptr;
    }
    // A forked process leaves what it cannot use, with its threads, alone.
    if (*session != nullptr) new std::shared_ptr<Session>(*session);
    *session = *std::move(opened);
  }
  return session->get();
}

int DeviceOf(const Tensor& tensor) {
  return client::IsMeta(*tensor->session()) ? kMetaDevice
                                            : tensor->spec().device;
}

Session* SessionOfDevice(int* number) {
  if (*number != kMetaDevice) return DefaultSession();
  *number = 0;
  return MetaSession();
}

int DefaultDevice() { return g_default_device; }

bool ParseDevice(PyObject* device, int* number) {
  if (device == nullptr || device == Py_None) {
    *number = g_default_device;
    return true;
  }
  std::string type;
  int index = -1;
  if (PyLong_Check(device)) {
    type = "cuda";
    index = static_cast<int>(PyLong_AsLong(device));
    if (index < 0) return PyErr_Occurred() == nullptr && RaiseForm();
  } else if (!TakeApart(device, &type, &index)) {
    return false;
  }
  if (type == client::kMeta) {
    *number = kMetaDevice;
    return true;
  }
  Session* session = DefaultSession();
  if (session == nullptr) return false;
  const std::string& own = session->device();
  if (type == "cpu") {
    *number = 0;
    return true;
  }
  if (session->device_count() == 0 || type != own) {
    PyErr_Format(
        PyExc_RuntimeError,
        "the daemon holds tensors on '%s' only. Got device='%s'.", own.c_str(),
        index < 0 ? type.c_str() : absl::StrCat(type, ":", index).c_str());
    return false;
  }
  if (index < 0) index = g_current_gpu;
  if (!CheckIndex(*session, index)) return false;
  *number = 1 + index;
  return true;
}

namespace {

// A tensor of the same sizes, type and strides on "meta".
Tensor OnMeta(const Tensor& tensor) {
  const TensorSpec& spec = tensor->spec();
  Attrs attrs(&SchemaOf(OpId::empty));
  // Another order of the elements is kept, gaps between them are not.
  int64_t reach = 1;
  for (int i = 0; i < spec.rank(); ++i) {
    reach += (spec.shape[i] - 1) * spec.strides[i];
  }
  const bool order = !spec.contiguous() && reach == NumElements(spec.shape);
  attrs.Set(0, order ? Dims{reach} : spec.shape);
  attrs.Set(1, spec.dtype);
  attrs.set_device(kMetaDevice);
  Tensor made;
  if (!Apply(attrs, {}, false, absl::MakeSpan(&made, 1))) return Tensor();
  if (order) {
    Attrs view(&SchemaOf(OpId::as_strided));
    view.Set(0, spec.shape);
    view.Set(1, spec.strides);
    const Tensor memory = std::exchange(made, Tensor());
    if (!Apply(view, absl::MakeConstSpan(&memory, 1), false,
               absl::MakeSpan(&made, 1))) {
      return Tensor();
    }
  }
  if (tensor->requires_grad) {
    const absl::Status status = made->session()->SetRequiresGrad(made, true);
    if (!status.ok()) {
      RaiseStatus(status);
      return Tensor();
    }
  }
  return made;
}

}  // namespace

Tensor MoveTo(Tensor tensor, int number) {
  if (!tensor || DeviceOf(tensor) == number) return tensor;
  if (number == kMetaDevice) return OnMeta(tensor);
  if (client::IsMeta(*tensor->session())) {
    RaiseUnsupported(
        "Cannot copy out of meta tensor; no data! Please use "
        "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when "
        "moving module from meta to a different device, and "
        "torch.empty_like(x, device=...) for a tensor.");
    return Tensor();
  }
  Attrs attrs(&SchemaOf(OpId::to_device));
  attrs.Set(0, int64_t{number});
  Tensor moved;
  if (!Apply(attrs, absl::MakeConstSpan(&tensor, 1), false,
             absl::MakeSpan(&moved, 1))) {
    return Tensor();
  }
  return moved;
}

std::string DeviceName(const Session& session, int number) {
  if (client::IsMeta(session)) return client::kMeta;
  if (number == 0) return "cpu";
  return absl::StrCat(session.device(), ":", number - 1);
}

ScopedPutDevice::ScopedPutDevice(int number)
    : outer_(std::exchange(g_put_device, number)) {}
ScopedPutDevice::~ScopedPutDevice() { g_put_device = outer_; }
int ScopedPutDevice::now() { return g_put_device; }

namespace {

PyObject* DeviceNumber(PyObject*, PyObject* device) {
  int number = 0;
  if (!ParseDevice(device, &number)) return nullptr;
  return PyLong_FromLong(number);
}

PyObject* SetDefaultDevice(PyObject*, PyObject* device) {
  int number = 0;
  if (device != Py_None && !ParseDevice(device, &number)) return nullptr;
  g_default_device = number;
  Py_RETURN_NONE;
}

PyObject* GetDefaultDevice(PyObject*, PyObject*) {
  return PyLong_FromLong(g_default_device);
}

PyObject* SetCurrentGpu(PyObject*, PyObject* index) {
  const int wanted = static_cast<int>(PyLong_AsLong(index));
  if (wanted == -1 && PyErr_Occurred() != nullptr) return nullptr;
  Session* session = DefaultSession();
  if (session == nullptr || !CheckIndex(*session, wanted)) return nullptr;
  g_current_gpu = wanted;
  Py_RETURN_NONE;
}

PyObject* CurrentGpu(PyObject*, PyObject*) {
  return PyLong_FromLong(g_current_gpu);
}

// (tensor, number) -> the tensor there.
PyObject* MoveToFunction(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  int number = 0;
  if (!PyArg_ParseTuple(args, "Oi", &object, &number)) return nullptr;
  if (!IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "what is moved must be a Tensor");
    return nullptr;
  }
  if (DeviceOf(TensorOf(object)) == number) {
    Py_INCREF(object);
    return object;
  }
  Tensor moved = MoveTo(TensorOf(object), number);
  return moved ? WrapTensor(std::move(moved)) : nullptr;
}

}  // namespace

void AppendDeviceFunctions(std::vector<PyMethodDef>* functions) {
  functions->push_back(
      {"device_number", DeviceNumber, METH_O,
       "A device's number: 0 is the CPU, 1 the first GPU. RuntimeError where "
       "the daemon does not have it."});
  functions->push_back(
      {"set_default_device", SetDefaultDevice, METH_O,
       "Where tensors are made that are made without device=."});
  functions->push_back(
      {"default_device", GetDefaultDevice, METH_NOARGS, nullptr});
  functions->push_back(
      {"set_current_gpu", SetCurrentGpu, METH_O, "Which GPU \"cuda\" is."});
  functions->push_back({"current_gpu", CurrentGpu, METH_NOARGS, nullptr});
  functions->push_back({"move_to", MoveToFunction, METH_VARARGS, nullptr});
}

}  // namespace holdfast::python
