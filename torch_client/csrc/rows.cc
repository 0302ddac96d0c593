// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <utility>

#include "api.h"
#include "bridge.h"
#include "python_call.h"

namespace holdfast_torch {
namespace {

using c10::IValue;
using Stack = torch::jit::Stack;

torch::Library& Kernels() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten",
                         c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  return *library;
}

std::pair<std::string, std::string> Split(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {"aten::" + name, ""};
  return {"aten::" + name.substr(0, dot), name.substr(dot + 1)};
}

// How an argument becomes a parameter.
struct Slot {
  int argument;
  int tensor = -1;
  int attr = -1;
  bool dtype = false;  // an int that is a ScalarType
  bool list = false;   // all further tensors
};

// PyTorch leaves lazy conjugates and negatives to products of matrices.
void Resolve(IValue* value) {
  if (!value->isTensor()) return;
  const at::Tensor& tensor = value->toTensor();
  if (tensor.defined() && (tensor.is_conj() || tensor.is_neg())) {
    *value = tensor.resolve_conj().resolve_neg();
  }
}

// What one call sends; on the stack.
struct Call {
  c10::SmallVector<HfTensor*, 8> inputs;
  c10::SmallVector<HfAttr, 8> attrs;
  c10::SmallVector<std::vector<int64_t>, 2> lists;
  c10::SmallVector<std::string, 1> texts;
  c10::SmallVector<Handle, 2> held;
};

class Row final : public c10::OperatorKernel {
 public:
  Row(Plan plan, const c10::FunctionSchema& schema, PyObject* otherwise)
      : plan_(std::move(plan)), otherwise_(otherwise) {
    Py_XINCREF(otherwise_);
    outputs_ = plan_.inplace ? 1 : Api().outputs_of(plan_.op);
    mul_ = Api().find_op("mul");
    for (const Source& source : plan_.sources) {
      Slot slot{source.argument};
      slot.tensor = Api().tensor_slot(plan_.op, source.parameter.c_str());
      slot.attr = Api().attr_slot(plan_.op, source.parameter.c_str());
      const auto& type =
          schema.arguments()[static_cast<size_t>(source.argument)].real_type();
      const auto& inner =
          type->kind() == c10::TypeKind::OptionalType
              ? type->castRaw<c10::OptionalType>()->getElementType()
              : type;
      slot.dtype = inner->kind() == c10::TypeKind::ScalarTypeType;
      slot.list = inner->kind() == c10::TypeKind::ListType && slot.tensor >= 0;
      if (source.parameter == "other") other_ = slot.tensor;
      slots_.push_back(slot);
    }
    for (const int argument : plan_.ignored) {
      const auto& value =
          schema.arguments()[static_cast<size_t>(argument)].default_value();
      defaults_.push_back(value ? *value : IValue());
    }
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  Stack* stack) {
    const size_t count = op.schema().arguments().size();
    for (size_t i = plan_.inplace ? 1 : 0; i < count; ++i) {
      Resolve(&(*stack)[stack->size() - count + i]);
    }
    const c10::ArrayRef<IValue> arguments = torch::jit::last(*stack, count);
    Call call;
    if (!Ordinary(arguments) || !Fill(arguments, &call)) {
      return Otherwise(op, stack);
    }
    c10::SmallVector<HfTensor*, 4> results(static_cast<size_t>(outputs_));
    HfError error;
    Check(
        Api().apply(Session(), plan_.op, call.attrs.data(),
                    static_cast<int32_t>(call.attrs.size()), call.inputs.data(),
                    static_cast<int32_t>(call.inputs.size()), plan_.inplace,
                    results.data(), &error),
        error);
    c10::SmallVector<Handle, 4> handles;
    for (HfTensor* result : results) handles.emplace_back(result);
    if (plan_.inplace) {
      IValue self = arguments[0];
      torch::jit::drop(*stack, count);
      stack->push_back(std::move(self));
      return;
    }
    torch::jit::drop(*stack, count);
    if (plan_.results.empty()) {
      for (Handle& handle : handles) {
        stack->emplace_back(Wrap(std::move(handle)));
      }
    } else {
      for (const int i : plan_.results) {
        stack->emplace_back(Wrap(handles[static_cast<size_t>(i)]));
      }
    }
  }

 private:
  bool Ordinary(c10::ArrayRef<IValue> arguments) const {
    for (size_t i = 0; i < plan_.ignored.size(); ++i) {
      const IValue& value = arguments[static_cast<size_t>(plan_.ignored[i])];
      if (value.isNone() || value.isDevice()) continue;
      if (value.isTensor() || !(value == defaults_[i])) return false;
    }
    return true;
  }

  bool Fill(c10::ArrayRef<IValue> arguments, Call* call) const {
    for (const Slot& slot : slots_) {
      const IValue& value = arguments[static_cast<size_t>(slot.argument)];
      if (slot.list) {
        if (!value.isTensorList()) return false;
        for (const at::Tensor& tensor : value.toTensorVector()) {
          if (!IsOurs(tensor)) return false;
          call->inputs.push_back(HandleOf(tensor));
        }
      } else if (value.isTensor() && value.toTensor().defined()) {
        if (!Input(slot, value.toTensor(), call)) return false;
      } else if (slot.tensor >= 0 && (value.isNone() || value.isTensor())) {
        Place(slot.tensor, nullptr, call);
      } else if (!Attr(slot, value, call)) {
        return false;
      }
    }
    return Scale(arguments, call);
  }

  static void Place(int slot, HfTensor* tensor, Call* call) {
    const auto at = static_cast<size_t>(slot);
    while (call->inputs.size() <= at) call->inputs.push_back(nullptr);
    call->inputs[at] = tensor;
  }

  // A number on the CPU is a number: PyTorch lets it stand beside tensors of
  // any device.
  static bool Input(const Slot& slot, const at::Tensor& tensor, Call* call) {
    if (slot.tensor < 0) return false;
    if (!IsOurs(tensor)) {
      if (!tensor.device().is_cpu() || tensor.dim() != 0 || slot.attr < 0) {
        HandleOf(tensor);  // throws PyTorch's sentence
      }
      Place(slot.tensor, nullptr, call);
      return Attr(slot, IValue(tensor.item()), call);
    }
    Place(slot.tensor, HandleOf(tensor), call);
    return true;
  }

  static bool Attr(const Slot& slot, const IValue& value, Call* call) {
    if (slot.attr < 0) return false;
    if (slot.tensor >= 0) {
      const auto at = static_cast<size_t>(slot.tensor);
      while (call->inputs.size() <= at) call->inputs.push_back(nullptr);
    }
    HfAttr attr{};
    attr.slot = slot.attr;
    if (value.isNone()) {
      attr.kind = HF_NONE;
    } else if (value.isBool()) {
      attr.kind = HF_BOOL;
      attr.integer = value.toBool();
    } else if (value.isInt()) {
      attr.kind = slot.dtype ? HF_DTYPE : HF_INT;
      attr.integer = slot.dtype
                         ? ToDaemon(static_cast<at::ScalarType>(value.toInt()))
                         : value.toInt();
    } else if (value.isDouble()) {
      attr.kind = HF_FLOAT;
      attr.real = value.toDouble();
    } else if (value.isIntList()) {
      call->lists.push_back(value.toIntVector());
      attr.kind = HF_INTS;
      attr.integer = static_cast<int64_t>(call->lists.back().size());
    } else if (value.isString()) {
      call->texts.push_back(value.toStringRef());
      attr.kind = HF_STRING;
    } else {
      return false;
    }
    call->attrs.push_back(attr);
    return true;
  }

  // alpha, and the addresses of what has stopped moving.
  bool Scale(c10::ArrayRef<IValue> arguments, Call* call) const {
    size_t list = 0, text = 0;
    for (HfAttr& attr : call->attrs) {
      if (attr.kind == HF_INTS) attr.address = call->lists[list++].data();
      if (attr.kind == HF_STRING) attr.address = call->texts[text++].c_str();
    }
    if (plan_.alpha < 0) return true;
    const IValue& alpha = arguments[static_cast<size_t>(plan_.alpha)];
    if (alpha.isInt() ? alpha.toInt() == 1
                      : alpha.isDouble() && alpha.toDouble() == 1) {
      return true;
    }
    const auto at = static_cast<size_t>(other_);
    if (other_ < 0 || at >= call->inputs.size() ||
        call->inputs[at] == nullptr) {
      return false;
    }
    HfAttr factor{};
    factor.slot = Api().attr_slot(mul_, "other");
    if (alpha.isInt()) {
      factor.kind = HF_INT;
      factor.integer = alpha.toInt();
    } else if (alpha.isDouble()) {
      factor.kind = HF_FLOAT;
      factor.real = alpha.toDouble();
    } else {
      return false;
    }
    HfTensor* inputs[] = {call->inputs[at], nullptr};
    call->held.push_back(Apply(mul_, &factor, 1, inputs, 2));
    call->inputs[at] = call->held.back().get();
    return true;
  }

  void Otherwise(const c10::OperatorHandle& op, Stack* stack) const {
    TORCH_CHECK_NOT_IMPLEMENTED(otherwise_ != nullptr && otherwise_ != Py_None,
                                "holdfast: ", plan_.name,
                                " with these arguments");
    CallPython(otherwise_, op, stack);
  }

  const Plan plan_;
  PyObject* const otherwise_;  // lives as long as the process
  int32_t outputs_ = 1;
  int32_t mul_ = -1;
  int other_ = -1;
  std::vector<Slot> slots_;
  std::vector<IValue> defaults_;
};

// A variant that writes: what the functional operator returns is copied.
class Variant final : public c10::OperatorKernel {
 public:
  explicit Variant(c10::OperatorHandle functional)
      : functional_(std::move(functional)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  Stack* stack) {
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    const auto arguments = torch::jit::last(*stack, count);
    Stack call;
    std::vector<at::Tensor> written;
    for (size_t i = 0; i < count; ++i) {
      const bool out = schema.arguments()[i].is_out();
      const auto* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite() && arguments[i].isTensor()) {
        written.push_back(arguments[i].toTensor());
      }
      if (!out) call.push_back(arguments[i]);
    }
    functional_.callBoxed(&call);
    torch::jit::drop(*stack, count);
    for (size_t i = 0; i < written.size(); ++i) {
      at::Tensor& to = written[i];
      const at::Tensor from = call[i].toTensor();
      TORCH_CHECK(c10::canCast(from.scalar_type(), to.scalar_type()),
                  "result type ", from.scalar_type(),
                  " can't be cast to the desired output type ",
                  to.scalar_type());
      if (to.sizes() != from.sizes()) to.resize_(from.sizes());
      to.copy_(from);
      stack->emplace_back(to);
    }
  }

 private:
  const c10::OperatorHandle functional_;
};

c10::OperatorHandle Find(const std::string& name) {
  const auto [base, overload] = Split(name);
  return c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(),
                                                        overload.c_str());
}

}  // namespace

void RegisterRow(const Plan& plan, PyObject* otherwise) {
  const c10::OperatorHandle op = Find(plan.name);
  Kernels().impl(plan.name.c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<Row>(plan, op.schema(), otherwise)));
}

void RegisterVariant(const std::string& name, const std::string& functional) {
  Kernels().impl(name.c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<Variant>(Find(functional))));
}

}  // namespace holdfast_torch
