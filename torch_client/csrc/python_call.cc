// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_call.h"

#include <torch/csrc/jit/python/pybind_utils.h>

namespace holdfast_torch {

void CallPython(PyObject* function, const c10::OperatorHandle& op,
                torch::jit::Stack* stack) {
  const pybind11::gil_scoped_acquire gil;
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  pybind11::list positional;
  pybind11::dict named;
  const auto arguments = torch::jit::last(*stack, count);
  for (size_t i = 0; i < count; ++i) {
    const auto& argument = schema.arguments()[i];
    pybind11::object value = torch::jit::toPyObject(arguments[i]);
    if (argument.real_type()->kind() == c10::TypeKind::ScalarTypeType ||
        argument.real_type()->str() == "ScalarType?") {
      if (arguments[i].isInt()) {
        value = pybind11::reinterpret_borrow<pybind11::object>(
            reinterpret_cast<PyObject*>(torch::getTHPDtype(
                static_cast<at::ScalarType>(arguments[i].toInt()))));
      }
    }
    if (argument.kwarg_only()) {
      named[pybind11::str(argument.name())] = value;
    } else {
      positional.append(value);
    }
  }
  torch::jit::drop(*stack, count);
  const auto callee = pybind11::reinterpret_borrow<pybind11::object>(function);
  pybind11::object result = callee(*positional, **named);
  const auto& returns = schema.returns();
  if (returns.size() == 1) {
    stack->push_back(torch::jit::toIValue(result, returns[0].type()));
    return;
  }
  const auto results = pybind11::cast<pybind11::sequence>(result);
  for (size_t i = 0; i < returns.size(); ++i) {
    stack->push_back(torch::jit::toIValue(results[i], returns[i].type()));
  }
}

}  // namespace holdfast_torch
