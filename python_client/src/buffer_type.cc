// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/buffer_type.h"

#include <new>
#include <string>
#include <vector>

#include "python_client/src/buffer_format.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"

namespace holdfast::python {

using client::ReadValue;
using client::Tensor;

namespace {

struct Exported {
  Tensor tensor;  // whose own memory it is; null: a copy, which keeps nothing
  ReadValue value;
  bool readonly = false;
  char* data;  // first element
  const char* format;
  Py_ssize_t itemsize;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;  // bytes
};

struct PyTensorBuffer {
  PyObject_HEAD Exported* exported;
};

PyTypeObject* g_type;

Exported& ExportedOf(PyObject* self) {
  return *reinterpret_cast<PyTensorBuffer*>(self)->exported;
}

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  Exported& exported = ExportedOf(self);
  const TensorSpec& spec = exported.value.spec;
  view->obj = nullptr;
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !spec.contiguous()) {
    PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
    return -1;
  }
  view->buf = exported.data;
  view->len = static_cast<Py_ssize_t>(spec.nbytes());
  if (exported.readonly && (flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError, "the elements are a copy");
    return -1;
  }
  view->readonly = exported.readonly ? 1 : 0;
  view->itemsize = exported.itemsize;
  view->format = (flags & PyBUF_FORMAT) != 0
                     ? const_cast<char*>(exported.format)
                     : nullptr;
  view->ndim = static_cast<int>(exported.shape.size());
  view->shape = (flags & PyBUF_ND) != 0 ? exported.shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                      ? exported.strides.data()
                      : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<PyTensorBuffer*>(self)->exported;
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
    {Py_tp_doc, const_cast<char*>("A tensor's elements in memory.")},
    {0, nullptr},
};
PyType_Spec g_spec = {"holdfast._C.TensorBuffer", sizeof(PyTensorBuffer), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      g_slots};

// The next object that owns the memory of `object`: `array.base`, or what a
// memoryview shows. Null without an error at the end of the chain.
PyRef NextOwner(PyObject* object) {
  for (const char* name : {"base", "obj"}) {
    PyRef next(PyObject_GetAttrString(object, name));
    if (next && next.get() != Py_None) return next;
    PyErr_Clear();
  }
  return PyRef();
}

std::unique_ptr<Exported> Export(const Tensor& tensor, ReadValue value) {
  auto exported = std::make_unique<Exported>();
  const TensorSpec& spec = value.spec;
  if (value.placed) exported->tensor = tensor;
  exported->itemsize = static_cast<Py_ssize_t>(ItemSize(spec.dtype));
  exported->format = BufferFormat(spec.dtype);
  exported->data = static_cast<char*>(const_cast<void*>(value.data)) +
                   spec.offset * exported->itemsize;
  exported->value = std::move(value);
  return exported;
}

PyObject* Wrap(std::unique_ptr<Exported> exported) {
  PyTensorBuffer* object = PyObject_New(PyTensorBuffer, g_type);
  if (object == nullptr) return nullptr;
  object->exported = exported.release();
  return reinterpret_cast<PyObject*>(object);
}

}  // namespace

bool InitBufferType() {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  return g_type != nullptr;
}

PyObject* NewBuffer(const Tensor& tensor) {
  if (BufferFormat(tensor->spec().dtype) == nullptr) {
    PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s",
                 std::string(DTypeName(tensor->spec().dtype)).c_str());
    return nullptr;
  }
  ReadValue value;
  if (!ReadTensor(tensor, true, &value)) return nullptr;
  return NewBuffer(tensor, std::move(value));
}

PyObject* NewBuffer(const Tensor& tensor, ReadValue value) {
  std::unique_ptr<Exported> exported = Export(tensor, std::move(value));
  const TensorSpec& spec = exported->value.spec;
  // Writes into a copy would be lost. PyTorch gives no array of a GPU's tensor,
  // so that nobody expects to write one.
  exported->readonly = !exported->value.placed && tensor->spec().device == 0;
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    exported->shape.push_back(static_cast<Py_ssize_t>(spec.shape[i]));
    exported->strides.push_back(static_cast<Py_ssize_t>(spec.strides[i]) *
                                exported->itemsize);
  }
  return Wrap(std::move(exported));
}

PyObject* NewByteBuffer(const Tensor& tensor) {
  if (!Settle(tensor)) return nullptr;
  if (!tensor->spec().contiguous()) {
    PyErr_SetString(PyExc_ValueError, "the tensor is not contiguous");
    return nullptr;
  }
  ReadValue value;
  if (!ReadTensor(tensor, true, &value)) return nullptr;
  return NewByteBuffer(tensor, std::move(value));
}

PyObject* NewByteBuffer(const Tensor& tensor, ReadValue value) {
  std::unique_ptr<Exported> exported = Export(tensor, std::move(value));
  exported->shape.push_back(
      static_cast<Py_ssize_t>(exported->value.spec.nbytes()));
  exported->strides.push_back(1);
  exported->format = "B";
  exported->itemsize = 1;
  return Wrap(std::move(exported));
}

Tensor TensorBehind(PyObject* array, const char** first_element) {
  constexpr int kMaxChain = 64;
  PyRef owner = PyRef::Borrowed(array);
  for (int i = 0; i < kMaxChain && owner; ++i) {
    if (Py_TYPE(owner.get()) == g_type) {
      const Exported& exported = ExportedOf(owner.get());
      *first_element = exported.data;
      return exported.tensor;
    }
    owner = NextOwner(owner.get());
  }
  return Tensor();
}

}  // namespace holdfast::python
