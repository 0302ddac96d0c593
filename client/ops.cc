// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ops.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

absl::StatusOr<Attrs> MakeAttrs(const OpSchema& schema, Ops::NamedAttrs named) {
  Attrs attrs(&schema);
  for (const Ops::NamedAttr& attr : named) {
    int slot = 0;
    while (slot < schema.num_attrs &&
           schema.params[schema.attr_params[slot]].name != attr.first) {
      ++slot;
    }
    if (slot == schema.num_attrs) {
      return absl::InvalidArgumentError(
          absl::StrCat("[", schema.name, "] there is no attribute '",
                       attr.first, "'. The signature is ", schema.signature));
    }
    absl::Status status = CheckAttr(schema, slot, attr.second);
    if (!status.ok()) return status;
    attrs.Set(slot, attr.second);
  }
  return attrs;
}

template <typename T>
std::vector<T> ToVector(const ReadValue& value) {
  const T* begin = static_cast<const T*>(value.data);
  return std::vector<T>(begin, begin + value.spec.numel());
}

}  // namespace

Ops::Ops(std::shared_ptr<Session> session) : session_(std::move(session)) {}

bool Ops::Note(const absl::Status& status) {
  status_.Update(status);
  return status_.ok();
}

std::vector<Tensor> Ops::CallAll(OpId op, absl::Span<const Tensor> inputs,
                                 NamedAttrs named) {
  const OpSchema& schema = GetOp(op);
  std::vector<Tensor> outputs(schema.num_outputs);
  if (!ok()) return outputs;
  absl::StatusOr<Attrs> attrs = MakeAttrs(schema, named);
  if (Note(attrs.status())) {
    Note(session_->Apply(*attrs, inputs, /*inplace=*/false, record_,
                         absl::MakeSpan(outputs)));
  }
  return outputs;
}

Tensor Ops::Call(OpId op, std::initializer_list<Tensor> inputs,
                 NamedAttrs named) {
  std::vector<Tensor> outputs =
      CallAll(op, absl::MakeSpan(inputs.begin(), inputs.size()), named);
  return outputs.empty() ? nullptr : outputs[0];
}

Tensor Ops::CallInplace(OpId op, std::initializer_list<Tensor> inputs,
                        NamedAttrs named) {
  if (!ok()) return nullptr;
  absl::StatusOr<Attrs> attrs = MakeAttrs(GetOp(op), named);
  if (!Note(attrs.status())) return nullptr;
  Tensor output;
  Note(session_->Apply(*attrs, absl::MakeSpan(inputs.begin(), inputs.size()),
                       /*inplace=*/true, record_, {&output, 1}));
  return output;
}

Tensor Ops::WithNumber(OpId op, Tensor a, double b) {
  return Call(op, {a, nullptr}, {{"other", b}});
}

Tensor Ops::Put(absl::Span<const float> values,
                absl::Span<const int64_t> shape) {
  if (!ok()) return nullptr;
  if (static_cast<int64_t>(values.size()) != NumElements(shape)) {
    Note(absl::InvalidArgumentError(
        absl::StrCat("[put] the values must fill the shape. Got ",
                     values.size(), " values for ", ShapeString(shape), ".")));
    return nullptr;
  }
  absl::StatusOr<Tensor> tensor =
      session_->Put(DType::kFloat32, shape, values.data());
  return Note(tensor.status()) ? *tensor : nullptr;
}

Tensor Ops::Put(absl::Span<const int64_t> values,
                absl::Span<const int64_t> shape) {
  if (!ok()) return nullptr;
  if (static_cast<int64_t>(values.size()) != NumElements(shape)) {
    Note(absl::InvalidArgumentError(
        absl::StrCat("[put] the values must fill the shape. Got ",
                     values.size(), " values for ", ShapeString(shape), ".")));
    return nullptr;
  }
  absl::StatusOr<Tensor> tensor =
      session_->Put(DType::kInt64, shape, values.data());
  return Note(tensor.status()) ? *tensor : nullptr;
}

Tensor Ops::Parameter(Tensor value) {
  if (ok()) Note(session_->SetRequiresGrad(value, true));
  return value;
}

Tensor Ops::CrossEntropy(Tensor logits, Tensor targets) {
  const Tensor log_probabilities =
      Call(OpId::log_softmax, {logits}, {{"dim", int64_t{1}}});
  return Call(OpId::nll_loss, {log_probabilities, targets, nullptr});
}

void Ops::Backward(Tensor loss) {
  if (!ok()) return;
  Note(session_->Backward({&loss, 1}, {}, {}, {}));
}

void Ops::SgdStep(absl::Span<const Tensor> parameters, double learning_rate) {
  if (!ok()) return;
  std::vector<Tensor> lists;
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    Tensor gradient = session_->GetGrad(parameter);
    if (!gradient) continue;
    lists.push_back(parameter);
    gradients.push_back(std::move(gradient));
  }
  if (gradients.empty()) return;
  // Parameters, gradients and, unread without momentum, buffers.
  for (int list = 0; list < 2; ++list) {
    lists.insert(lists.end(), gradients.begin(), gradients.end());
  }
  CallAll(OpId::sgd, lists, {{"lr", learning_rate}});
  for (const Tensor& parameter : parameters) {
    if (ok()) Note(session_->SetGrad(parameter, nullptr));
  }
}

absl::Status Ops::Read(const Tensor& tensor, DType dtype, ReadValue* value) {
  if (tensor->spec().dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("[read] the tensor must be ", DTypeName(dtype), ". Got ",
                     tensor->spec().ToString(), "."));
  }
  absl::StatusOr<uint64_t> id = session_->StartRead(tensor, /*place=*/false);
  if (!id.ok()) return id.status();
  absl::StatusOr<ReadValue> read = session_->WaitRead(*id, nullptr);
  if (!read.ok()) return read.status();
  *value = *std::move(read);
  return absl::OkStatus();
}

std::vector<float> Ops::ReadFloats(Tensor tensor) {
  ReadValue value;
  if (!ok() || !Note(Read(tensor, DType::kFloat32, &value))) return {};
  return ToVector<float>(value);
}

std::vector<int64_t> Ops::ReadInts(Tensor tensor) {
  ReadValue value;
  if (!ok() || !Note(Read(tensor, DType::kInt64, &value))) return {};
  return ToVector<int64_t>(value);
}

double Ops::Item(Tensor tensor) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::vector<float> values = ReadFloats(std::move(tensor));
  return values.size() == 1 ? values[0] : kNone;
}

}  // namespace holdfast::client
