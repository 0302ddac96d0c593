// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels in C++ of operators that a step calls most and that are not simply
// one op of the daemon's. Each takes the plain arguments; for all others it
// returns nothing, and the operator's kernel in Python runs, which also makes
// PyTorch's errors.
//
//   Results Tanh(const Tensor& grad, const Tensor& output) { ... }
//   const Native kTanh("tanh_backward", NATIVE(Tanh));
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <Python.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "op_call.h"

namespace holdfast_torch {

using Results = std::optional<c10::SmallVector<at::Tensor, 3>>;
using Arguments = c10::ArrayRef<c10::IValue>;
using NativeFunction = Results (*)(Arguments);

inline Results One(at::Tensor tensor) {
  Results results(std::in_place);
  results->push_back(std::move(tensor));
  return results;
}

template <typename... A, size_t... I>
Results Unpacked(Results (*function)(A...), Arguments arguments,
                 std::index_sequence<I...>) {
  return function(arguments[I].template to<std::decay_t<A>>()...);
}

template <typename... A>
Results CallWith(Results (*function)(A...), Arguments arguments) {
  return Unpacked(function, arguments, std::index_sequence_for<A...>());
}

// A function of an operator's arguments as one of IValues.
#define NATIVE(function)                                    \
  [](::holdfast_torch::Arguments arguments) {               \
    return ::holdfast_torch::CallWith(function, arguments); \
  }

// Declares the kernel of an operator while the library is loaded.
struct Native {
  Native(const char* name, NativeFunction function);
};

// Floating point, on the device, of one dtype, none with a lazy conjugate or
// negative; null: not given, which is fine.
bool Plain(std::initializer_list<const at::Tensor*> tensors);
inline const at::Tensor* Given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? &*tensor : nullptr;
}

// The operators with a kernel here.
std::vector<std::string> NativeNames();
// Registers that of `name`. `otherwise` (borrowed) is the one in Python. With
// the GIL held.
void RegisterNative(const std::string& name, PyObject* otherwise);

}  // namespace holdfast_torch
