// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <utility>

#include "autograd/gradient_cases.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

CaseInput Uniform(Dims shape) {
  CaseInput input;
  input.shape = std::move(shape);
  return input;
}

AttrValue I(int64_t value) { return value; }

}  // namespace

void AddOrderedCases(std::vector<GradientCase>& cases) {
  const CaseInput x = Uniform({2, 3, 2});
  const std::pair<const char*, OpId> scans[] = {
      {"cumprod", OpId::cumprod},
      {"cummax", OpId::cummax},
      {"cummin", OpId::cummin},
      {"logcumsumexp", OpId::logcumsumexp},
  };
  for (const auto& [name, op] : scans) {
    const std::string n = name;
    cases.push_back({n, op, {x}, {{"dim", I(1)}}, false});
    cases.push_back({n + "_last", op, {x}, {{"dim", I(-1)}}, false});
    cases.push_back({n + "_rank0", op, {Uniform({})}, {{"dim", I(0)}}, false});
    cases.push_back(
        {n + "_one", op, {Uniform({2, 1})}, {{"dim", I(1)}}, false});
  }
  CaseInput zeros = Uniform({2, 4});
  zeros.values = {1, 0, 2, 3, 0, 4, 0, 5};
  cases.push_back(
      {"cumprod_zeros", OpId::cumprod, {zeros}, {{"dim", I(1)}}, false});
  for (bool reverse : {false, true}) {
    cases.push_back({reverse ? "linear_scan_reverse" : "linear_scan",
                     OpId::linear_scan,
                     {x, x},
                     {{"dim", I(1)}, {"reverse", reverse}},
                     false});
  }

  cases.push_back({"prod", OpId::prod, {x}, {}, false});
  cases.push_back({"prod_dim", OpId::prod, {x}, {{"dim", I(1)}}, false});
  cases.push_back({"prod_zeros", OpId::prod, {zeros}, {}, false});
  cases.push_back({"prod_zeros_dim",
                   OpId::prod,
                   {zeros},
                   {{"dim", I(-1)}, {"keepdim", true}},
                   false});
  cases.push_back({"prod_rank0", OpId::prod, {Uniform({})}, {}, false});

  cases.push_back({"var_mean", OpId::var_mean, {x}, {}, false});
  cases.push_back({"var_mean_dims",
                   OpId::var_mean,
                   {x},
                   {{"dim", Dims{0, -1}}, {"correction", 0.0}},
                   false});
  cases.push_back({"var_mean_keepdim",
                   OpId::var_mean,
                   {x},
                   {{"dim", Dims{1}}, {"keepdim", true}},
                   false});

  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<const char*, double> orders[] = {
      {"0", 0}, {"1", 1}, {"2", 2}, {"inf", infinity}, {"neginf", -infinity}};
  for (const auto& [name, ord] : orders) {
    const std::string n = std::string("vector_norm_") + name;
    cases.push_back({n, OpId::vector_norm, {x}, {{"ord", ord}}, false});
    cases.push_back({n + "_dims",
                     OpId::vector_norm,
                     {x},
                     {{"ord", ord}, {"dim", Dims{0, 2}}},
                     false});
  }

  cases.push_back({"sort", OpId::sort, {x}, {{"dim", I(1)}}, false});
  cases.push_back({"sort_descending",
                   OpId::sort,
                   {x},
                   {{"dim", I(0)}, {"descending", true}},
                   false});
  cases.push_back({"sort_rank0", OpId::sort, {Uniform({})}, {}, false});
  cases.push_back(
      {"topk", OpId::topk, {x}, {{"k", I(2)}, {"dim", I(1)}}, false});
  cases.push_back({"topk_smallest",
                   OpId::topk,
                   {x},
                   {{"k", I(1)}, {"dim", I(-1)}, {"largest", false}},
                   false});
  for (bool keep : {false, true}) {
    const std::string suffix = keep ? "_keepdim" : "";
    cases.push_back({"kthvalue" + suffix,
                     OpId::kthvalue,
                     {x},
                     {{"k", I(2)}, {"dim", I(1)}, {"keepdim", keep}},
                     false});
    cases.push_back({"median" + suffix,
                     OpId::median,
                     {x},
                     {{"dim", I(1)}, {"keepdim", keep}},
                     false});
    cases.push_back({"mode" + suffix,
                     OpId::mode,
                     {x},
                     {{"dim", I(1)}, {"keepdim", keep}},
                     false});
  }
}

}  // namespace holdfast
