// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors from nested lists, by PyTorch's rules: the shape is that of the
// first elements, every branch must agree, floats make float32, integers
// int64, all-bool data bool.

#include <cmath>
#include <cstring>
#include <limits>

#include "python_client/src/argument.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Session;
using client::Tensor;

namespace {

// What lies on the way down: sequences, and below them numbers. Tensors and
// arrays with dimensions are sequences too (rare, and read item by item).
bool IsSequence(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return true;
  if (PyUnicode_Check(object)) return false;
  if (IsTensor(object)) return TensorOf(object)->spec().rank() > 0;
  return PySequence_Check(object) != 0;
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
  virtual bool VisitNumber(const AttrValue& number) = 0;
  virtual bool VisitComplex(Complex<double> number) = 0;

 private:
  bool VisitLeaf(PyObject* object) {
    PyRef item;
    if (IsTensor(object)) {
      item = PyRef(ReadItem(TensorOf(object)));
      if (!item) return false;
      object = item.get();
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
  DType result() const {
    if (category_ == DTypeCategory::kComplex) return DefaultComplex();
    if (!seen_ || category_ == DTypeCategory::kFloat) return g_default_float;
    return category_ == DTypeCategory::kInteger ? DType::kInt64 : DType::kBool;
  }

 protected:
  bool VisitNumber(const AttrValue& number) override {
    seen_ = true;
    DTypeCategory category = DTypeCategory::kBool;
    if (std::holds_alternative<int64_t>(number)) {
      category = DTypeCategory::kInteger;
    } else if (std::holds_alternative<double>(number)) {
      category = DTypeCategory::kFloat;
    }
    if (category > category_) category_ = category;
    return true;
  }
  bool VisitComplex(Complex<double>) override {
    seen_ = true;
    category_ = DTypeCategory::kComplex;
    return true;
  }

 private:
  bool seen_ = false;
  DTypeCategory category_ = DTypeCategory::kBool;
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
  Session* session = DefaultSession();
  if (session == nullptr) return Tensor();
  absl::StatusOr<Tensor> tensor = session->Put(*dtype, shape, elements.data());
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
