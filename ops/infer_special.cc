// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule of the special functions that share a row.
#include <algorithm>
#include <iterator>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// As kernels/bessel.h lists them.
constexpr const char* kFunctions[] = {"bessel_j0",
                                      "bessel_j1",
                                      "bessel_y0",
                                      "bessel_y1",
                                      "i0",
                                      "i0e",
                                      "i1",
                                      "i1e",
                                      "modified_bessel_k0",
                                      "modified_bessel_k1",
                                      "scaled_modified_bessel_k0",
                                      "scaled_modified_bessel_k1",
                                      "erfcx",
                                      "log_ndtr",
                                      "ndtri"};

}  // namespace

HOLDFAST_INFER(InferSpecialFunction) {
  const std::string& function = attrs.Str("function");
  if (std::find(std::begin(kFunctions), std::end(kFunctions), function) ==
      std::end(kFunctions)) {
    return Invalid(attrs, inputs, "unknown function ", AttrToString(function));
  }
  const TensorSpec& input = *inputs[0];
  AddOutputLike(out, IsFloat(input.dtype) ? input.dtype : kDefaultFloat, input);
  return absl::OkStatus();
}

}  // namespace holdfast
