// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attributes of Tensor. Everything here is known to the client and answers
// without waiting, but for sizes that depend on data.

#include "client/session.h"
#include "client/shown_name.h"
#include "python_client/src/autograd_binding.h"
#include "python_client/src/call.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/dtype_type.h"
#include "python_client/src/errors.h"
#include "python_client/src/overrides.h"
#include "python_client/src/read.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/size_type.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

using client::Tensor;

PyTensor* Self(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

const TensorSpec& SpecOf(PyObject* self) { return KnownOf(self)->spec(); }

PyObject* Shape(PyObject* self, void*) {
  if (!Settle(KnownOf(self))) return nullptr;
  return NewSize(SpecOf(self).shape);
}

PyObject* GetDType(PyObject* self, void*) {
  PyObject* dtype = DTypeObject(SpecOf(self).dtype);
  Py_INCREF(dtype);
  return dtype;
}

PyObject* Ndim(PyObject* self, void*) {
  return PyLong_FromLong(SpecOf(self).rank());
}

PyObject* GetItemSize(PyObject* self, void*) {
  return PyLong_FromSize_t(ItemSize(SpecOf(self).dtype));
}

PyObject* GetNBytes(PyObject* self, void*) {
  if (!Settle(KnownOf(self))) return nullptr;
  return PyLong_FromLongLong(SpecOf(self).nbytes());
}

PyObject* GetRequiresGrad(PyObject* self, void*) {
  return PyBool_FromLong(KnownOf(self)->NeedsGrad());
}

int SetRequiresGrad(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "requires_grad must be a bool");
    return -1;
  }
  return SetRequiresGradOf(self, value == Py_True) ? 0 : -1;
}

PyObject* IsLeaf(PyObject* self, void*) {
  const Tensor& tensor = KnownOf(self);
  return PyBool_FromLong(tensor->is_leaf &&
                         tensor->NeedsGrad() == tensor->requires_grad);
}

PyObject* IsInference(PyObject* self, void*) {
  return PyBool_FromLong(KnownOf(self)->storage()->memory().inference);
}

PyObject* RetainsGrad(PyObject* self, void*) {
  return PyBool_FromLong(KnownOf(self)->retains_grad);
}

PyObject* GradFn(PyObject* self, void*) {
  const Tensor& tensor = KnownOf(self);
  RefPtr<client::GraphNode> node = client::ShownNode(*tensor);
  if (node) return NewGradFn(std::move(node), tensor);
  Py_RETURN_NONE;
}

PyObject* GetGrad(PyObject* self, void*) {
  PyTensor* object = Self(self);
  const Tensor& tensor = TensorOf(self);
  Tensor grad = tensor->session()->GetGrad(tensor);
  if (!grad) {
    Py_CLEAR(object->grad);
    Py_RETURN_NONE;
  }
  if (object->grad == nullptr || TensorOf(object->grad) != grad) {
    PyRef old(object->grad);
    object->grad = WrapTensor(std::move(grad));
  }
  Py_XINCREF(object->grad);
  return object->grad;
}

int SetGrad(PyObject* self, PyObject* value, void*) {
  PyTensor* object = Self(self);
  client::Session& session = *TensorOf(self)->session();
  const bool none = value == nullptr || value == Py_None;
  if (!none && !IsTensor(value)) {
    PyErr_SetString(PyExc_TypeError,
                    "assigned grad expected to be a Tensor or None");
    return -1;
  }
  if (value == self) {
    PyErr_SetString(PyExc_RuntimeError,
                    "can't assign Variable as its own grad");
    return -1;
  }
  const absl::Status status =
      session.SetGrad(object->tensor, none ? Tensor() : TensorOf(value));
  if (!status.ok()) {
    RaiseStatus(status);
    return -1;
  }
  PyRef old(object->grad);
  object->grad = none ? nullptr : PyRef::Borrowed(value).release();
  return 0;
}

PyObject* GetData(PyObject* self, void*) {
  Tensor detached = ApplyUnary(OpId::variable_data, TensorOf(self));
  if (!detached) return nullptr;
  return Overrides(Py_TYPE(self))
             ? WrapTensorAs(Py_TYPE(self), std::move(detached))
             : WrapTensor(std::move(detached));
}

// Same object, other elements: keeps requires_grad and grad, which takes on the
// type.
int SetData(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !IsTensor(value)) {
    PyErr_SetString(PyExc_TypeError, "data must be a Tensor");
    return -1;
  }
  Tensor fresh = ApplyUnary(OpId::detach, TensorOf(value));
  if (!fresh) return -1;
  Tensor& tensor = Self(self)->tensor;
  client::Session& session = *fresh->session();
  absl::Status status;
  if (tensor->requires_grad && tensor->is_leaf) {
    status = session.SetRequiresGrad(fresh, true);
  }
  Tensor grad = session.GetGrad(tensor);
  if (status.ok() && grad && grad->spec().shape == fresh->spec().shape) {
    // Networks are made half of, or moved, with their gradients still there.
    grad = MoveTo(std::move(grad), DeviceOf(fresh));
    if (!grad) return -1;
    if (grad->spec().dtype != fresh->spec().dtype) {
      grad = ApplyTo(grad, fresh->spec().dtype);
      if (!grad) return -1;
    }
    status = session.SetGrad(fresh, std::move(grad));
  }
  if (!status.ok()) {
    RaiseStatus(status);
    return -1;
  }
  tensor = std::move(fresh);
  return 0;
}

PyObject* Version(PyObject* self, void*) {
  if (KnownOf(self)->storage()->memory().inference) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Inference tensors do not track version counter.");
    return nullptr;
  }
  return PyLong_FromUnsignedLong(KnownOf(self)->storage()->version());
}

PyObject* GetDeviceName(PyObject* self, void*) {
  const Tensor& tensor = KnownOf(self);
  return PyUnicode_FromString(
      DeviceName(*tensor->session(), tensor->spec().device).c_str());
}

PyObject* GetDeviceNumber(PyObject* self, void*) {
  return PyLong_FromLong(DeviceOf(KnownOf(self)));
}

PyObject* GetSession(PyObject* self, void*) {
  return WrapSession(TensorOf(self)->session());
}

PyObject* Handle(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(KnownOf(self)->handle());
}

// Equal for tensors over one storage, while one of them lives.
PyObject* StorageId(PyObject* self, void*) {
  return PyLong_FromVoidPtr(&TensorOf(self)->storage()->memory());
}

PyObject* StorageBytes(PyObject* self, void*) {
  return PyLong_FromLongLong(TensorOf(self)->storage()->memory().bytes);
}

PyObject* IsShared(PyObject* self, void*) {
  return PyBool_FromLong(TensorOf(self)->storage()->memory().shared.load());
}

PyGetSetDef g_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr,
     nullptr},
    {"shape", Shape, nullptr, "The sizes, a holdfast.Size.", nullptr},
    {"dtype", GetDType, nullptr, "The element type.", nullptr},
    {"ndim", Ndim, nullptr, "Number of dimensions.", nullptr},
    {"itemsize", GetItemSize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", GetNBytes, nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad", GetRequiresGrad, SetRequiresGrad,
     "True if backward reaches this tensor.", nullptr},
    {"is_leaf", IsLeaf, nullptr, "True for tensors no recorded op has made.",
     nullptr},
    {"_is_inference", IsInference, nullptr, nullptr, nullptr},
    {"retains_grad", RetainsGrad, nullptr, nullptr, nullptr},
    {"grad_fn", GradFn, nullptr, "The op that made this tensor, or None.",
     nullptr},
    {"grad", GetGrad, SetGrad, "The gradient backward accumulated, or None.",
     nullptr},
    {"data", GetData, SetData, "The same elements outside the autograd graph.",
     nullptr},
    {"_version", Version, nullptr,
     "In-place writes to the memory so far, as autograd counts them.", nullptr},
    {"_device_name", GetDeviceName, nullptr, nullptr, nullptr},
    {"_device_number", GetDeviceNumber, nullptr, nullptr, nullptr},
    {"_session", GetSession, nullptr, nullptr, nullptr},
    {"_storage_id", StorageId, nullptr,
     "Equal for tensors over one storage, while one of them lives.", nullptr},
    {"_storage_bytes", StorageBytes, nullptr,
     "The size of the memory; -1 where only the daemon knows it.", nullptr},
    {"_is_shared", IsShared, nullptr, "Other sessions may have the storage.",
     nullptr},
    {"_handle", Handle, nullptr, "The handle's number, for debugging.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyGetSetDef* TensorProperties() { return g_properties; }

}  // namespace holdfast::python
