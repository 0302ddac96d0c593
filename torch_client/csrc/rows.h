// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One boxed kernel for the operators of PyTorch that are one op of the
// daemon's. Each operator has a plan: which of its arguments is which
// parameter of the op.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast_torch {

// Where a parameter of the daemon's op comes from.
struct Source {
  std::string parameter;  // of the op
  int argument = -1;      // of the operator
};

struct Plan {
  std::string name;  // "add.Tensor"
  int op = -1;
  bool inplace = false;
  std::vector<Source> sources;
  // Arguments that must have their defaults, or `otherwise` runs.
  std::vector<int> ignored;
  int alpha = -1;            // argument that scales the parameter "other"
  std::vector<int> results;  // outputs in the operator's order; empty: all
};

// Registers a kernel for the plan. `otherwise` (borrowed; may be None) is a
// Python function of the operator's arguments, for calls that the op cannot
// take. With the GIL held.
void RegisterRow(const Plan& plan, PyObject* otherwise);
// Registers `name` (a variant with `out` arguments, or one that writes its
// first argument) as what `functional` returns, copied there.
void RegisterVariant(const std::string& name, const std::string& functional);

}  // namespace holdfast_torch
