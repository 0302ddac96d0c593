// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of sorting, selecting and searching along one dimension. A rank-0
// tensor counts as one of shape [1].
#include <limits>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

int64_t SizeAlong(const TensorSpec& spec, int dim) {
  return spec.rank() == 0 ? 1 : spec.shape[dim];
}

// Values and indices of `shape`.
void AddPair(const TensorSpec& input, const Dims& shape, OutputSpecs* out) {
  AddOutput(out, input.dtype, shape);
  AddOutput(out, DType::kInt64, shape);
}

// The same with `dim` reduced.
void AddReducedPair(const TensorSpec& input, int dim, bool keepdim,
                    OutputSpecs* out) {
  Dims shape = input.shape;
  if (input.rank() > 0) {
    if (keepdim) {
      shape[dim] = 1;
    } else {
      shape.erase(shape.begin() + dim);
    }
  }
  AddPair(input, shape, out);
}

absl::Status RequireNonEmptyDim(const Attrs& attrs, SpecList inputs, int dim) {
  if (SizeAlong(*inputs[0], dim) > 0) return absl::OkStatus();
  return BadIndex(attrs, inputs, attrs.schema().name,
                  "(): Expected reduction dim ", dim,
                  " to have non-zero size.");
}

}  // namespace

HOLDFAST_INFER(InferSort) {
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
  if (!s.ok()) return s;
  AddPair(*inputs[0], inputs[0]->shape, out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferTopk) {
  const TensorSpec& input = *inputs[0];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (!s.ok()) return s;
  const int64_t k = attrs.Int("k");
  if (k < 0 || k > SizeAlong(input, dim)) {
    return Invalid(attrs, inputs, "selected index k out of range. Got k=", k,
                   " for a dimension of size ", SizeAlong(input, dim));
  }
  if (input.dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, DType::kBool);
  }
  Dims shape = input.shape;
  if (input.rank() > 0) shape[dim] = k;
  // A rank-0 result has one element even for k = 0.
  if (input.rank() == 0 && k == 0) {
    return Invalid(attrs, inputs, "k must be 1 for a rank-0 tensor");
  }
  AddPair(input, shape, out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferKthvalue) {
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
  if (!s.ok()) return s;
  if (s = RequireNonEmptyDim(attrs, inputs, dim); !s.ok()) return s;
  const int64_t k = attrs.Int("k");
  if (k < 1 || k > SizeAlong(*inputs[0], dim)) {
    return Invalid(attrs, inputs,
                   "kthvalue(): selected number k out of range for dimension ",
                   dim, ". Got k=", k);
  }
  if (inputs[0]->dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, DType::kBool);
  }
  AddReducedPair(*inputs[0], dim, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferMedian) {
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
  if (!s.ok()) return s;
  if (s = RequireNonEmptyDim(attrs, inputs, dim); !s.ok()) return s;
  if (inputs[0]->dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, DType::kBool);
  }
  AddReducedPair(*inputs[0], dim, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferMode) {
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
  if (!s.ok()) return s;
  if (s = RequireNonEmptyDim(attrs, inputs, dim); !s.ok()) return s;
  AddReducedPair(*inputs[0], dim, attrs.Bool("keepdim"), out);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSearchsorted) {
  const TensorSpec& sorted = *inputs[0];
  const TensorSpec& input = *inputs[1];
  if (sorted.dtype != input.dtype) {
    return Invalid(attrs, inputs,
                   "torch.searchsorted(): boundary tensor and input value "
                   "tensor should have same dtype, but got boundary tensor "
                   "dtype ",
                   TorchTypeName(sorted.dtype),
                   " and input value tensor dtype ",
                   TorchTypeName(input.dtype));
  }
  if (sorted.rank() == 0) {
    return Invalid(attrs, inputs,
                   "torch.searchsorted(): boundary tensor should have "
                   "positive dimension, but got 0 dimension");
  }
  if (sorted.rank() != 1) {
    bool fits = sorted.rank() == input.rank();
    for (int d = 0; fits && d + 1 < sorted.rank(); ++d) {
      fits = sorted.shape[d] == input.shape[d];
    }
    if (!fits) {
      return Invalid(
          attrs, inputs,
          "torch.searchsorted(): boundaries tensor should be 1 dimension or "
          "the first N-1 dimensions of boundaries tensor and input value "
          "tensor must match, but we got boundaries tensor ",
          TorchShape(sorted.shape), " and input value tensor ",
          TorchShape(input.shape));
    }
  }
  const bool narrow = attrs.Bool("out_int32");
  if (narrow && sorted.shape.back() > std::numeric_limits<int32_t>::max()) {
    return Invalid(attrs, inputs,
                   "torch.searchsorted(): the size of boundaries' last "
                   "dimension should be less than 2147483647, but we got ",
                   sorted.shape.back());
  }
  AddOutput(out, narrow ? DType::kInt32 : DType::kInt64, input.shape);
  return absl::OkStatus();
}

}  // namespace holdfast
