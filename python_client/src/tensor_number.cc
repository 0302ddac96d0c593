// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Operators on tensors. These slots are the shortest way from `a + b` to the
// session: no argument tuple, no name lookup, no Python frame.

#include "absl/base/optimization.h"
#include "python_client/src/argument.h"
#include "python_client/src/call.h"
#include "python_client/src/errors.h"
#include "python_client/src/overrides.h"
#include "python_client/src/read.h"
#include "python_client/src/saved_tensors_binding.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

using client::Tensor;

// The tensors of two operands for the length of a call that holds the GIL:
// the objects keep them alive, so that counting references, which would cost
// more than everything else here, is left out. Session::Apply copies what it
// keeps, and python::Apply what it needs without the GIL.
class BorrowedPair {
 public:
  BorrowedPair() = default;
  ~BorrowedPair() {
    for (Tensor& tensor : tensors_) static_cast<void>(tensor.release());
  }
  BorrowedPair(const BorrowedPair&) = delete;
  BorrowedPair& operator=(const BorrowedPair&) = delete;

  void Set(size_t i, const Tensor& tensor) {
    tensors_[i] = Tensor::Adopt(tensor.get());
  }
  absl::Span<const Tensor> span() const { return tensors_; }

 private:
  Tensor tensors_[2];
};

// Whether an operand's class, or a mode, takes the operator over; then *result
// is what it made of it. The call is one of Tensor's method if the first
// operand is one, else of the function. `b` may be null.
bool TakesOperator(const OpSchema& schema, bool inplace, PyObject* a,
                   PyObject* b, PyObject** result) {
  PyObject* const args[2] = {a, b};
  return TakenOver({IsTensor(a), inplace ? schema.name + "_" : schema.name,
                    nullptr, args, b != nullptr ? 2 : 1, nullptr},
                   result);
}

PyObject* BinaryOp(OpId id, PyObject* a, PyObject* b, bool inplace) {
  const OpSchema& schema = SchemaOf(id);
  PyObject* taken = nullptr;
  if (ABSL_PREDICT_FALSE(g_overrides) &&
      TakesOperator(schema, inplace, a, b, &taken)) {
    return taken;
  }
  Attrs attrs(&schema);
  PyObject* const operands[2] = {a, b};
  const bool is_tensor[2] = {IsTensor(a), IsTensor(b)};
  Tensor converted;
  for (size_t i = 0; i < 2; ++i) {
    if (is_tensor[i]) continue;
    AttrValue number;
    const Converted result = AsNumber(operands[i], &number);
    if (result == Converted::kError) return nullptr;
    if (result == Converted::kYes) {
      attrs.Set(schema.params[i].attr_slot, std::move(number));
      continue;
    }
    if (PyComplex_Check(operands[i])) {
      const TensorSpec& other = TensorOf(operands[1 - i])->spec();
      converted = MakeComplexScalar(operands[i], other.dtype);
      if (!converted) return nullptr;
      continue;
    }
    // NumPy's arrays mix with tensors, as in PyTorch.
    if (!IsNumpyArray(operands[i])) {
      if (TakesOperator(schema, inplace, a, b, &taken)) return taken;
      Py_RETURN_NOTIMPLEMENTED;
    }
    converted = MakeTensor(operands[i], std::nullopt);
    if (!converted) return nullptr;
  }
  // From here on no Python code runs but saved tensors' hooks.
  BorrowedPair inputs;
  for (size_t i = 0; i < 2; ++i) {
    if (is_tensor[i]) {
      inputs.Set(i, TensorOf(operands[i]));
    } else if (converted) {
      inputs.Set(i, converted);
    }
  }
  const ScopedOperands scoped(operands);
  return Call(attrs, inputs.span(), inplace, a);
}

template <OpId kId>
PyObject* Binary(PyObject* a, PyObject* b) {
  return BinaryOp(kId, a, b, false);
}

template <OpId kId>
PyObject* InplaceBinary(PyObject* a, PyObject* b) {
  return BinaryOp(kId, a, b, true);
}

template <OpId kId>
PyObject* Unary(PyObject* self) {
  const OpSchema& schema = SchemaOf(kId);
  PyObject* taken = nullptr;
  if (ABSL_PREDICT_FALSE(g_overrides) &&
      TakesOperator(schema, false, self, nullptr, &taken)) {
    return taken;
  }
  const Attrs attrs(&schema);
  return Call(attrs, absl::MakeConstSpan(&TensorOf(self), 1), false, self);
}

template <bool kInplaceForm>
PyObject* Power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    return RaiseUnsupported("holdfast has no pow() with a modulus.");
  }
  return BinaryOp(OpId::pow, a, b, kInplaceForm);
}

PyObject* Matmul(PyObject* a, PyObject* b) {
  const OpSchema& schema = SchemaOf(OpId::matmul);
  const bool plain = IsTensor(a) && IsTensor(b);
  PyObject* taken = nullptr;
  if (ABSL_PREDICT_FALSE(g_overrides || !plain) &&
      TakesOperator(schema, false, a, b, &taken)) {
    return taken;
  }
  if (!plain) Py_RETURN_NOTIMPLEMENTED;
  const Tensor inputs[2] = {TensorOf(a), TensorOf(b)};
  PyObject* const operands[2] = {a, b};
  const ScopedOperands scoped(operands);
  return Call(Attrs(&schema), inputs, false, nullptr);
}

// ~: logical for bool; -x - 1, all bits turned, for integers.
PyObject* Invert(PyObject* self) {
  PyObject* taken = nullptr;
  if (ABSL_PREDICT_FALSE(g_overrides) &&
      TakenOver({true, "__invert__", nullptr, &self, 1, nullptr}, &taken)) {
    return taken;
  }
  const Tensor& tensor = TensorOf(self);
  if (tensor->spec().dtype == DType::kBool) {
    return Unary<OpId::logical_not>(self);
  }
  if (!IsIntegral(tensor->spec().dtype)) {
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and "
                    "Boolean-type tensors");
    return nullptr;
  }
  Attrs attrs(&SchemaOf(OpId::bitwise_xor));
  attrs.Set(attrs.schema().params[1].attr_slot, int64_t{-1});
  const Tensor inputs[2] = {tensor, Tensor()};
  return Call(attrs, inputs, false, self);
}

PyObject* Positive(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyObject* RichCompare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return BinaryOp(OpId::lt, a, b, false);
    case Py_LE:
      return BinaryOp(OpId::le, a, b, false);
    case Py_EQ:
      return BinaryOp(OpId::eq, a, b, false);
    case Py_NE:
      return BinaryOp(OpId::ne, a, b, false);
    case Py_GT:
      return BinaryOp(OpId::gt, a, b, false);
    default:
      return BinaryOp(OpId::ge, a, b, false);
  }
}

// By identity, as in PyTorch: == compares elements.
Py_hash_t Hash(PyObject* self) {
  const auto bits = reinterpret_cast<uintptr_t>(self);
  return static_cast<Py_hash_t>((bits >> 4) | (bits << (8 * sizeof(bits) - 4)));
}

int Bool(PyObject* self) {
  const Tensor& tensor = TensorOf(self);
  if (!Settle(tensor)) return -1;
  const int64_t numel = tensor->spec().numel();
  if (numel != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "Boolean value of Tensor with %s is ambiguous",
                 numel == 0 ? "no values" : "more than one value");
    return -1;
  }
  PyRef item(ReadItem(tensor));
  return item ? PyObject_IsTrue(item.get()) : -1;
}

PyObject* Int(PyObject* self) {
  PyRef item(ReadItem(TensorOf(self)));
  return item ? PyNumber_Long(item.get()) : nullptr;
}

PyObject* Float(PyObject* self) {
  PyRef item(ReadItem(TensorOf(self)));
  return item ? PyNumber_Float(item.get()) : nullptr;
}

PyObject* Index(PyObject* self) {
  if (!Settle(TensorOf(self))) return nullptr;
  const TensorSpec& spec = TensorOf(self)->spec();
  if (!IsIntegral(spec.dtype) || spec.numel() != 1) {
    PyErr_SetString(PyExc_TypeError,
                    "only integer tensors of a single element can be "
                    "converted to an index");
    return nullptr;
  }
  PyRef item(ReadItem(TensorOf(self)));
  return item ? PyNumber_Index(item.get()) : nullptr;
}

Py_ssize_t Length(PyObject* self) {
  if (!Settle(KnownOf(self))) return -1;
  const TensorSpec& spec = KnownOf(self)->spec();
  if (spec.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(spec.shape[0]);
}

template <typename F>
void Add(std::vector<PyType_Slot>* slots, int slot, F function) {
  slots->push_back({slot, reinterpret_cast<void*>(function)});
}

}  // namespace

void AppendNumberSlots(std::vector<PyType_Slot>* slots) {
  Add(slots, Py_nb_add, Binary<OpId::add>);
  Add(slots, Py_nb_subtract, Binary<OpId::sub>);
  Add(slots, Py_nb_multiply, Binary<OpId::mul>);
  Add(slots, Py_nb_true_divide, Binary<OpId::div>);
  Add(slots, Py_nb_floor_divide, Binary<OpId::floor_divide>);
  Add(slots, Py_nb_remainder, Binary<OpId::remainder>);
  Add(slots, Py_nb_power, Power<false>);
  Add(slots, Py_nb_and, Binary<OpId::bitwise_and>);
  Add(slots, Py_nb_or, Binary<OpId::bitwise_or>);
  Add(slots, Py_nb_xor, Binary<OpId::bitwise_xor>);
  Add(slots, Py_nb_matrix_multiply, Matmul);
  Add(slots, Py_nb_inplace_add, InplaceBinary<OpId::add>);
  Add(slots, Py_nb_inplace_subtract, InplaceBinary<OpId::sub>);
  Add(slots, Py_nb_inplace_multiply, InplaceBinary<OpId::mul>);
  Add(slots, Py_nb_inplace_true_divide, InplaceBinary<OpId::div>);
  Add(slots, Py_nb_inplace_floor_divide, InplaceBinary<OpId::floor_divide>);
  Add(slots, Py_nb_inplace_remainder, InplaceBinary<OpId::remainder>);
  Add(slots, Py_nb_inplace_power, Power<true>);
  Add(slots, Py_nb_inplace_and, InplaceBinary<OpId::bitwise_and>);
  Add(slots, Py_nb_inplace_or, InplaceBinary<OpId::bitwise_or>);
  Add(slots, Py_nb_inplace_xor, InplaceBinary<OpId::bitwise_xor>);
  Add(slots, Py_nb_negative, Unary<OpId::neg>);
  Add(slots, Py_nb_positive, Positive);
  Add(slots, Py_nb_absolute, Unary<OpId::abs>);
  Add(slots, Py_nb_invert, Invert);
  Add(slots, Py_nb_bool, Bool);
  Add(slots, Py_nb_int, Int);
  Add(slots, Py_nb_float, Float);
  Add(slots, Py_nb_index, Index);
  Add(slots, Py_tp_richcompare, RichCompare);
  Add(slots, Py_tp_hash, Hash);
  Add(slots, Py_mp_length, Length);
}

}  // namespace holdfast::python
