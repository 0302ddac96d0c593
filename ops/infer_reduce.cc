// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of reductions. A missing or empty dimension list means all of them.
#include <cmath>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

void AddReduced(DType dtype, const TensorSpec& input, uint64_t mask,
                bool keepdim, OutputSpecs* out) {
  Dims shape;
  for (int i = 0; i < input.rank(); ++i) {
    if ((mask >> i & 1) == 0) {
      shape.push_back(input.shape[i]);
    } else if (keepdim) {
      shape.push_back(1);
    }
  }
  AddOutput(out, dtype, shape);
}

absl::Status Reduce(const Attrs& attrs, SpecList inputs, DType dtype,
                    OutputSpecs* out) {
  uint64_t mask = 0;
  absl::Status s = ReducedDims(attrs, inputs, &mask);
  if (!s.ok()) return s;
  AddReduced(dtype, *inputs[0], mask, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

// The largest of no elements does not exist.
absl::Status CheckNotEmpty(const Attrs& attrs, SpecList inputs, uint64_t mask) {
  const TensorSpec& input = *inputs[0];
  if (input.numel() != 0) return absl::OkStatus();
  for (int i = 0; i < input.rank(); ++i) {
    if ((mask >> i & 1) != 0 && input.shape[i] == 0) {
      return BadIndex(attrs, inputs, attrs.schema().name,
                      "(): Expected reduction dim ", i,
                      " to have non-zero size");
    }
  }
  return absl::OkStatus();
}

std::string NoDimGiven(const Attrs& attrs) {
  return absl::StrCat(attrs.schema().name,
                      "(): Expected reduction dim to be specified for "
                      "input.numel() == 0. Specify the reduction dim with the "
                      "'dim' argument");
}

constexpr uint64_t kAllDims = ~uint64_t{0};

}  // namespace

HOLDFAST_INFER(InferSum) {
  const DType dtype = attrs.DTypeOr("dtype", SumType(inputs[0]->dtype));
  return Reduce(attrs, inputs, dtype, out);
}

HOLDFAST_INFER(InferMean) {
  const DType dtype = attrs.DTypeOr("dtype", inputs[0]->dtype);
  if (!IsDifferentiable(dtype)) {
    return Invalid(attrs, inputs, "mean(): could not infer output dtype. ",
                   attrs.None("dtype") ? "Input" : "Optional",
                   " dtype must be either a floating point or complex dtype. "
                   "Got: ",
                   TorchTypeName(dtype));
  }
  return Reduce(attrs, inputs, dtype, out);
}

HOLDFAST_INFER(InferNansum) {
  const DType dtype = inputs[0]->dtype;
  if (!IsFloat(dtype)) {
    return Invalid(attrs, inputs, "nansum of floating point only. Got ",
                   TorchTypeName(dtype));
  }
  return Reduce(attrs, inputs, dtype, out);
}

HOLDFAST_INFER(InferCountNonzero) {
  uint64_t mask = 0;
  absl::Status s = ReducedDims(attrs, inputs, &mask);
  if (!s.ok()) return s;
  AddReduced(DType::kInt64, *inputs[0], mask, /*keepdim=*/false, out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAmax) {
  uint64_t mask = 0;
  absl::Status s = ReducedDims(attrs, inputs, &mask);
  if (!s.ok()) return s;
  // argmax raises IndexError here, as in PyTorch.
  if (mask == kAllDims && inputs[0]->numel() == 0) {
    return Invalid(attrs, inputs, NoDimGiven(attrs));
  }
  if (s = CheckNotEmpty(attrs, inputs, mask); !s.ok()) return s;
  AddReduced(inputs[0]->dtype, *inputs[0], mask, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferArgmax) {
  uint64_t mask = kAllDims;
  if (attrs.None("dim")) {
    if (inputs[0]->numel() == 0) {
      return BadIndex(attrs, inputs, NoDimGiven(attrs));
    }
  } else {
    int dim = 0;
    absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
    if (!s.ok()) return s;
    mask = uint64_t{1} << dim;
  }
  absl::Status s = CheckNotEmpty(attrs, inputs, mask);
  if (!s.ok()) return s;
  if (inputs[0]->dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, DType::kBool);
  }
  AddReduced(DType::kInt64, *inputs[0], mask, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferAll) { return Reduce(attrs, inputs, DType::kBool, out); }

HOLDFAST_INFER(InferProd) {
  uint64_t mask = kAllDims;
  if (!attrs.None("dim")) {
    int dim = 0;
    absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
    if (!s.ok()) return s;
    mask = uint64_t{1} << dim;
  }
  const DType dtype = attrs.DTypeOr("dtype", SumType(inputs[0]->dtype));
  AddReduced(dtype, *inputs[0], mask, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferVarMean) {
  const DType dtype = inputs[0]->dtype;
  if (!IsFloat(dtype)) {
    return Invalid(attrs, inputs,
                   "std and var only support floating point and complex "
                   "dtypes. Got: ",
                   TorchTypeName(dtype));
  }
  if (!std::isfinite(attrs.Float("correction"))) {
    return Invalid(attrs, inputs, "correction must be finite");
  }
  absl::Status s = Reduce(attrs, inputs, dtype, out);
  if (!s.ok()) return s;
  return Reduce(attrs, inputs, dtype, out);
}

HOLDFAST_INFER(InferVectorNorm) {
  const DType dtype = inputs[0]->dtype;
  if (!IsFloat(dtype)) {
    return Invalid(attrs, inputs,
                   "linalg.vector_norm: Expected a floating point or complex "
                   "tensor as input. Got ",
                   TorchTypeName(dtype));
  }
  const double ord = attrs.Float("ord");
  if (ord != 0 && ord != 1 && ord != 2 && !std::isinf(ord)) {
    return Invalid(attrs, inputs, "ord must be 0, 1, 2, inf or -inf. Got ",
                   ord);
  }
  uint64_t mask = 0;
  absl::Status s = ReducedDims(attrs, inputs, &mask);
  if (!s.ok()) return s;
  if (std::isinf(ord) && inputs[0]->numel() == 0) {
    for (int i = 0; i < inputs[0]->rank(); ++i) {
      if ((mask >> i & 1) == 0 || inputs[0]->shape[i] != 0) continue;
      return Invalid(attrs, inputs, "linalg.vector_norm cannot compute the ",
                     ord, " norm on the dimension ", i,
                     " because this dimension is empty and the operation "
                     "does not have an identity");
    }
  }
  AddReduced(dtype, *inputs[0], mask, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

}  // namespace holdfast
