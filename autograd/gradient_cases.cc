// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/gradient_cases.h"

#include <utility>

#include "ops/op_id.h"

namespace holdfast {
namespace {

CaseInput F(Dims shape, double low = -2, double high = 2) {
  return {std::move(shape), DType::kFloat64, low, high, {}, false, false};
}
CaseInput Exactly(Dims shape, std::vector<double> values) {
  return {std::move(shape),  DType::kFloat64, 0,    0,
          std::move(values), false,           false};
}
CaseInput Constant(Dims shape, double low = -2, double high = 2) {
  CaseInput input = F(std::move(shape), low, high);
  input.constant = true;
  return input;
}
CaseInput Ints(Dims shape, std::vector<double> values) {
  return {std::move(shape),  DType::kInt64, 0,    0,
          std::move(values), false,         false};
}
CaseInput Bools(Dims shape, std::vector<double> values) {
  return {std::move(shape),  DType::kBool, 0,    0,
          std::move(values), false,        false};
}
CaseInput Absent() {
  CaseInput input;
  input.absent = true;
  return input;
}

AttrValue D(Dims dims) { return dims; }
AttrValue I(int64_t value) { return value; }
AttrValue S(const char* text) { return std::string(text); }

using Cases = std::vector<GradientCase>;

void AddUnary(Cases& cases) {
  const std::pair<const char*, OpId> anywhere[] = {
      {"neg", OpId::neg},     {"abs", OpId::abs},
      {"sign", OpId::sign},   {"relu", OpId::relu},
      {"exp", OpId::exp},     {"expm1", OpId::expm1},
      {"sin", OpId::sin},     {"cos", OpId::cos},
      {"tanh", OpId::tanh},   {"sigmoid", OpId::sigmoid},
      {"erf", OpId::erf},     {"floor", OpId::floor},
      {"ceil", OpId::ceil},   {"round", OpId::round},
      {"clone", OpId::clone},
  };
  for (const auto& [name, op] : anywhere) {
    cases.push_back({name, op, {F({2, 3})}, {}, false});
    if (op == OpId::clone) continue;
    cases.push_back(
        {std::string(name) + "_inplace", op, {F({2, 3})}, {}, true});
  }
  const std::pair<const char*, OpId> positive[] = {
      {"log", OpId::log},
      {"log1p", OpId::log1p},
      {"sqrt", OpId::sqrt},
      {"rsqrt", OpId::rsqrt},
      {"reciprocal", OpId::reciprocal},
  };
  for (const auto& [name, op] : positive) {
    cases.push_back({name, op, {F({2, 3}, 0.5, 3)}, {}, false});
    cases.push_back(
        {std::string(name) + "_inplace", op, {F({2, 3}, 0.5, 3)}, {}, true});
  }
  cases.push_back(
      {"to", OpId::to, {F({3})}, {{"dtype", DType::kFloat64}}, false});
  cases.push_back(
      {"clamp", OpId::clamp, {F({9})}, {{"min", -0.5}, {"max", I(1)}}, false});
  cases.push_back({"clamp_min", OpId::clamp, {F({9})}, {{"min", 0.1}}, false});
  cases.push_back({"clamp_max", OpId::clamp, {F({9})}, {{"max", 0.1}}, true});
  cases.push_back({"relu_backward",
                   OpId::relu_backward,
                   {F({4}), Constant({4})},
                   {},
                   false});
  cases.push_back({"dropout", OpId::dropout, {F({3, 4})}, {{"p", 0.4}}, false});
  cases.push_back({"fill", OpId::fill, {F({3})}, {{"value", 2.0}}, true});
  cases.push_back({"copy", OpId::copy, {F({2, 3}), F({3})}, {}, true});
}

void AddBinary(Cases& cases) {
  const std::pair<const char*, OpId> ops[] = {
      {"add", OpId::add},         {"sub", OpId::sub},
      {"mul", OpId::mul},         {"div", OpId::div},
      {"pow", OpId::pow},         {"remainder", OpId::remainder},
      {"maximum", OpId::maximum}, {"minimum", OpId::minimum},
  };
  for (const auto& [name, op] : ops) {
    // Away from the points where quotients jump.
    const CaseInput a = F({2, 3}, 1.1, 1.9);
    const std::string n = name;
    cases.push_back({n, op, {a, F({2, 3}, 2.1, 2.9)}, {}, false});
    cases.push_back({n + "_rows", op, {a, F({3}, 2.1, 2.9)}, {}, false});
    cases.push_back({n + "_columns",
                     op,
                     {F({1, 3}, 1.1, 1.9), F({4, 2, 1}, 2.1, 2.9)},
                     {},
                     false});
    cases.push_back({n + "_rank0", op, {a, F({}, 2.1, 2.9)}, {}, false});
    cases.push_back(
        {n + "_number", op, {a, Absent()}, {{"other", 2.5}}, false});
    cases.push_back(
        {n + "_integer", op, {a, Absent()}, {{"other", I(3)}}, false});
    cases.push_back(
        {n + "_of_number", op, {Absent(), a}, {{"input", 2.5}}, false});
    cases.push_back(
        {n + "_constant", op, {a, Constant({3}, 2.1, 2.9)}, {}, false});
    if (op == OpId::maximum || op == OpId::minimum) continue;
    cases.push_back({n + "_inplace", op, {a, F({3}, 2.1, 2.9)}, {}, true});
  }
  for (double n : {0.0, 1.0, 2.0, -1.0, 0.5}) {
    cases.push_back({"pow_number_" + std::to_string(cases.size()),
                     OpId::pow,
                     {F({4}, 0.5, 2), Absent()},
                     {{"other", n}},
                     false});
  }
  cases.push_back({"pow_square_of_negative",
                   OpId::pow,
                   {Exactly({3}, {-1.5, 0, 2}), Absent()},
                   {{"other", I(2)}},
                   false});
  cases.push_back(
      {"pow_cube", OpId::pow, {F({3}), Absent()}, {{"other", I(3)}}, false});
  cases.push_back({"maximum_both_ways",
                   OpId::maximum,
                   {F({5}), Absent()},
                   {{"other", 0.1}},
                   false});
  cases.push_back({"where",
                   OpId::where,
                   {Bools({3}, {1, 0, 1}), F({2, 3}), F({1})},
                   {},
                   false});
  cases.push_back({"where_number",
                   OpId::where,
                   {Bools({2, 1}, {1, 0}), Absent(), F({2, 3})},
                   {{"input", I(0)}},
                   false});
}

void AddReductions(Cases& cases) {
  const std::pair<const char*, OpId> ops[] = {
      {"sum", OpId::sum},   {"nansum", OpId::nansum}, {"mean", OpId::mean},
      {"amax", OpId::amax}, {"amin", OpId::amin},
  };
  for (const auto& [name, op] : ops) {
    const std::string n = name;
    const CaseInput x = F({2, 3, 2});
    cases.push_back({n, op, {x}, {}, false});
    cases.push_back({n + "_keepdim", op, {x}, {{"keepdim", true}}, false});
    cases.push_back({n + "_dim", op, {x}, {{"dim", D({1})}}, false});
    cases.push_back({n + "_dims",
                     op,
                     {x},
                     {{"dim", D({0, -1})}, {"keepdim", true}},
                     false});
    cases.push_back({n + "_last", op, {x}, {{"dim", D({-1})}}, false});
    cases.push_back({n + "_rank0", op, {F({})}, {}, false});
  }
  cases.push_back(
      {"cumsum", OpId::cumsum, {F({2, 3, 2})}, {{"dim", I(1)}}, false});
  cases.push_back(
      {"cumsum_last", OpId::cumsum, {F({2, 4})}, {{"dim", I(-1)}}, false});
  cases.push_back(
      {"cumsum_rank0", OpId::cumsum, {F({})}, {{"dim", I(0)}}, false});
}

void AddViews(Cases& cases) {
  const CaseInput x = F({2, 3, 4});
  cases.push_back({"view", OpId::view, {x}, {{"size", D({4, -1})}}, false});
  cases.push_back(
      {"permute", OpId::permute, {x}, {{"dims", D({2, 0, -2})}}, false});
  cases.push_back({"transpose",
                   OpId::transpose,
                   {x},
                   {{"dim0", I(0)}, {"dim1", I(-1)}},
                   false});
  cases.push_back(
      {"expand", OpId::expand, {F({3, 1})}, {{"size", D({2, 3, 4})}}, false});
  cases.push_back({"expand_keep",
                   OpId::expand,
                   {F({1, 3})},
                   {{"size", D({2, -1})}},
                   false});
  cases.push_back({"slice",
                   OpId::slice,
                   {x},
                   {{"dim", I(2)}, {"start", I(-3)}, {"step", I(2)}},
                   false});
  cases.push_back({"slice_whole", OpId::slice, {x}, {}, false});
  cases.push_back({"slice_far",
                   OpId::slice,
                   {x},
                   {{"dim", I(1)}, {"start", I(-9)}, {"end", I(9)}},
                   false});
  cases.push_back({"slice_empty",
                   OpId::slice,
                   {x},
                   {{"start", I(5)}, {"end", I(7)}},
                   false});
  cases.push_back({"slice_backward",
                   OpId::slice_backward,
                   {F({2, 2})},
                   {{"input_size", D({2, 6})},
                    {"dim", I(1)},
                    {"start", I(1)},
                    {"step", I(3)}},
                   false});
  cases.push_back(
      {"select", OpId::select, {x}, {{"dim", I(1)}, {"index", I(-1)}}, false});
  cases.push_back(
      {"select_backward",
       OpId::select_backward,
       {F({2, 4})},
       {{"input_size", D({2, 3, 4})}, {"dim", I(1)}, {"index", I(2)}},
       false});
  cases.push_back(
      {"unsqueeze", OpId::unsqueeze, {F({2, 3})}, {{"dim", I(-1)}}, false});
  cases.push_back({"squeeze", OpId::squeeze, {F({1, 3, 1})}, {}, false});
  cases.push_back({"squeeze_dim",
                   OpId::squeeze,
                   {F({1, 3, 1})},
                   {{"dim", D({-1})}},
                   false});
}

void AddIndexing(Cases& cases) {
  const CaseInput index = Ints({2, 2}, {0, 2, 1, 1});
  cases.push_back({"cat",
                   OpId::cat,
                   {F({2, 1}), F({2, 3}), F({2, 2})},
                   {{"dim", I(-1)}},
                   false});
  cases.push_back(
      {"cat_empty", OpId::cat, {F({0}), F({2, 3}), F({1, 3})}, {}, false});
  cases.push_back(
      {"gather", OpId::gather, {F({2, 3}), index}, {{"dim", I(1)}}, false});
  cases.push_back({"gather_rows",
                   OpId::gather,
                   {F({3, 4}), index},
                   {{"dim", I(-2)}},
                   false});
  // Every place at most once: where two writes meet, which wins is open.
  cases.push_back({"scatter",
                   OpId::scatter,
                   {F({2, 3}), Ints({2, 2}, {0, 2, 1, 0}), F({2, 3})},
                   {{"dim", I(1)}},
                   false});
  cases.push_back({"scatter_number",
                   OpId::scatter,
                   {F({2, 3}), Ints({2, 2}, {0, 2, 1, 0}), Absent()},
                   {{"dim", I(1)}, {"src", 1.5}},
                   true});
  cases.push_back({"scatter_add",
                   OpId::scatter_add,
                   {F({2, 3}), index, F({3, 2})},
                   {{"dim", I(1)}},
                   false});
  cases.push_back({"scatter_add_inplace",
                   OpId::scatter_add,
                   {F({2, 3}), index, F({2, 2})},
                   {{"dim", I(1)}},
                   true});
  const CaseInput rows = Ints({4}, {2, 0, 2, 1});
  cases.push_back({"index_select",
                   OpId::index_select,
                   {F({2, 3}), rows},
                   {{"dim", I(1)}},
                   false});
  cases.push_back({"index_add",
                   OpId::index_add,
                   {F({3, 2}), rows, F({4, 2})},
                   {{"dim", I(0)}},
                   false});
  cases.push_back(
      {"flip", OpId::flip, {F({2, 3, 2})}, {{"dims", D({0, -1})}}, false});
  cases.push_back(
      {"tril", OpId::tril, {F({2, 3, 3})}, {{"diagonal", I(-1)}}, false});
  cases.push_back(
      {"triu", OpId::triu, {F({3, 4})}, {{"diagonal", I(1)}}, false});
  cases.push_back({"constant_pad",
                   OpId::constant_pad,
                   {F({2, 3})},
                   {{"pad", D({1, 2, 0, 1})}, {"value", 3.0}},
                   false});
  cases.push_back({"constant_pad_crop",
                   OpId::constant_pad,
                   {F({4, 4})},
                   {{"pad", D({-1, 2, 1, -2})}},
                   false});
}

void AddProducts(Cases& cases) {
  const std::pair<const char*, std::pair<Dims, Dims>> shapes[] = {
      {"matmul_1_1", {{3}, {3}}},
      {"matmul_1_2", {{3}, {3, 2}}},
      {"matmul_2_1", {{2, 3}, {3}}},
      {"matmul_2_2", {{2, 3}, {3, 4}}},
      {"matmul_1_3", {{3}, {2, 3, 2}}},
      {"matmul_3_1", {{2, 2, 3}, {3}}},
      {"matmul_3_2", {{2, 2, 3}, {3, 2}}},
      {"matmul_2_3", {{2, 3}, {2, 3, 2}}},
      {"matmul_3_3", {{2, 2, 3}, {2, 3, 2}}},
      {"matmul_broadcast", {{2, 1, 2, 3}, {2, 3, 2}}},
      {"matmul_empty", {{2, 0}, {0, 2}}},
  };
  for (const auto& [name, pair] : shapes) {
    cases.push_back(
        {name, OpId::matmul, {F(pair.first), F(pair.second)}, {}, false});
  }
  cases.push_back(
      {"linear", OpId::linear, {F({2, 3}), F({4, 3}), F({4})}, {}, false});
  cases.push_back({"linear_no_bias",
                   OpId::linear,
                   {F({2, 2, 3}), F({4, 3}), Absent()},
                   {},
                   false});
  cases.push_back(
      {"linear_vector", OpId::linear, {F({3}), F({4, 3}), F({4})}, {}, false});
  cases.push_back({"linear_frozen",
                   OpId::linear,
                   {Constant({2, 3}), F({4, 3}), F({4})},
                   {},
                   false});
}

void AddConvolutions(Cases& cases) {
  const std::vector<NamedAttr> plain = {{"stride", D({1, 1})},
                                        {"padding", D({0, 0})},
                                        {"dilation", D({1, 1})},
                                        {"groups", I(1)}};
  // The last row and column of the input do not take part.
  const std::vector<NamedAttr> full = {{"stride", D({2, 3})},
                                       {"padding", D({1, 0})},
                                       {"dilation", D({1, 2})},
                                       {"groups", I(2)}};
  const auto with = [](std::vector<NamedAttr> attrs, const char* name,
                       Dims size) {
    attrs.emplace_back(name, std::move(size));
    return attrs;
  };
  cases.push_back({"conv2d",
                   OpId::conv2d,
                   {F({2, 2, 4, 3}), F({3, 2, 2, 2}), F({3})},
                   {},
                   false});
  cases.push_back({"conv2d_no_bias",
                   OpId::conv2d,
                   {F({1, 1, 3, 3}), F({1, 1, 2, 2}), Absent()},
                   plain,
                   false});
  cases.push_back({"conv2d_groups",
                   OpId::conv2d,
                   {F({1, 4, 5, 7}), F({2, 2, 2, 2}), F({2})},
                   full,
                   false});
  cases.push_back({"conv2d_backward_input",
                   OpId::conv2d_backward_input,
                   {F({1, 2, 3, 2}), F({2, 2, 2, 2})},
                   with(full, "input_size", {1, 4, 5, 7}),
                   false});
  cases.push_back({"conv2d_backward_weight",
                   OpId::conv2d_backward_weight,
                   {F({1, 2, 3, 2}), F({1, 4, 5, 7})},
                   with(full, "weight_size", {2, 2, 2, 2}),
                   false});
  cases.push_back({"max_pool2d",
                   OpId::max_pool2d,
                   {F({2, 2, 4, 5})},
                   {{"kernel_size", D({2, 2})}},
                   false});
  cases.push_back({"max_pool2d_overlap",
                   OpId::max_pool2d,
                   {F({1, 2, 5, 5})},
                   {{"kernel_size", D({3, 2})},
                    {"stride", D({2, 1})},
                    {"padding", D({1, 0})}},
                   false});
  const CaseInput places = Ints({1, 2, 1, 3}, {0, 3, 3, 5, 1, 2});
  cases.push_back({"max_pool2d_gather",
                   OpId::max_pool2d_gather,
                   {F({1, 2, 2, 3}), places},
                   {},
                   false});
  cases.push_back({"max_pool2d_backward",
                   OpId::max_pool2d_backward,
                   {F({1, 2, 1, 3}), places},
                   {{"input_size", D({1, 2, 2, 3})}},
                   false});
  cases.push_back({"avg_pool2d",
                   OpId::avg_pool2d,
                   {F({1, 2, 4, 4})},
                   {{"kernel_size", D({2, 2})}},
                   false});
  cases.push_back({"avg_pool2d_padded",
                   OpId::avg_pool2d,
                   {F({1, 1, 5, 5})},
                   {{"kernel_size", D({3, 3})},
                    {"stride", D({2, 2})},
                    {"padding", D({1, 1})},
                    {"count_include_pad", false}},
                   false});
  cases.push_back({"avg_pool2d_ceil",
                   OpId::avg_pool2d,
                   {F({1, 1, 5, 6})},
                   {{"kernel_size", D({2, 3})},
                    {"stride", D({2, 2})},
                    {"padding", D({1, 1})},
                    {"ceil_mode", true}},
                   false});
  cases.push_back({"avg_pool2d_backward",
                   OpId::avg_pool2d_backward,
                   {F({1, 1, 2, 2})},
                   {{"input_size", D({1, 1, 4, 4})},
                    {"kernel_size", D({2, 2})},
                    {"stride", D({2, 2})},
                    {"padding", D({0, 0})},
                    {"ceil_mode", false},
                    {"count_include_pad", true}},
                   false});
}

void AddSoftmax(Cases& cases) {
  const CaseInput x = F({2, 3, 2});
  const std::vector<NamedAttr> dim = {{"dim", I(1)}};
  cases.push_back({"softmax", OpId::softmax, {x}, dim, false});
  cases.push_back(
      {"log_softmax", OpId::log_softmax, {x}, {{"dim", I(-1)}}, false});
  cases.push_back(
      {"softmax_rank0", OpId::softmax, {F({})}, {{"dim", I(0)}}, false});
  cases.push_back(
      {"softmax_backward", OpId::softmax_backward, {x, x}, dim, false});
  cases.push_back(
      {"log_softmax_backward", OpId::log_softmax_backward, {x, x}, dim, false});
  const CaseInput target = Ints({4}, {2, 0, 1, 2});
  const CaseInput weight = Constant({3}, 0.5, 2);
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string n = reduction;
    cases.push_back({"nll_loss_" + n,
                     OpId::nll_loss,
                     {F({4, 3}), target, Absent()},
                     {{"reduction", S(reduction)}},
                     false});
    cases.push_back({"nll_loss_weighted_" + n,
                     OpId::nll_loss,
                     {F({4, 3}), target, weight},
                     {{"reduction", S(reduction)}, {"ignore_index", I(0)}},
                     false});
  }
  cases.push_back({"nll_loss_backward",
                   OpId::nll_loss_backward,
                   {F({4}), target, Absent(), Constant({})},
                   {{"input_size", D({4, 3})},
                    {"reduction", S("none")},
                    {"ignore_index", I(-100)}},
                   false});
}

}  // namespace

std::vector<GradientCase> GradientCases() {
  Cases cases;
  AddUnary(cases);
  AddBinary(cases);
  AddReductions(cases);
  AddOrderedCases(cases);
  AddViews(cases);
  AddIndexing(cases);
  AddProducts(cases);
  AddConvolutions(cases);
  AddSoftmax(cases);
  return cases;
}

}  // namespace holdfast
