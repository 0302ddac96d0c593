// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of gradient rules: each function emits one op (or the few
// that an identity needs) through the context, so that a rule reads as its
// formula. Null values pass through as null: after an error nothing runs.
// Thread-safety: as the context's.
#ifndef HOLDFAST_AUTOGRAD_RULE_OPS_H_
#define HOLDFAST_AUTOGRAD_RULE_OPS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "autograd/grad_rule.h"
#include "ops/op_id.h"

namespace holdfast {

using ShapeSpan = absl::Span<const int64_t>;

// ---- elementwise
Value Unary(GradContext& c, OpId op, const Value& a);
// Any row "(Operand input, Operand other)".
Value Binary(GradContext& c, OpId op, const Operand& a, const Operand& b);
inline Value Neg(GradContext& c, const Value& a) {
  return Unary(c, OpId::neg, a);
}
inline Value Add(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::add, a, b);
}
inline Value Sub(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::sub, a, b);
}
inline Value Mul(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::mul, a, b);
}
inline Value Div(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::div, a, b);
}
inline Value Pow(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::pow, a, b);
}
inline Value Equal(GradContext& c, const Operand& a, const Operand& b) {
  return Binary(c, OpId::eq, a, b);
}
inline Value And(GradContext& c, const Value& a, const Value& b) {
  return Binary(c, OpId::logical_and, a, b);
}
// `condition ? a : b`; numbers take the other operand's type.
Value Where(GradContext& c, const Value& condition, const Operand& a,
            const Operand& b);
// grad times the slope of `op` (activation_backward, with its numbers) at x, of
// real numbers; over the memory of `grad` where nobody else has it.
Value Slope(GradContext& c, Value grad, const Value& x, const std::string& op,
            const AttrValue& a = 0.0, const AttrValue& b = 0.0,
            const AttrValue& k = 0.0);
// `a` in the dtype of `like`.
Value CastLike(GradContext& c, const Value& a, const Value& like);

// ---- shapes
// `a` with the elements of `shape`, as a view where strides allow.
Value ViewAs(GradContext& c, const Value& a, ShapeSpan shape);
Value Expand(GradContext& c, const Value& a, ShapeSpan shape);
Value Transpose(GradContext& c, const Value& a, int dim0, int dim1);
// The last two dimensions swapped.
Value MatrixTranspose(GradContext& c, const Value& a);
Value Flip(GradContext& c, const Value& a, const Dims& dims);
// Narrows dimension `dim` to [start, end) in steps.
Value Slice(GradContext& c, const Value& a, int dim, int64_t start, int64_t end,
            int64_t step = 1);
// Zeros appended at the end of each dimension up to `shape`; a scalar counts as
// a vector of one element.
Value PadTo(GradContext& c, const Value& a, ShapeSpan shape);
Value Zeros(GradContext& c, const TensorSpec& like);
// `a` moved along `dim` by one place: a[i - 1], or a[i + 1] with `back`, and
// `fill` at the end that has no neighbour.
Value Shift(GradContext& c, const Value& a, int dim, bool back, int64_t fill);

// ---- sums
// Over `dims` (not empty).
Value Sum(GradContext& c, const Value& a, const Dims& dims, bool keepdim);
// The adjoint of broadcasting: `a` summed down to `shape`.
Value SumTo(GradContext& c, const Value& a, ShapeSpan shape);
// The adjoint of a sum over the dims in `mask`: the result of a reduction of
// `input`, kept or not, with its reduced dimensions restored at size 1.
Value RestoreDims(GradContext& c, const Value& a, const TensorSpec& input,
                  uint64_t mask);

Value MatMul(GradContext& c, const Value& a, const Value& b);

// Hands `grad`, of the broadcast shape, to input i.
void SetBroadcast(GradContext& c, int i, const Value& grad);

// Attribute `dim` of the context's node, made positive for `rank`.
int DimAttr(const GradContext& c, int rank);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_RULE_OPS_H_
