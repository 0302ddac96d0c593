// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfast_torch._torch: what the package's Python needs of this library.
#include <torch/extension.h>

#include <string>
#include <tuple>
#include <vector>

#include "api.h"
#include "bridge.h"
#include "native_rows.h"
#include "rows.h"

namespace holdfast_torch {

void RegisterDevice();

namespace {

void Row(const std::string& name, const std::string& op, bool inplace,
         const std::vector<std::pair<std::string, int>>& sources,
         const std::vector<int>& ignored, int alpha,
         const std::vector<int>& results, pybind11::object otherwise) {
  Plan plan;
  plan.name = name;
  plan.op = Api().find_op(op.c_str());
  TORCH_CHECK(plan.op >= 0, "this holdfast has no op ", op);
  plan.inplace = inplace;
  for (const auto& [parameter, argument] : sources) {
    plan.sources.push_back({parameter, argument});
  }
  plan.ignored = ignored;
  plan.alpha = alpha;
  plan.results = results;
  RegisterRow(plan, otherwise.ptr());
}

void RegisterNativeRow(const std::string& name, pybind11::object otherwise) {
  RegisterNative(name, otherwise.ptr());
}

pybind11::object ToHoldfast(const at::Tensor& tensor) {
  auto* object = static_cast<PyObject*>(Api().to_python(HandleOf(tensor)));
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

at::Tensor FromHoldfast(pybind11::object tensor) {
  HfTensor* handle = Api().from_python(tensor.ptr());
  if (handle == nullptr) throw pybind11::error_already_set();
  Handle held(handle);
  const pybind11::gil_scoped_release unlocked;
  return Wrap(std::move(held));
}

uintptr_t MemoryOfHoldfast(pybind11::object tensor) {
  const Handle handle(Api().from_python(tensor.ptr()));
  if (!handle) throw pybind11::error_already_set();
  return Api().memory_of(handle.get());
}

}  // namespace
}  // namespace holdfast_torch

PYBIND11_MODULE(_torch, m) {
  holdfast_torch::LoadApi();
  holdfast_torch::RegisterDevice();
  m.def("register_row", holdfast_torch::Row);
  m.def("native_names", holdfast_torch::NativeNames);
  m.def("register_native", holdfast_torch::RegisterNativeRow);
  m.def("register_variant", holdfast_torch::RegisterVariant);
  m.def("to_holdfast", holdfast_torch::ToHoldfast);
  m.def("from_holdfast", holdfast_torch::FromHoldfast);
  m.def("memory_of", holdfast_torch::MemoryOfHoldfast);
  m.def("forget_session", holdfast_torch::ForgetSession);
}
