// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "native_rows.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <map>
#include <memory>

#include "python_call.h"

namespace holdfast_torch {
namespace {

using torch::jit::Stack;

std::map<std::string, NativeFunction>& Declared() {
  static auto* declared = new std::map<std::string, NativeFunction>;
  return *declared;
}

class Kernel final : public c10::OperatorKernel {
 public:
  Kernel(NativeFunction function, PyObject* otherwise)
      : function_(function), otherwise_(otherwise) {
    Py_INCREF(otherwise_);
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  Stack* stack) {
    const size_t count = op.schema().arguments().size();
    Results results = function_(torch::jit::last(*stack, count));
    if (!results.has_value()) {
      TORCH_CHECK_NOT_IMPLEMENTED(otherwise_ != Py_None,
                                  "holdfast: ", op.schema().operator_name(),
                                  " with these arguments");
      return CallPython(otherwise_, op, stack);
    }
    torch::jit::drop(*stack, count);
    for (at::Tensor& result : *results) stack->emplace_back(std::move(result));
  }

 private:
  const NativeFunction function_;
  PyObject* const otherwise_;  // lives as long as the process
};

}  // namespace

Native::Native(const char* name, NativeFunction function) {
  Declared().emplace(name, function);
}

bool Plain(std::initializer_list<const at::Tensor*> tensors) {
  const at::Tensor* first = nullptr;
  for (const at::Tensor* tensor : tensors) {
    if (tensor == nullptr) continue;
    if (!tensor->defined() || !IsOurs(*tensor) || tensor->is_conj() ||
        tensor->is_neg()) {
      return false;
    }
    if (first == nullptr) first = tensor;
    if (tensor->scalar_type() != first->scalar_type()) return false;
  }
  return first != nullptr && c10::isFloatingType(first->scalar_type());
}

std::vector<std::string> NativeNames() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Declared()) names.push_back(name);
  return names;
}

void RegisterNative(const std::string& name, PyObject* otherwise) {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten",
                         c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl(name.c_str(),
                torch::CppFunction::makeFromBoxedFunctor(
                    std::make_unique<Kernel>(Declared().at(name), otherwise)));
}

}  // namespace holdfast_torch
