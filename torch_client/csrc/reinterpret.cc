// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "reinterpret.h"

#include <torch/csrc/DynamicTypes.h>
#include <torch/extension.h>

namespace holdfast_torch {

Handle Reinterpreted(const Handle& whole, int64_t count, c10::ScalarType type) {
  const pybind11::gil_scoped_acquire gil;
  auto* tensor = static_cast<PyObject*>(Api().to_python(whole.get()));
  if (tensor == nullptr) throw pybind11::error_already_set();
  const auto held = pybind11::reinterpret_steal<pybind11::object>(tensor);
  const auto dtype = pybind11::reinterpret_borrow<pybind11::object>(
      reinterpret_cast<PyObject*>(torch::getTHPDtype(type)));
  const pybind11::object result =
      pybind11::module_::import("holdfast_torch.serialization")
          .attr("reinterpreted")(held, count, dtype);
  HfTensor* found = Api().from_python(result.ptr());
  if (found == nullptr) throw pybind11::error_already_set();
  return Handle(found);
}

}  // namespace holdfast_torch
