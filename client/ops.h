// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops: the op table as C++ functions, for programs that use the client without
// Python. Errors stick: after the first failed call every further one returns
// null and does nothing, so a program writes its arithmetic plainly and looks
// at status() where it matters, say once per step.
// Thread-safety: one thread at a time; several Ops may share a session.
#ifndef HOLDFAST_CLIENT_OPS_H_
#define HOLDFAST_CLIENT_OPS_H_

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/session.h"
#include "ops/op_id.h"

namespace holdfast::client {

class Ops {
 public:
  using NamedAttr = std::pair<absl::string_view, AttrValue>;
  using NamedAttrs = std::initializer_list<NamedAttr>;

  explicit Ops(std::shared_ptr<Session> session);

  const std::shared_ptr<Session>& session() const { return session_; }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Off: what follows is not differentiated (PyTorch's no_grad).
  void set_record(bool record) { record_ = record; }

  // Any op by its id. A null input is an absent tensor; an operand given as a
  // number is null with its attribute set.
  Tensor Call(OpId op, std::initializer_list<Tensor> inputs,
              NamedAttrs attrs = {});
  std::vector<Tensor> CallAll(OpId op, absl::Span<const Tensor> inputs,
                              NamedAttrs attrs = {});
  Tensor CallInplace(OpId op, std::initializer_list<Tensor> inputs,
                     NamedAttrs attrs = {});

  // ---- tensors
  Tensor Put(absl::Span<const float> values, absl::Span<const int64_t> shape);
  Tensor Put(absl::Span<const int64_t> values, absl::Span<const int64_t> shape);
  // A leaf that gradients are wanted for.
  Tensor Parameter(Tensor value);
  Tensor Rand(Dims size) { return Call(OpId::rand, {}, {{"size", size}}); }
  Tensor Randn(Dims size) { return Call(OpId::randn, {}, {{"size", size}}); }

  // ---- arithmetic
  Tensor Add(Tensor a, Tensor b) { return Call(OpId::add, {a, b}); }
  Tensor Sub(Tensor a, Tensor b) { return Call(OpId::sub, {a, b}); }
  Tensor Mul(Tensor a, Tensor b) { return Call(OpId::mul, {a, b}); }
  Tensor Div(Tensor a, Tensor b) { return Call(OpId::div, {a, b}); }
  Tensor Add(Tensor a, double b) { return WithNumber(OpId::add, a, b); }
  Tensor Sub(Tensor a, double b) { return WithNumber(OpId::sub, a, b); }
  Tensor Mul(Tensor a, double b) { return WithNumber(OpId::mul, a, b); }
  Tensor Div(Tensor a, double b) { return WithNumber(OpId::div, a, b); }
  Tensor Relu(Tensor x) { return Call(OpId::relu, {x}); }
  Tensor Tanh(Tensor x) { return Call(OpId::tanh, {x}); }
  Tensor Sum(Tensor x) { return Call(OpId::sum, {x}); }
  Tensor Mean(Tensor x) { return Call(OpId::mean, {x}); }
  Tensor Argmax(Tensor x, int64_t dim) {
    return Call(OpId::argmax, {x}, {{"dim", dim}});
  }

  // ---- networks
  Tensor Matmul(Tensor a, Tensor b) { return Call(OpId::matmul, {a, b}); }
  // x @ weight.T + bias; weight is [out, in], bias may be null.
  Tensor Linear(Tensor x, Tensor weight, Tensor bias) {
    return Call(OpId::linear, {x, weight, bias});
  }
  // Mean cross entropy of class targets [N] under logits [N, C].
  Tensor CrossEntropy(Tensor logits, Tensor targets);
  void Backward(Tensor loss);
  // One step of plain SGD over parameters that have gradients; drops them.
  void SgdStep(absl::Span<const Tensor> parameters, double learning_rate);

  // ---- reads: these wait
  std::vector<float> ReadFloats(Tensor tensor);
  std::vector<int64_t> ReadInts(Tensor tensor);
  double Item(Tensor tensor);

 private:
  Tensor WithNumber(OpId op, Tensor a, double b);
  absl::Status Read(const Tensor& tensor, DType dtype, ReadValue* value);
  bool Note(const absl::Status& status);

  const std::shared_ptr<Session> session_;
  absl::Status status_;
  bool record_ = true;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_OPS_H_
