// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods of Tensor that are no op: facts about the layout, reads, and how
// objects are made.

#include "python_client/src/argument.h"
#include "python_client/src/autograd_binding.h"
#include "python_client/src/buffer_type.h"
#include "python_client/src/call.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/size_type.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

using client::Tensor;

const TensorSpec& SpecOf(PyObject* self) { return KnownOf(self)->spec(); }

// size() and stride(): all of them, or that of one dimension.
PyObject* DimsOrOne(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames, const char* name, const Dims& dims,
                    PyObject* (*all)(absl::Span<const int64_t>)) {
  const Py_ssize_t named = kwnames != nullptr ? PyTuple_Size(kwnames) : 0;
  if (nargs + named > 1 ||
      (named == 1 && PyUnicode_CompareWithASCIIString(
                         PyTuple_GetItem(kwnames, 0), "dim") != 0)) {
    PyErr_Format(PyExc_TypeError, "%s() takes only the argument 'dim'", name);
    return nullptr;
  }
  if (nargs + named == 0 || args[0] == Py_None) return all(dims);
  int64_t dim = 0;
  const Converted result = AsInt(args[0], &dim);
  if (result == Converted::kError) return nullptr;
  if (result == Converted::kNo) {
    PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' must be int", name);
    return nullptr;
  }
  absl::StatusOr<int> index = NormalizeDim(dim, SpecOf(self).rank());
  if (!index.ok()) return RaiseStatus(index.status());
  if (dims.empty()) {
    return RaiseStatus(absl::OutOfRangeError(
        "Dimension specified as 0 but tensor has no dimensions"));
  }
  return PyLong_FromLongLong(dims[static_cast<size_t>(*index)]);
}

PyObject* Size(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames) {
  if (!Settle(KnownOf(self))) return nullptr;
  return DimsOrOne(self, args, nargs, kwnames, "size", SpecOf(self).shape,
                   NewSize);
}

PyObject* Stride(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                 PyObject* kwnames) {
  if (!Settle(KnownOf(self))) return nullptr;
  return DimsOrOne(self, args, nargs, kwnames, "stride", SpecOf(self).strides,
                   NewIntTuple);
}

PyObject* Dim(PyObject* self, PyObject*) {
  return PyLong_FromLong(SpecOf(self).rank());
}

PyObject* Numel(PyObject* self, PyObject*) {
  if (!Settle(KnownOf(self))) return nullptr;
  return PyLong_FromLongLong(SpecOf(self).numel());
}

PyObject* ElementSize(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(ItemSize(SpecOf(self).dtype));
}

PyObject* StorageOffset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(SpecOf(self).offset);
}

// What holdfast.memory_formats has for a call that names a format.
PyObject* AskFormats(const char* name, PyObject* self, PyObject* args,
                     PyObject* kwargs) {
  PyRef module(PyImport_ImportModule("holdfast.memory_formats"));
  PyRef function(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  PyRef front(function ? PyTuple_Pack(1, self) : nullptr);
  PyRef all(front ? PySequence_Concat(front.get(), args) : nullptr);
  return all ? PyObject_Call(function.get(), all.get(), kwargs) : nullptr;
}

bool NamesFormat(PyObject* args, PyObject* kwargs) {
  return PyTuple_Size(args) != 0 ||
         (kwargs != nullptr && PyDict_Size(kwargs) != 0);
}

PyObject* IsContiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (NamesFormat(args, kwargs)) {
    return AskFormats("is_contiguous", self, args, kwargs);
  }
  if (!Settle(KnownOf(self))) return nullptr;
  return PyBool_FromLong(SpecOf(self).contiguous());
}

PyObject* Contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (NamesFormat(args, kwargs)) {
    return AskFormats("contiguous", self, args, kwargs);
  }
  if (!Settle(KnownOf(self))) return nullptr;
  if (SpecOf(self).contiguous()) {
    Py_INCREF(self);
    return self;
  }
  Tensor copy = ApplyUnary(OpId::clone, TensorOf(self));
  return copy ? WrapTensor(std::move(copy)) : nullptr;
}

PyObject* IsFloatingPoint(PyObject* self, PyObject*) {
  return PyBool_FromLong(IsFloat(SpecOf(self).dtype));
}

PyObject* Item(PyObject* self, PyObject*) { return ReadItem(TensorOf(self)); }

PyObject* ToList(PyObject* self, PyObject*) { return ReadList(TensorOf(self)); }

PyObject* Address(PyObject* self, PyObject*) {
  return ReadAddress(TensorOf(self));
}

PyObject* GetBuffer(PyObject* self, PyObject*) {
  return NewBuffer(TensorOf(self));
}

PyObject* GetBytes(PyObject* self, PyObject*) {
  return NewByteBuffer(TensorOf(self));
}

PyObject* RequiresGrad(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"requires_grad", nullptr};
  int value = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p",
                                   const_cast<char**>(keywords), &value)) {
    return nullptr;
  }
  if (!SetRequiresGradOf(self, value != 0)) return nullptr;
  Py_INCREF(self);
  return self;
}

// Forgets the history of this object, in place.
PyObject* Detach(PyObject* self, PyObject*) {
  Tensor detached = ApplyUnary(OpId::detach, TensorOf(self));
  if (!detached) return nullptr;
  reinterpret_cast<PyTensor*>(self)->tensor = std::move(detached);
  Py_INCREF(self);
  return self;
}

// This object becomes a handle to what another is, history and all: how shapes
// change in place.
PyObject* Become(PyObject* self, PyObject* other) {
  if (!IsTensor(other)) {
    PyErr_SetString(PyExc_TypeError, "_become() takes a Tensor");
    return nullptr;
  }
  // `other` may be this object. The old handle dies after the change: its
  // destructor takes locks.
  Tensor fresh = TensorOf(other);
  std::swap(reinterpret_cast<PyTensor*>(self)->tensor, fresh);
  Py_INCREF(self);
  return self;
}

// An object of a subclass over the same elements, outside the graph: how
// nn.Parameter is made.
PyObject* MakeSubclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"cls", "data", "require_grad", nullptr};
  PyObject *type, *data;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "O!O!|p", const_cast<char**>(keywords), &PyType_Type,
          &type, g_tensor_type, &data, &requires_grad)) {
    return nullptr;
  }
  auto* subclass = reinterpret_cast<PyTypeObject*>(type);
  if (PyType_IsSubtype(subclass, g_tensor_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "cls must be a subclass of Tensor");
    return nullptr;
  }
  Tensor detached = ApplyUnary(OpId::detach, TensorOf(data));
  if (!detached) return nullptr;
  PyRef object(WrapTensorAs(subclass, std::move(detached)));
  if (!object) return nullptr;
  if (requires_grad != 0 && !SetRequiresGradOf(object.get(), true)) {
    return nullptr;
  }
  return object.release();
}

// This tensor, history and all, as an object of a subclass.
PyObject* AsSubclass(PyObject* self, PyObject* cls) {
  if (!PyType_Check(cls) ||
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), g_tensor_type) ==
          0) {
    PyErr_SetString(PyExc_TypeError,
                    "as_subclass() takes a subclass of Tensor");
    return nullptr;
  }
  return WrapTensorAs(reinterpret_cast<PyTypeObject*>(cls), TensorOf(self));
}

constexpr int kFastKeywords = METH_FASTCALL | METH_KEYWORDS;
constexpr int kKeywords = METH_VARARGS | METH_KEYWORDS;

const PyMethodDef kMethods[] = {
    {"size", AsPyCFunction(Size), kFastKeywords,
     "size($self, dim=None)\n--\n\nAll sizes, or that of one dimension."},
    {"stride", AsPyCFunction(Stride), kFastKeywords,
     "stride($self, dim=None)\n--\n\n"
     "Elements between neighbours, per dimension."},
    {"dim", Dim, METH_NOARGS, "Number of dimensions."},
    {"ndimension", Dim, METH_NOARGS, "Number of dimensions."},
    {"numel", Numel, METH_NOARGS, "Number of elements."},
    {"nelement", Numel, METH_NOARGS, "Number of elements."},
    {"element_size", ElementSize, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", StorageOffset, METH_NOARGS,
     "First element, counted from the storage's start."},
    {"is_contiguous", AsPyCFunction(IsContiguous), kKeywords,
     "True if the elements lie in row-major order without gaps."},
    {"contiguous", AsPyCFunction(Contiguous), kKeywords,
     "This tensor if it is contiguous, else a contiguous copy."},
    {"is_floating_point", IsFloatingPoint, METH_NOARGS, nullptr},
    {"item", Item, METH_NOARGS,
     "item($self)\n--\n\nThe only element as a Python number; waits."},
    {"tolist", ToList, METH_NOARGS,
     "tolist($self)\n--\n\nThe elements as nested lists; waits."},
    {"requires_grad_", AsPyCFunction(RequiresGrad), kKeywords,
     "requires_grad_($self, requires_grad=True)\n--\n\n"
     "Marks this leaf, in place."},
    {"detach_", Detach, METH_NOARGS, "Leaves the autograd graph, in place."},
    {"retain_grad", RetainGrad, METH_NOARGS,
     "Makes backward keep the gradient of this intermediate result."},
    {"as_subclass", AsSubclass, METH_O,
     "as_subclass($self, cls, /)\n--\n\n"
     "The same tensor, in the graph, as an object of a subclass of Tensor."},
    {"_become", Become, METH_O, nullptr},
    {"_address", Address, METH_NOARGS,
     "Where the elements are mapped; 0 where they are not. Waits."},
    {"_buffer", GetBuffer, METH_NOARGS,
     "The elements as an object with the buffer protocol; waits. Over shared "
     "memory it is the tensor's own memory."},
    {"_bytes", GetBytes, METH_NOARGS,
     "The same as bytes in one dimension, for any element type."},
    {"_make_subclass", AsPyCFunction(MakeSubclass), kKeywords | METH_STATIC,
     nullptr},
};

}  // namespace

void AppendTensorMethods(std::vector<PyMethodDef>* methods) {
  methods->insert(methods->end(), std::begin(kMethods), std::end(kMethods));
}

// Tensor(2, 3): uninitialised; Tensor([1, 2]): these elements, of the default
// type.
PyObject* TensorNew(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  int number = DefaultDevice();
  if (kwargs != nullptr && PyDict_Size(kwargs) > 0) {
    PyRef device(PyMapping_GetItemString(kwargs, "device"));
    if (!device || PyDict_Size(kwargs) > 1) {
      PyErr_SetString(PyExc_TypeError, "Tensor() takes only sizes or data");
      return nullptr;
    }
    if (!ParseDevice(device.get(), &number)) return nullptr;
  }
  const Py_ssize_t count = PyTuple_Size(args);
  Dims shape;
  PyObject* data = count == 1 ? PyTuple_GetItem(args, 0) : nullptr;
  if (data != nullptr && !PyLong_Check(data)) {
    const ScopedPutDevice scoped(number);
    Tensor tensor = MoveTo(MakeTensor(data, g_default_float), number);
    return tensor ? WrapTensorAs(type, std::move(tensor)) : nullptr;
  }
  if (count == 0) {
    shape.push_back(0);
  } else if (AsInts(args, 0, &shape) != Converted::kYes) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "Tensor() takes sizes or data");
    }
    return nullptr;
  }
  Attrs attrs(&SchemaOf(OpId::empty));
  attrs.Set(0, std::move(shape));
  attrs.set_device(number);
  Tensor tensor;
  if (!Apply(attrs, {}, false, absl::MakeSpan(&tensor, 1))) return nullptr;
  return WrapTensorAs(type, std::move(tensor));
}

}  // namespace holdfast::python
