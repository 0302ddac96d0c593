// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/op_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

// What the slowest loops over single elements do.
constexpr double kStepsPerSecond = 1e8;
// An op of tensors that have no more elements each is not looked at.
constexpr uint64_t kFewElements = uint64_t{1} << 19;
// Steps per byte of memory that programs need: products, windows, searches.
constexpr uint64_t kStepsPerByte = 64;

// An op whose sizes only the data tells has none before it runs.
uint64_t Elements(const TensorSpec& spec) {
  for (const int64_t size : spec.shape) {
    if (size == kUnknownSize) return 0;
  }
  return static_cast<uint64_t>(spec.numel());
}

}  // namespace

absl::Status CheckSteps(const OpSchema& schema, absl::Span<const Value> inputs,
                        const OutputSpecs& outputs, double most_seconds) {
  uint64_t most = 0;
  for (const Value& input : inputs) {
    if (input) most = std::max(most, Elements(input->spec()));
  }
  if (ABSL_PREDICT_TRUE(most < kFewElements)) return absl::OkStatus();
  double steps = 0;
  uint64_t bytes = 0;
  std::string got;
  for (const Value& input : inputs) {
    if (!input) continue;
    steps += static_cast<double>(Elements(input->spec()));
    bytes += AsTensor(input)->storage()->bytes();
    absl::StrAppend(&got, got.empty() ? "" : ", ", input->spec().ToString());
  }
  for (const OutputSpec& output : outputs) {
    const uint64_t elements = Elements(output.spec);
    steps += static_cast<double>(elements);
    bytes += elements * ItemSize(output.spec.dtype);
  }
  if (steps <= most_seconds * kStepsPerSecond ||
      steps / kStepsPerByte <= static_cast<double>(bytes)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "[%s] an op may take at most %g s (the limit op_seconds), and elements "
      "without memory of their own count as %g a second. Got %s: %.2g steps on "
      "%d bytes of memory. Use a smaller expanded size",
      schema.name, most_seconds, kStepsPerSecond, got, steps, bytes));
}

}  // namespace holdfast
