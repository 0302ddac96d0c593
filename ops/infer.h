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
// except that those of a kDataShape op may hold kUnknownSize.
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

// infer_creation.cc
HOLDFAST_INFER(InferFull);     // size, fill_value, dtype
HOLDFAST_INFER(InferSized);    // size, dtype (default float32)
HOLDFAST_INFER(InferArange);   // start, end, step, dtype
HOLDFAST_INFER(InferEye);      // n, m, dtype
HOLDFAST_INFER(InferRandInt);  // low, high, size, dtype (default int64)
HOLDFAST_INFER(InferRandPerm);
// infer_elementwise.cc
HOLDFAST_INFER(InferUnary);         // same dtype
HOLDFAST_INFER(InferUnaryNumeric);  // same dtype, not bool
HOLDFAST_INFER(InferUnaryFloat);    // integers become float32
HOLDFAST_INFER(InferUnaryBool);     // result bool
HOLDFAST_INFER(InferBinary);        // promoted, broadcast
HOLDFAST_INFER(InferBinaryNoBool);  // promoted, broadcast; bool - bool fails
HOLDFAST_INFER(InferDiv);           // promoted, at least float32
HOLDFAST_INFER(InferCompare);       // broadcast, result bool
HOLDFAST_INFER(InferBitwise);       // promoted; floats fail
HOLDFAST_INFER(InferWhere);         // condition bool
HOLDFAST_INFER(InferClamp);
HOLDFAST_INFER(InferTo);       // dtype
HOLDFAST_INFER(InferClone);    // same spec, contiguous
HOLDFAST_INFER(InferCopy);     // input 0's spec; input 1 broadcasts to it
HOLDFAST_INFER(InferDropout);  // (output, mask bool)
// infer_reduce.cc
HOLDFAST_INFER(InferSum);     // dim, keepdim, dtype; bool and ints -> int64
HOLDFAST_INFER(InferMean);    // floats only
HOLDFAST_INFER(InferAmax);    // same dtype, dim list
HOLDFAST_INFER(InferArgmax);  // int64, one dim or all
HOLDFAST_INFER(InferAll);     // bool
HOLDFAST_INFER(InferCumsum);
// infer_view.cc
HOLDFAST_INFER(InferView);  // size with at most one -1
HOLDFAST_INFER(InferDetach);
HOLDFAST_INFER(InferPermute);
HOLDFAST_INFER(InferTranspose);
HOLDFAST_INFER(InferExpand);
HOLDFAST_INFER(InferSlice);
HOLDFAST_INFER(InferSelect);
HOLDFAST_INFER(InferUnsqueeze);
HOLDFAST_INFER(InferSqueeze);
HOLDFAST_INFER(InferAsStrided);
// infer_index.cc
HOLDFAST_INFER(InferCat);
HOLDFAST_INFER(InferGather);       // input, dim, index int64
HOLDFAST_INFER(InferScatter);      // input, dim, index, src
HOLDFAST_INFER(InferIndexSelect);  // input, dim, index 1-D int64/int32
HOLDFAST_INFER(InferIndexAdd);     // input, dim, index, source
HOLDFAST_INFER(InferFlip);
HOLDFAST_INFER(InferTri);  // tril, triu
HOLDFAST_INFER(InferPad);
HOLDFAST_INFER(InferSizedLike);  // grad + input_size: *_backward of views
// infer_mask.cc
HOLDFAST_INFER(InferNonzero);
HOLDFAST_INFER(InferIndexMask);
HOLDFAST_INFER(InferMaskPut);
// infer_matmul.cc
HOLDFAST_INFER(InferMatmul);
HOLDFAST_INFER(InferLinear);
// infer_conv.cc
HOLDFAST_INFER(InferConv2d);
HOLDFAST_INFER(InferConv2dBackwardInput);
HOLDFAST_INFER(InferConv2dBackwardWeight);
// infer_pool.cc
HOLDFAST_INFER(InferMaxPool2d);  // (output, indices int64 into H*W)
HOLDFAST_INFER(InferMaxPool2dBackward);
HOLDFAST_INFER(InferMaxPool2dGather);
HOLDFAST_INFER(InferAvgPool2d);
HOLDFAST_INFER(InferAvgPool2dBackward);
// infer_softmax.cc
HOLDFAST_INFER(InferSoftmax);
HOLDFAST_INFER(InferSoftmaxBackward);
HOLDFAST_INFER(InferNllLoss);  // (output, total_weight)
HOLDFAST_INFER(InferNllLossBackward);
// infer_optim.cc
HOLDFAST_INFER(InferSgd);
HOLDFAST_INFER(InferAdam);

}  // namespace holdfast

#endif  // HOLDFAST_OPS_INFER_H_
