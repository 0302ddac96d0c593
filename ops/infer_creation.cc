// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of ops that make tensors from nothing, random ones included.
#include <cmath>
#include <limits>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Adds the output of a size that a client chose freely.
absl::Status AddSized(const Attrs& attrs, SpecList inputs, DType dtype,
                      absl::Span<const int64_t> size, OutputSpecs* out) {
  if (absl::Status s = CheckShape(dtype, size); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  AddOutput(out, dtype, size);
  return absl::OkStatus();
}

struct IntRange {
  int64_t min;
  int64_t max;
};

// Integers that a type holds exactly.
IntRange ExactRange(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt8:
      return {-128, 127};
    case DType::kInt16:
      return {-32768, 32767};
    case DType::kFloat16:
      return {-2048, 2048};
    case DType::kBFloat16:
      return {-256, 256};
    case DType::kInt32:
      return {std::numeric_limits<int32_t>::min(),
              std::numeric_limits<int32_t>::max()};
    case DType::kFloat32:
      return {-(int64_t{1} << 24), int64_t{1} << 24};
    case DType::kFloat64:
      return {-(int64_t{1} << 53), int64_t{1} << 53};
    default:
      return {std::numeric_limits<int64_t>::min(),
              std::numeric_limits<int64_t>::max()};
  }
}

// Number of steps from start before end, of integers. False: no such number.
bool CountSteps(int64_t start, int64_t end, int64_t step, int64_t* count) {
  const __int128 distance = static_cast<__int128>(end) - start;
  const __int128 wide = step;
  const __int128 steps = (distance + wide - (wide > 0 ? 1 : -1)) / wide;
  if (steps < 0 || steps > std::numeric_limits<int64_t>::max()) return false;
  *count = static_cast<int64_t>(steps);
  return true;
}

bool CountSteps(double start, double end, double step, int64_t* count) {
  const double steps = std::ceil((end - start) / step);
  if (!(steps >= 0 && steps < 9e18)) return false;
  *count = static_cast<int64_t>(steps);
  return true;
}

}  // namespace

HOLDFAST_INFER(InferFull) {
  const AttrValue& value = attrs.Get("fill_value");
  DType dtype = kDefaultFloat;
  if (std::holds_alternative<bool>(value)) dtype = DType::kBool;
  if (std::holds_alternative<int64_t>(value)) dtype = DType::kInt64;
  return AddSized(attrs, inputs, attrs.DTypeOr("dtype", dtype),
                  attrs.Ints("size"), out);
}

HOLDFAST_INFER(InferSized) {
  const DType dtype = attrs.DTypeOr("dtype", kDefaultFloat);
  if (attrs.schema().has(kRandom) && !IsFloat(dtype)) {
    return NotImplementedFor(attrs, inputs, dtype);
  }
  return AddSized(attrs, inputs, dtype, attrs.Ints("size"), out);
}

HOLDFAST_INFER(InferArange) {
  const AttrValue& start = attrs.Get("start");
  const AttrValue& end = attrs.Get("end");
  const AttrValue& step = attrs.Get("step");
  const double from = AttrAsDouble(start);
  const double to = AttrAsDouble(end);
  const bool floats = std::holds_alternative<double>(start) ||
                      std::holds_alternative<double>(end) ||
                      std::holds_alternative<double>(step);
  const DType dtype =
      attrs.DTypeOr("dtype", floats ? kDefaultFloat : DType::kInt64);
  if (dtype == DType::kBool) return NotImplementedFor(attrs, inputs, dtype);
  if (!std::isfinite(from) || !std::isfinite(to)) {
    return Invalid(attrs, inputs, "unsupported range: ", AttrToString(start),
                   " -> ", AttrToString(end));
  }
  // An integer type counts in whole steps, as the kernel does.
  const double by = IsFloat(dtype) ? AttrAsDouble(step)
                                   : static_cast<double>(AttrAsInt(step));
  if (!(by > 0 || by < 0)) {
    return Invalid(attrs, inputs, "step must be nonzero");
  }
  const bool exact = !floats || dtype == DType::kInt64;
  const bool forward = exact ? AttrAsInt(end) >= AttrAsInt(start) : to >= from;
  const bool backward = exact ? AttrAsInt(end) <= AttrAsInt(start) : to <= from;
  if (!(by > 0 ? forward : backward)) {
    return Invalid(attrs, inputs,
                   "upper bound and lower bound inconsistent with step sign");
  }
  int64_t count = 0;
  const bool counted = exact ? CountSteps(AttrAsInt(start), AttrAsInt(end),
                                          AttrAsInt(step), &count)
                             : CountSteps(from, to, AttrAsDouble(step), &count);
  if (!counted)
    return Invalid(attrs, inputs, "invalid size, possible overflow");
  return AddSized(attrs, inputs, dtype, {count}, out);
}

HOLDFAST_INFER(InferEye) {
  const int64_t n = attrs.Int("n");
  const int64_t m = attrs.None("m") ? n : attrs.Int("m");
  if (n < 0 || m < 0) {
    return Invalid(attrs, inputs, n < 0 ? "n" : "m",
                   " must be greater or equal to 0, got ", n < 0 ? n : m);
  }
  return AddSized(attrs, inputs, attrs.DTypeOr("dtype", kDefaultFloat), {n, m},
                  out);
}

HOLDFAST_INFER(InferRandInt) {
  const int64_t low = attrs.Int("low"), high = attrs.Int("high");
  if (low >= high) {
    return Invalid(attrs, inputs,
                   "random_ expects 'from' to be less than 'to', but got "
                   "from=",
                   low, " >= to=", high);
  }
  const DType dtype = attrs.DTypeOr("dtype", DType::kInt64);
  const IntRange range = ExactRange(dtype);
  if (low < range.min || high - 1 > range.max) {
    return Invalid(attrs, inputs, low < range.min ? "from" : "to - 1",
                   " is out of bounds for ", DTypeName(dtype));
  }
  return AddSized(attrs, inputs, dtype, attrs.Ints("size"), out);
}

HOLDFAST_INFER(InferRandomState) {
  return AddSized(attrs, inputs, DType::kUInt8, {2 * sizeof(uint64_t)}, out);
}

HOLDFAST_INFER(InferRandPerm) {
  const int64_t n = attrs.Int("n");
  if (n < 0) return Invalid(attrs, inputs, "n must be non-negative, got ", n);
  const DType dtype = attrs.DTypeOr("dtype", DType::kInt64);
  if (dtype == DType::kBool) return NotImplementedFor(attrs, inputs, dtype);
  if (n - 1 > ExactRange(dtype).max) {
    return Invalid(attrs, inputs, "n is too large for ", DTypeName(dtype));
  }
  return AddSized(attrs, inputs, dtype, {n}, out);
}

}  // namespace holdfast
