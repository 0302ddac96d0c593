// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/infer_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

void FillContiguousStrides(TensorSpec* spec) {
  const int64_t* shape = spec->shape.data();
  int64_t* strides = spec->strides.data();
  int64_t step = 1;
  for (int i = spec->rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Wraps for a shape that CheckShape is about to refuse.
    (void)SafeMul(step, std::max<int64_t>(shape[i], 1), &step);
  }
}

}  // namespace

void AddOutput(OutputSpecs* out, DType dtype, absl::Span<const int64_t> shape) {
  TensorSpec& spec = out->emplace_back().spec;
  spec.dtype = dtype;
  spec.shape.assign(shape.begin(), shape.end());
  spec.strides.resize(shape.size());
  FillContiguousStrides(&spec);
}

void AddOutputLike(OutputSpecs* out, DType dtype, const TensorSpec& like) {
  // Copying the whole spec moves a few words; building it piece by piece is
  // several times slower, and elementwise ops are most of what runs.
  TensorSpec& spec = out->emplace_back(like, -1).spec;
  spec.dtype = dtype;
  spec.offset = 0;
  FillContiguousStrides(&spec);
}

void AddView(OutputSpecs* out, TensorSpec spec) {
  out->emplace_back(std::move(spec), 0);
}

absl::string_view TorchTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "Bool";
    case DType::kUInt8:
      return "Byte";
    case DType::kInt8:
      return "Char";
    case DType::kInt16:
      return "Short";
    case DType::kInt32:
      return "Int";
    case DType::kInt64:
      return "Long";
    case DType::kFloat16:
      return "Half";
    case DType::kBFloat16:
      return "BFloat16";
    case DType::kFloat32:
      return "Float";
    case DType::kFloat64:
      return "Double";
    case DType::kComplex64:
      return "ComplexFloat";
    case DType::kComplex128:
      return "ComplexDouble";
  }
  return "invalid";
}

std::string TorchShape(absl::Span<const int64_t> shape) {
  const size_t shown = std::min<size_t>(shape.size(), kMaxRank);
  std::string text = absl::StrJoin(shape.first(shown), ", ");
  if (shown < shape.size()) {
    absl::StrAppend(&text, ", ... (", shape.size(), " numbers)");
  }
  return absl::StrCat("[", text, "]");
}

absl::Status WithContext(const absl::Status& status, const Attrs& attrs,
                         SpecList inputs) {
  return OpErrorAs(status.code(), attrs, inputs, status.message());
}

absl::Status DimAttr(const Attrs& attrs, SpecList inputs,
                     absl::string_view name, int rank, int* dim) {
  absl::StatusOr<int> normal = NormalizeDim(attrs.Int(name), rank);
  if (!normal.ok()) return WithContext(normal.status(), attrs, inputs);
  *dim = *normal;
  return absl::OkStatus();
}

absl::Status DimMask(const Attrs& attrs, SpecList inputs,
                     absl::Span<const int64_t> dims, int rank, uint64_t* mask) {
  *mask = 0;
  for (int64_t dim : dims) {
    absl::StatusOr<int> normal = NormalizeDim(dim, rank);
    if (!normal.ok()) return WithContext(normal.status(), attrs, inputs);
    const uint64_t bit = uint64_t{1} << *normal;
    if (*mask & bit) {
      return Invalid(attrs, inputs, "dim ", *normal,
                     " appears multiple times in the list of dims");
    }
    *mask |= bit;
  }
  return absl::OkStatus();
}

absl::Status ReducedDims(const Attrs& attrs, SpecList inputs, uint64_t* mask) {
  const Dims* dims = std::get_if<Dims>(&attrs.Get("dim"));
  if (dims == nullptr || dims->empty()) {
    *mask = ~uint64_t{0};
    return absl::OkStatus();
  }
  return DimMask(attrs, inputs, *dims, inputs[0]->rank(), mask);
}

absl::Status NotImplementedFor(const Attrs& attrs, SpecList inputs,
                               DType dtype) {
  return Invalid(attrs, inputs, "\"", attrs.schema().name,
                 "\" not implemented for '", TorchTypeName(dtype), "'");
}

absl::Status RequireFloat(const Attrs& attrs, SpecList inputs, int slot) {
  if (IsFloat(inputs[slot]->dtype)) return absl::OkStatus();
  return NotImplementedFor(attrs, inputs, inputs[slot]->dtype);
}

absl::Status RequireSameDType(const Attrs& attrs, SpecList inputs, int slot_a,
                              int slot_b) {
  const TensorSpec* a = inputs[slot_a];
  const TensorSpec* b = inputs[slot_b];
  if (a == nullptr || b == nullptr || a->dtype == b->dtype) {
    return absl::OkStatus();
  }
  const OpSchema& schema = attrs.schema();
  return Invalid(attrs, inputs, "expected ",
                 schema.params[schema.tensor_params[slot_a]].name, " and ",
                 schema.params[schema.tensor_params[slot_b]].name,
                 " to have the same dtype, but got: ", DTypeName(a->dtype),
                 " != ", DTypeName(b->dtype));
}

absl::Status RequireWritable(const Attrs& attrs, SpecList inputs,
                             size_t index) {
  const TensorSpec& spec = *inputs[index];
  for (int i = 0; i < spec.rank(); ++i) {
    if (spec.shape[i] > 1 && spec.strides[i] == 0) {
      return Invalid(
          attrs, inputs,
          "unsupported operation: more than one element of the written-to "
          "tensor refers to a single memory location. Please clone() the "
          "tensor before performing the operation");
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
