// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of scans: results of the input's shape that run along one dimension.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

absl::Status CheckDim(const Attrs& attrs, SpecList inputs) {
  int dim = 0;
  return DimAttr(attrs, inputs, "dim", inputs[0]->rank(), &dim);
}

}  // namespace

HOLDFAST_INFER(InferCumsum) {
  absl::Status s = CheckDim(attrs, inputs);
  if (!s.ok()) return s;
  const DType dtype = attrs.DTypeOr("dtype", SumType(inputs[0]->dtype));
  AddOutputLike(out, dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCummax) {
  absl::Status s = CheckDim(attrs, inputs);
  if (!s.ok()) return s;
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  AddOutputLike(out, DType::kInt64, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferLogcumsumexp) {
  absl::Status s = CheckDim(attrs, inputs);
  if (!s.ok()) return s;
  if (s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferLinearScan) {
  absl::Status s = CheckDim(attrs, inputs);
  if (!s.ok()) return s;
  if (!IsComplex(inputs[0]->dtype)) {
    if (s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  }
  if (s = RequireSameDType(attrs, inputs, 0, 1); !s.ok()) return s;
  if (inputs[0]->shape != inputs[1]->shape) {
    return Invalid(attrs, inputs, "input and factor must have the same shape");
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

}  // namespace holdfast
