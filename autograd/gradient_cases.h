// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The calls on which the gradient rules are checked (rules_test.cc): one row
// per call, several per op where its rule has cases.
#ifndef HOLDFAST_AUTOGRAD_GRADIENT_CASES_H_
#define HOLDFAST_AUTOGRAD_GRADIENT_CASES_H_

#include <string>
#include <vector>

#include "autograd/grad_rule.h"

namespace holdfast {

// An input: uniform in [low, high) when float64, else the values given.
struct CaseInput {
  Dims shape;
  DType dtype = DType::kFloat64;
  double low = -2, high = 2;
  std::vector<double> values;
  bool absent = false;
  bool constant = false;  // float, but not differentiated
};

struct GradientCase {
  std::string name;
  OpId op;
  std::vector<CaseInput> inputs;
  std::vector<NamedAttr> attrs;
  bool inplace = false;  // on a clone of input 0
};

std::vector<GradientCase> GradientCases();
// Part of them: scans, sorting, and reductions of lines of elements.
void AddOrderedCases(std::vector<GradientCase>& cases);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_GRADIENT_CASES_H_
