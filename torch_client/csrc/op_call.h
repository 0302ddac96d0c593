// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A call of one of the daemon's ops, written as its signature in the op table
// reads: tensors by In, all other arguments by the rest, each in their order.
//
//   static const Op op("softmax");
//   return Call(op).In(self).Int(dim).Run();
//
// Arguments at the end that are left out have their defaults. What is passed by
// reference must live until the call has run.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <optional>

#include "api.h"
#include "bridge.h"

namespace holdfast_torch {

// An op by its name, looked up once. Throws if the daemon's table lacks it.
class Op {
 public:
  explicit Op(const char* name);
  int32_t id() const { return id_; }
  int32_t outputs() const { return outputs_; }
  // The slot of an argument that is no tensor, and of one that is.
  int32_t attr(const char* name) const { return Api().attr_slot(id_, name); }
  int32_t tensor(const char* name) const {
    return Api().tensor_slot(id_, name);
  }

 private:
  int32_t id_;
  int32_t outputs_;
};

// The number as a tensor of `dtype` would hold it.
HfAttr AttrOf(const at::Scalar& value, c10::ScalarType dtype);
// The number with its own type. Throws for a complex one.
HfAttr AttrOf(const at::Scalar& value);

class Call {
 public:
  explicit Call(const Op& op) : op_(op) {}

  Call& In(HfTensor* tensor) {
    inputs_.push_back(tensor);
    return *this;
  }
  // Undefined: None.
  Call& In(const at::Tensor& tensor) {
    return In(tensor.defined() ? HandleOf(tensor) : nullptr);
  }
  Call& In(const std::optional<at::Tensor>& tensor) {
    return In(tensor.has_value() && tensor->defined() ? HandleOf(*tensor)
                                                      : nullptr);
  }
  Call& In(at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) In(tensor);
    return *this;
  }

  Call& Value(const HfAttr& attr) {
    attrs_.push_back(attr);
    attrs_.back().slot = next_++;
    return *this;
  }
  Call& None() { return Plain(HF_NONE, 0); }
  Call& Bool(bool value) { return Plain(HF_BOOL, value); }
  Call& Int(int64_t value) { return Plain(HF_INT, value); }
  Call& DType(int dtype) { return Plain(HF_DTYPE, dtype); }
  Call& Type(c10::ScalarType type) { return DType(ToDaemon(type)); }
  Call& Float(double value);
  Call& Scalar(const at::Scalar& value) { return Value(AttrOf(value)); }
  Call& Ints(c10::IntArrayRef values);
  Call& Text(const char* value);
  // Leaves a slot as it is: an Operand's, which a tensor fills.
  Call& Skip() {
    ++next_;
    return *this;
  }

  Handle RunHandle();
  at::Tensor Run() { return Wrap(RunHandle()); }
  // Of ops with several results.
  template <size_t N>
  std::array<Handle, N> RunHandles() {
    std::array<HfTensor*, N> results{};
    Apply(/*inplace=*/false, results.data());
    std::array<Handle, N> handles;
    for (size_t i = 0; i < N; ++i) handles[i] = Handle(results[i]);
    return handles;
  }
  // Of ops that write their arguments and return nothing.
  void RunForEffect() { Apply(/*inplace=*/false, nullptr); }
  // The in-place form: writes the first tensor.
  void RunInPlace();

 private:
  Call& Plain(int32_t kind, int64_t value);
  void Apply(bool inplace, HfTensor** results);

  const Op& op_;
  int32_t next_ = 0;
  c10::SmallVector<HfTensor*, 8> inputs_;
  c10::SmallVector<HfAttr, 8> attrs_;
};

}  // namespace holdfast_torch
