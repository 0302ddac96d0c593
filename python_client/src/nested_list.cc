// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors from nested lists, by PyTorch's rules: the shape is that of the
// first elements, every branch must agree, Python's floats make float32, its
// integers int64; NumPy's scalars and tensors count with their own types.

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "python_client/src/argument.h"
#include "python_client/src/buffer_format.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Session;
using client::Tensor;

namespace {

// What lies on the way down: sequences, and below them numbers. Arrays with
// dimensions are sequences, too; tensors are numbers, whatever their rank,
// where they come first.
bool IsSequence(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return true;
  if (PyUnicode_Check(object) || IsTensor(object)) return false;
  return PySequence_Check(object) != 0;
}

// One of NumPy's scalars: what is no number of Python's own, but has a buffer.
bool IsForeignScalar(PyObject* object) {
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) ||
      PyBool_Check(object) || PyComplex_CheckExact(object)) {
    return false;
  }
  return PyObject_CheckBuffer(object) != 0;
}

// Its type; nothing where that is no element type.
std::optional<DType> ForeignType(PyObject* scalar) {
  Py_buffer view;
  if (PyObject_GetBuffer(scalar, &view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  DType dtype;
  const bool known = ParseBufferFormat(view.format, view.itemsize, &dtype);
  PyBuffer_Release(&view);
  return known ? std::optional<DType>(dtype) : std::nullopt;
}

bool DiscoverShape(PyObject* data, Dims* shape) {
  PyRef level = PyRef::Borrowed(data);
  while (IsSequence(level.get())) {
    const Py_ssize_t size = PySequence_Size(level.get());
    if (size < 0) return false;
    shape->push_back(size);
    if (shape->size() > static_cast<size_t>(kMaxRank)) {
      PyErr_Format(PyExc_ValueError, "too many dimensions (more than %d)",
                   kMaxRank);
      return false;
    }
    if (size == 0) return true;
    PyRef first(PySequence_GetItem(level.get(), 0));
    if (!first) return false;
    level = std::move(first);
  }
  return true;
}

// Walks all leaves in order, checking the shape on the way.
class Walk {
 public:
  explicit Walk(const Dims& shape) : shape_(shape) {}
  virtual ~Walk() = default;

  bool Visit(PyObject* object, size_t dim = 0) {
    if (dim == shape_.size()) return VisitLeaf(object);
    if (IsTensor(object)) return VisitRows(object, dim);
    if (!IsSequence(object)) {
      PyRef type = TypeName(object);
      if (type) {
        PyErr_Format(PyExc_TypeError, "expected a sequence at dim %zu (got %U)",
                     dim, type.get());
      }
      return false;
    }
    const Py_ssize_t size = PySequence_Size(object);
    if (size < 0) return false;
    if (size != shape_[dim]) {
      PyErr_Format(PyExc_ValueError,
                   "expected sequence of length %lld at dim %zu (got %zd)",
                   static_cast<long long>(shape_[dim]), dim, size);
      return false;
    }
    const bool is_list = PyList_Check(object);
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyRef item = is_list ? PyRef::Borrowed(PyList_GetItem(object, i))
                           : PyRef(PySequence_GetItem(object, i));
      if (!item || !Visit(item.get(), dim + 1)) return false;
    }
    return true;
  }

 protected:
  // A number that has a type of its own. True: VisitNumber need not see it.
  virtual bool VisitType(DType) { return false; }
  virtual bool VisitNumber(const AttrValue& number) = 0;
  virtual bool VisitComplex(Complex<double> number) = 0;

 private:
  // A tensor where the first branch has a sequence.
  bool VisitRows(PyObject* object, size_t dim) {
    const Tensor& tensor = TensorOf(object);
    if (!Settle(tensor)) return false;
    const TensorSpec& spec = tensor->spec();
    if (spec.rank() == 0 || spec.shape[0] != shape_[dim]) {
      PyErr_Format(PyExc_ValueError,
                   "expected sequence of length %lld at dim %zu (got %s)",
                   static_cast<long long>(shape_[dim]), dim,
                   spec.ToString().c_str());
      return false;
    }
    for (int64_t i = 0; i < shape_[dim]; ++i) {
      PyRef index(PyLong_FromLongLong(i));
      PyRef item(index ? PyObject_GetItem(object, index.get()) : nullptr);
      if (!item || !Visit(item.get(), dim + 1)) return false;
    }
    return true;
  }

  bool VisitLeaf(PyObject* object) {
    PyRef item;
    if (IsTensor(object)) {
      const Tensor& tensor = TensorOf(object);
      if (!Settle(tensor)) return false;
      if (tensor->spec().numel() != 1) {
        PyErr_Format(PyExc_ValueError,
                     "only one element tensors can be converted to Python "
                     "scalars (got %s at dim %zu)",
                     tensor->spec().ToString().c_str(), shape_.size());
        return false;
      }
      if (VisitType(tensor->spec().dtype)) return true;
      item = PyRef(ReadItem(tensor));
      if (!item) return false;
      object = item.get();
    } else if (IsForeignScalar(object) && !IsSequence(object)) {
      const std::optional<DType> dtype = ForeignType(object);
      if (dtype && VisitType(*dtype)) return true;
      item = PyRef(PyObject_CallMethod(object, "item", nullptr));
      if (item) {
        object = item.get();
      } else {
        PyErr_Clear();
      }
    }
    if (PyComplex_Check(object)) {  // NumPy's complex128 is one
      return VisitComplex(
          {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)});
    }
    AttrValue number;
    const Converted result = AsNumber(object, &number);
    if (result == Converted::kNo) {
      PyRef type = TypeName(object);
      if (type && IsSequence(object)) {
        PyErr_Format(PyExc_ValueError,
                     "only one element tensors can be converted to Python "
                     "scalars (got %U at dim %zu)",
                     type.get(), shape_.size());
      } else if (type) {
        PyErr_Format(PyExc_TypeError, "could not infer dtype of %U",
                     type.get());
      }
    }
    return result == Converted::kYes && VisitNumber(number);
  }

  const Dims& shape_;
};

class InferType final : public Walk {
 public:
  using Walk::Walk;
  DType result() const { return type_.value_or(g_default_float); }

 protected:
  bool VisitType(DType dtype) override {
    type_ = type_ ? PromoteTypes(*type_, dtype) : dtype;
    return true;
  }
  bool VisitNumber(const AttrValue& number) override {
    if (std::holds_alternative<int64_t>(number))
      return VisitType(DType::kInt64);
    return VisitType(std::holds_alternative<double>(number) ? g_default_float
                                                            : DType::kBool);
  }
  bool VisitComplex(Complex<double>) override {
    return VisitType(DefaultComplex());
  }

 private:
  std::optional<DType> type_;
};

class Write final : public Walk {
 public:
  Write(const Dims& shape, DType dtype, char* out)
      : Walk(shape), dtype_(dtype), out_(out) {}

 protected:
  bool VisitNumber(const AttrValue& number) override {
    switch (dtype_) {
      case DType::kBool:
        return Store<uint8_t>(AttrAsDouble(number) != 0.0);
      case DType::kFloat32:
        return Store(static_cast<float>(AttrAsDouble(number)));
      case DType::kFloat64:
        return Store(AttrAsDouble(number));
      case DType::kUInt8:
        return StoreInt<uint8_t>(number);
      case DType::kInt8:
        return StoreInt<int8_t>(number);
      case DType::kInt16:
        return StoreInt<int16_t>(number);
      case DType::kInt32:
        return StoreInt<int32_t>(number);
      case DType::kInt64:
        return StoreInt<int64_t>(number);
      case DType::kFloat16:
        return Store(Float16::Of(static_cast<float>(AttrAsDouble(number))));
      case DType::kBFloat16:
        return Store(BFloat16::Of(static_cast<float>(AttrAsDouble(number))));
      case DType::kComplex64:
      case DType::kComplex128:
        return VisitComplex(AttrAsDouble(number));
    }
    return false;
  }

  bool VisitComplex(Complex<double> number) override {
    if (dtype_ == DType::kComplex128) return Store(number);
    if (dtype_ == DType::kComplex64) {
      return Store(Complex<float>(static_cast<float>(number.real),
                                  static_cast<float>(number.imag)));
    }
    PyErr_Format(PyExc_RuntimeError,
                 "value cannot be converted to type %s without overflow",
                 std::string(DTypeName(dtype_)).c_str());
    return false;
  }

 private:
  template <typename T>
  bool Store(T value) {
    std::memcpy(out_, &value, sizeof(value));
    out_ += sizeof(value);
    return true;
  }

  template <typename T>
  bool StoreInt(const AttrValue& number) {
    // PyTorch refuses NaN and infinities; other floats are truncated.
    if (std::holds_alternative<double>(number) &&
        !std::isfinite(std::get<double>(number))) {
      PyErr_SetString(PyExc_ValueError,
                      "cannot convert float NaN or infinity to integer");
      return false;
    }
    const int64_t value = AttrAsInt(number);
    if (value < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
        value > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      PyErr_Format(PyExc_RuntimeError,
                   "value cannot be converted to type %s without overflow",
                   std::string(DTypeName(dtype_)).c_str());
      return false;
    }
    return Store(static_cast<T>(value));
  }

  DType dtype_;
  char* out_;
};

}  // namespace

Tensor MakeTensorFromList(PyObject* data, std::optional<DType> dtype) {
  Dims shape;
  if (!DiscoverShape(data, &shape)) return Tensor();
  if (!dtype) {
    InferType infer(shape);
    if (!infer.Visit(data)) return Tensor();
    dtype = infer.result();
  }
  const absl::Status fits = CheckShape(*dtype, shape);
  if (!fits.ok()) {
    RaiseStatus(fits);
    return Tensor();
  }
  const int64_t bytes =
      NumElements(shape) * static_cast<int64_t>(ItemSize(*dtype));
  std::vector<char> elements(static_cast<size_t>(bytes));
  // The data may change between the walks (a user's __getitem__); Write checks
  // the shape again, so it never leaves the buffer.
  Write write(shape, *dtype, elements.data());
  if (!write.Visit(data)) return Tensor();
  int device = ScopedPutDevice::now();
  Session* session = SessionOfDevice(&device);
  if (session == nullptr) return Tensor();
  absl::StatusOr<Tensor> tensor =
      session->Put(*dtype, shape, elements.data(), device, nullptr);
  if (!tensor.ok()) {
    RaiseStatus(tensor.status());
    return Tensor();
  }
  return *std::move(tensor);
}

Tensor MakeComplexScalar(PyObject* number, DType like) {
  const bool wide = RealType(like) == DType::kFloat64;
  return MakeTensorFromList(number,
                            wide ? DType::kComplex128 : DType::kComplex64);
}

}  // namespace holdfast::python
