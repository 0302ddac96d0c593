// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/tensor_factory.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "python_client/src/argument.h"
#include "python_client/src/array_mirror.h"
#include "python_client/src/autograd_binding.h"
#include "python_client/src/buffer_format.h"
#include "python_client/src/buffer_type.h"
#include "python_client/src/call.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/dtype_type.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::ReadValue;
using client::Session;
using client::Tensor;

namespace {

// A Py_buffer that is released with the scope.
class BufferView {
 public:
  BufferView() = default;
  ~BufferView() {
    if (filled_) PyBuffer_Release(&view_);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  bool Get(PyObject* object, int flags) {
    filled_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    return filled_;
  }
  const Py_buffer& operator*() const { return view_; }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_;
  bool filled_ = false;
};

std::string SupportedTypes() {
  std::string names;
  for (int i = kDTypeLimit - 1; i > 0; --i) {
    if (!IsValidDType(i)) continue;
    const auto dtype = static_cast<DType>(i);
    if (BufferFormat(dtype) == nullptr) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", DTypeName(dtype));
  }
  return names;
}

// What a person calls the element type: `array.dtype`, or the format.
void RaiseElementType(PyObject* object, const char* format) {
  PyRef dtype(PyObject_GetAttrString(object, "dtype"));
  if (!dtype) {
    PyErr_Clear();
    dtype = PyRef(PyUnicode_FromString(format != nullptr ? format : "B"));
  }
  PyRef type = TypeName(object);
  if (!dtype || !type) return;
  PyErr_Format(PyExc_TypeError,
               "can't convert %U of type %S. The only supported types are: %s.",
               type.get(), dtype.get(), SupportedTypes().c_str());
}

bool CheckElements(PyObject* object, const Py_buffer& view, DType* dtype) {
  if (ParseBufferFormat(view.format, view.itemsize, dtype) &&
      view.ndim <= kMaxRank) {
    return true;
  }
  RaiseElementType(object, view.format);
  return false;
}

// Past this the copy is long enough that other threads should run.
constexpr Py_ssize_t kUnlockedBytes = 1 << 20;

// `marks`: null, or gets those of the elements in row-major order.
Tensor PutBuffer(PyObject* object, client::BlockMarks* marks) {
  BufferView view;
  if (!view.Get(object, PyBUF_STRIDES | PyBUF_FORMAT)) return Tensor();
  DType dtype;
  if (!CheckElements(object, *view, &dtype)) return Tensor();
  int device = ScopedPutDevice::now();
  Session* session = SessionOfDevice(&device);
  if (session == nullptr) return Tensor();
  // Several sources give no strides for a row-major array.
  const bool plain = PyBuffer_IsContiguous(&*view, 'C') != 0;
  const Dims shape(view->shape, view->shape + view->ndim);
  const auto put = [&]() -> absl::StatusOr<Tensor> {
    if (plain) return session->Put(dtype, shape, view->buf, device, marks);
    std::vector<char> elements(static_cast<size_t>(view->len));
    CopyRowMajor(*view, elements.data());
    return session->Put(dtype, shape, elements.data(), device, marks);
  };
  absl::StatusOr<Tensor> tensor;
  if (view->len >= kUnlockedBytes) {
    const std::shared_ptr<Session> held = session->shared_from_this();
    ScopedGilRelease unlocked;
    ReleasedGilInCall() = true;
    tensor = put();
    ReleasedGilInCall() = false;
  } else {
    HoldsGilInCall() = true;
    tensor = put();
    HoldsGilInCall() = false;
  }
  if (!tensor.ok()) {
    RaiseStatus(tensor.status());
    return Tensor();
  }
  return *std::move(tensor);
}

Tensor Cast(Tensor tensor, std::optional<DType> dtype) {
  if (!tensor || !dtype || tensor->spec().dtype == *dtype) return tensor;
  return ApplyTo(tensor, *dtype);
}

// as_strided of the tensor whose memory the array looks at; null without an
// error when the array's elements are not addressable that way.
Tensor ViewOfShared(const Tensor& behind, const char* first,
                    const Py_buffer& view, DType dtype) {
  const TensorSpec& spec = behind->spec();
  if (spec.dtype != dtype) return Tensor();
  const int64_t item = view.itemsize;
  const int64_t bytes = static_cast<const char*>(view.buf) - first;
  Dims shape(view.shape, view.shape + view.ndim);
  Dims strides;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.strides[i] < 0 || view.strides[i] % item != 0) return Tensor();
    strides.push_back(view.strides[i] / item);
  }
  const int64_t offset = spec.offset + bytes / item;
  if (bytes % item != 0 || offset < 0) return Tensor();
  Attrs attrs(&SchemaOf(OpId::as_strided));
  attrs.Set(0, std::move(shape));
  attrs.Set(1, std::move(strides));
  attrs.Set(2, offset);
  Tensor output;
  Apply(attrs, absl::MakeConstSpan(&behind, 1), false,
        absl::MakeSpan(&output, 1));
  return output;
}

// Shares memory with an array that came from Holdfast, else copies.
Tensor ShareOrCopy(PyObject* object) {
  const char* first = nullptr;
  const Tensor behind = TensorBehind(object, &first);
  if (behind) {
    BufferView view;
    if (!view.Get(object, PyBUF_STRIDES | PyBUF_FORMAT)) return Tensor();
    DType dtype;
    if (!CheckElements(object, *view, &dtype)) return Tensor();
    Tensor shared = ViewOfShared(behind, first, *view, dtype);
    if (shared || PyErr_Occurred() != nullptr) return shared;
  }
  // As in PyTorch, what is on a GPU does not follow the array.
  if (ScopedPutDevice::now() != 0 || !CanMirror(object)) {
    return PutBuffer(object, nullptr);
  }
  client::BlockMarks marks;
  Tensor copy = PutBuffer(object, &marks);
  if (copy && !MirrorArray(object, copy, std::move(marks))) return Tensor();
  return copy;
}

// dtype=None or a dtype; anything else is an error.
bool ParseDTypeArgument(PyObject* object, std::optional<DType>* dtype) {
  if (object == nullptr || object == Py_None) return true;
  DType value;
  if (!AsDType(object, &value)) {
    PyRef type = TypeName(object);
    if (type) {
      PyErr_Format(PyExc_TypeError,
                   "argument 'dtype' must be holdfast.dtype, not %U",
                   type.get());
    }
    return false;
  }
  *dtype = value;
  return true;
}

PyObject* Finish(Tensor tensor, bool requires_grad) {
  if (!tensor) return nullptr;
  PyRef object(WrapTensor(std::move(tensor)));
  if (object && requires_grad && !SetRequiresGradOf(object.get(), true)) {
    return nullptr;
  }
  return object.release();
}

PyObject* TensorFunction(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"data",          "dtype",      "device",
                                   "requires_grad", "pin_memory", nullptr};
  PyObject* data = nullptr;
  PyObject* dtype_object = nullptr;
  PyObject* device = Py_None;
  int requires_grad = 0;
  int pin_memory = 0;
  int number = 0;
  std::optional<DType> dtype;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "O|$OOpp", const_cast<char**>(keywords), &data,
          &dtype_object, &device, &requires_grad, &pin_memory) ||
      !ParseDTypeArgument(dtype_object, &dtype) ||
      !ParseDevice(device, &number)) {
    return nullptr;
  }
  const ScopedPutDevice scoped(number);
  return Finish(MoveTo(MakeTensor(data, dtype), number), requires_grad != 0);
}

PyObject* AsTensorFunction(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"data", "dtype", "device", nullptr};
  PyObject* data = nullptr;
  PyObject* dtype_object = nullptr;
  PyObject* device = Py_None;
  int number = 0;
  std::optional<DType> dtype;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO",
                                   const_cast<char**>(keywords), &data,
                                   &dtype_object, &device) ||
      !ParseDTypeArgument(dtype_object, &dtype) ||
      !ParseDevice(device, &number)) {
    return nullptr;
  }
  if (IsTensor(data)) {
    const Tensor tensor = TensorOf(data);
    if (device == Py_None) number = DeviceOf(tensor);
    if ((!dtype || tensor->spec().dtype == *dtype) &&
        DeviceOf(tensor) == number) {
      Py_INCREF(data);
      return data;
    }
    return Finish(MoveTo(Cast(tensor, dtype), number), false);
  }
  const ScopedPutDevice scoped(number);
  Tensor tensor = IsNumpyArray(data) ? Cast(ShareOrCopy(data), dtype)
                                     : MakeTensor(data, dtype);
  return Finish(MoveTo(std::move(tensor), number), false);
}

PyObject* FromNumpy(PyObject*, PyObject* array) {
  if (!IsNumpyArray(array)) {
    PyRef type = TypeName(array);
    if (type) {
      PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %U)", type.get());
    }
    return nullptr;
  }
  const ScopedPutDevice scoped(0);
  return Finish(ShareOrCopy(array), false);
}

bool ParseShapeAndDType(PyObject* shape_object, PyObject* dtype_object,
                        Dims* shape, std::optional<DType>* dtype) {
  if (!ParseDTypeArgument(dtype_object, dtype)) return false;
  if (AsInts(shape_object, 0, shape) == Converted::kYes) return true;
  if (PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_TypeError, "shape must be a tuple of ints");
  }
  return false;
}

// (shape, dtype) -> (tensor, its memory as writable bytes), or None when the
// transport has no shared memory.
PyObject* EmptyBytes(PyObject*, PyObject* args) {
  PyObject *shape_object, *dtype_object;
  std::optional<DType> dtype;
  Dims shape;
  if (!PyArg_ParseTuple(args, "OO", &shape_object, &dtype_object) ||
      !ParseShapeAndDType(shape_object, dtype_object, &shape, &dtype)) {
    return nullptr;
  }
  Session* session = DefaultSession();
  if (session == nullptr) return nullptr;
  absl::StatusOr<std::pair<Tensor, ReadValue>> shared =
      session->PutShared(dtype.value_or(kDefaultFloat), shape);
  if (absl::IsUnimplemented(shared.status())) Py_RETURN_NONE;
  if (!shared.ok()) return RaiseStatus(shared.status());
  PyRef buffer(NewByteBuffer(shared->first, std::move(shared->second)));
  PyRef tensor(buffer ? WrapTensor(std::move(shared->first)) : nullptr);
  return tensor ? PyTuple_Pack(2, tensor.get(), buffer.get()) : nullptr;
}

// (bytes-like, shape, dtype, device's number) -> a tensor there with a copy of
// those elements.
PyObject* FromBytes(PyObject*, PyObject* args) {
  PyObject *bytes, *shape_object, *dtype_object;
  std::optional<DType> dtype;
  Dims shape;
  int device = 0;
  if (!PyArg_ParseTuple(args, "OOO|i", &bytes, &shape_object, &dtype_object,
                        &device) ||
      !ParseShapeAndDType(shape_object, dtype_object, &shape, &dtype)) {
    return nullptr;
  }
  BufferView view;
  if (!view.Get(bytes, PyBUF_SIMPLE)) return nullptr;
  const DType type = dtype.value_or(kDefaultFloat);
  const absl::Status fits = CheckShape(type, shape);
  if (!fits.ok()) return RaiseStatus(fits);
  const int64_t expected = ContiguousSpec(type, shape).nbytes();
  if (expected != view->len) {
    PyErr_Format(PyExc_ValueError, "the elements take %lld bytes. Got %lld.",
                 static_cast<long long>(expected),
                 static_cast<long long>(view->len));
    return nullptr;
  }
  Session* session = SessionOfDevice(&device);
  if (session == nullptr) return nullptr;
  const std::shared_ptr<Session> held = session->shared_from_this();
  absl::StatusOr<Tensor> tensor;
  {
    ScopedGilRelease unlocked;
    ReleasedGilInCall() = true;
    tensor = held->Put(type, shape, view->buf, device, nullptr);
    ReleasedGilInCall() = false;
  }
  if (!tensor.ok()) return RaiseStatus(tensor.status());
  return WrapTensor(*std::move(tensor));
}

// (shape, dtype) -> a buffer in memory the daemon shares, or None when the
// transport has no shared memory.
PyObject* EmptyShared(PyObject*, PyObject* args) {
  PyObject *shape_object, *dtype_object;
  std::optional<DType> dtype;
  Dims shape;
  if (!PyArg_ParseTuple(args, "OO", &shape_object, &dtype_object) ||
      !ParseShapeAndDType(shape_object, dtype_object, &shape, &dtype)) {
    return nullptr;
  }
  Session* session = DefaultSession();
  if (session == nullptr) return nullptr;
  absl::StatusOr<std::pair<Tensor, ReadValue>> shared =
      session->PutShared(dtype.value_or(g_default_float), shape);
  if (absl::IsUnimplemented(shared.status())) Py_RETURN_NONE;
  if (!shared.ok()) return RaiseStatus(shared.status());
  return NewBuffer(shared->first, std::move(shared->second));
}

}  // namespace

bool IsNumpyArray(PyObject* object) {
  if (PyObject_CheckBuffer(object) == 0) return false;
  PyRef type = TypeName(object);
  if (type &&
      PyUnicode_CompareWithASCIIString(type.get(), "numpy.ndarray") == 0) {
    return true;
  }
  // A subclass of it (numpy.memmap, numpy.matrix), if NumPy is there at all.
  PyObject* numpy =
      PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");  // borrowed
  PyRef ndarray(numpy == nullptr ? nullptr
                                 : PyObject_GetAttrString(numpy, "ndarray"));
  int is_array = ndarray ? PyObject_IsInstance(object, ndarray.get()) : 0;
  if (is_array < 1) PyErr_Clear();
  return is_array == 1;
}

Tensor MakeTensor(PyObject* data, std::optional<DType> dtype) {
  if (IsTensor(data)) {
    Tensor detached = ApplyUnary(OpId::detach, TensorOf(data));
    if (!detached) return Tensor();
    if (dtype && detached->spec().dtype != *dtype) {
      return ApplyTo(detached, *dtype);
    }
    return ApplyUnary(OpId::clone, detached);
  }
  if (PyObject_CheckBuffer(data) != 0)
    return Cast(PutBuffer(data, nullptr), dtype);
  return MakeTensorFromList(data, dtype);
}

void AppendFactoryFunctions(std::vector<PyMethodDef>* functions) {
  functions->push_back(
      {"tensor", AsPyCFunction(TensorFunction), METH_VARARGS | METH_KEYWORDS,
       "tensor(data, *, dtype=None, device=None, requires_grad=False, "
       "pin_memory=False)\n--\n\nA new tensor with a copy of data: an array, "
       "nested lists, a number, a tensor."});
  functions->push_back(
      {"as_tensor", AsPyCFunction(AsTensorFunction),
       METH_VARARGS | METH_KEYWORDS,
       "as_tensor(data, dtype=None, device=None)\n--\n\nThe data as a tensor; "
       "copied only if need be."});
  functions->push_back(
      {"from_numpy", FromNumpy, METH_O,
       "from_numpy(ndarray, /)\n--\n\nA tensor with the array's elements. Both "
       "look like one memory, whatever the size: what the program writes into "
       "the array is in the tensor, and what ops write into the tensor is in "
       "the array. They are one where the array came from a tensor's numpy() "
       "or from empty_numpy(). The daemon has a copy of any other, which is "
       "compared with the array before each op that uses the tensor, for as "
       "long as the program has the array: torch.tensor(array) does without."});
  functions->push_back({"_empty_shared", EmptyShared, METH_VARARGS, nullptr});
  functions->push_back({"_empty_bytes", EmptyBytes, METH_VARARGS, nullptr});
  functions->push_back({"_from_bytes", FromBytes, METH_VARARGS, nullptr});
}

}  // namespace holdfast::python
