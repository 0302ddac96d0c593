// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inference: from input specs and attributes to output specs, once, for both
// sides. The client calls it to answer `.shape` and to raise at the user's
// line; the server calls it again because it believes no client. One function
// per rule, in infer_<family>.cc.
// Thread-safety: pure functions.
#ifndef HOLDFAST_OPS_INFER_H_
#define HOLDFAST_OPS_INFER_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// Tensor inputs in slot order; a null pointer is an absent one (an optional
// tensor, or an operand passed as a number: then its attribute slot is set).
// For list ops the lists follow each other, all of equal length.
using SpecList = absl::Span<const TensorSpec* const>;

struct OutputSpec {
  OutputSpec() = default;
  OutputSpec(const TensorSpec& s, int a) : spec(s), alias(a) {}
  OutputSpec(TensorSpec&& s, int a) : spec(std::move(s)), alias(a) {}

  TensorSpec spec;
  int alias = -1;  // >= 0: shares the storage of that input (views)
};
using OutputSpecs = absl::InlinedVector<OutputSpec, 1>;

// Fills `out`, one entry per output. Errors are InvalidArgument or OutOfRange
// (indices) with "[op] what must hold. Got a=f32[2,3], b=f32[4,5]."
// REQUIRES: attributes passed CheckAttr; required tensors are not null;
// `inputs` are valid specs (CheckFits). Must be safe on every other input.
using InferFn = absl::Status (*)(const Attrs& attrs, SpecList inputs,
                                 OutputSpecs* out);

// The one formatter of argument errors: "[op] message. Got input=f32[2,3],
// other=f32[4,5]." with the schema's parameter names.
absl::Status OpError(const Attrs& attrs, SpecList inputs,
                     absl::string_view message);
// The same with a code other than InvalidArgument.
absl::Status OpErrorAs(absl::StatusCode code, const Attrs& attrs,
                       SpecList inputs, absl::string_view message);

// Runs the schema's rule after checking what holds for every op: the number
// of inputs, required tensors and attributes, supported dtypes. With
// `inplace`, also checks that the op has an in-place form and that the result
// fits input 0 (shape equal, dtype castable, no element written twice), and
// returns input 0's spec with alias 0. Output specs have passed CheckShape,
// except that those of ops with kUnknownSizes may hold kUnknownSize.
absl::Status InferOp(const Attrs& attrs, SpecList inputs, bool inplace,
                     OutputSpecs* out);

// The computation type of an elementwise op over tensors and numbers, as
// torch.result_type: tensors with rank >= 1, then rank 0, then numbers; a lower
// group matters only when its category (bool < integer < float) is higher.
// Reads the Operand parameters where the op has some (not where's condition),
// else every input; scatter computes in the type of its input.
DType ResultType(const Attrs& attrs, SpecList inputs);

// The dimensions that a reduction's `dim` list names, as a bit mask over input
// 0's dimensions. None and the empty list set every bit.
absl::Status ReducedDims(const Attrs& attrs, SpecList inputs, uint64_t* mask);

// A rule has this signature. op_schema.cc declares the rules that ops.def
// names: nothing here changes with a new one, so that kernels need not compile
// again.
#define HOLDFAST_INFER(name) \
  absl::Status name(const Attrs& attrs, SpecList inputs, OutputSpecs* out)

}  // namespace holdfast

#endif  // HOLDFAST_OPS_INFER_H_
