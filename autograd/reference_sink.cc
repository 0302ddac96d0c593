// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/reference_sink.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "autograd/tape.h"

namespace holdfast {
namespace {

double Converted(DType dtype, double x) {
  if (dtype == DType::kBool) return x != 0;
  if (dtype == DType::kFloat32) return static_cast<float>(x);
  return IsFloat(dtype) ? x : std::trunc(x);
}

}  // namespace

Dense ReferenceTensor::Read() const {
  Dense result(spec_.shape);
  size_t next = 0;
  ForEachIndex(spec_.shape, [&](const Dims& index) {
    int64_t offset = spec_.offset;
    for (size_t d = 0; d < index.size(); ++d) {
      offset += index[d] * spec_.strides[d];
    }
    result.v[next++] = storage->data[offset];
  });
  return result;
}

void ReferenceTensor::Write(const Dense& values) {
  size_t next = 0;
  ForEachIndex(spec_.shape, [&](const Dims& index) {
    int64_t offset = spec_.offset;
    for (size_t d = 0; d < index.size(); ++d) {
      offset += index[d] * spec_.strides[d];
    }
    storage->data[offset] = Converted(spec_.dtype, values.v[next++]);
  });
}

absl::StatusOr<Values> ReferenceSink::Emit(const Attrs& attrs,
                                           absl::Span<const Value> inputs,
                                           bool record, bool inplace) {
  const OpSchema& schema = attrs.schema();
  ++counts_[static_cast<int>(schema.id)];
  inplace_count_ += inplace;
  std::vector<const TensorSpec*> specs;
  bool needs_grad = false;
  for (const Value& input : inputs) {
    specs.push_back(input ? &input->spec() : nullptr);
    needs_grad |= input && input->requires_grad();
  }
  OutputSpecs output_specs;
  absl::Status status = InferOp(attrs, specs, inplace, &output_specs);
  if (!status.ok()) return status;
  RefPtr<Node> node;
  if (record && needs_grad && !schema.has(kNoGrad)) {
    if (inplace) {
      absl::StatusOr<RefPtr<Node>> begun =
          BeginRecordInplace(attrs, inputs, *this);
      if (!begun.ok()) return begun.status();
      node = *std::move(begun);
    } else {
      node = BeginRecord(attrs, inputs);
    }
  }
  Values outputs;
  if (schema.has(kView)) {
    outputs.push_back(MakeRef<ReferenceTensor>(output_specs[0].spec,
                                               AsReference(inputs[0]).storage));
  } else {
    std::vector<Dense> in, out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) {
        in.push_back(AsReference(inputs[i]).Read());
        continue;
      }
      in.emplace_back();
      const int slot = schema.params[schema.tensor_params[i]].attr_slot;
      if (slot >= 0) in.back() = Dense({}, AttrAsDouble(attrs.Get(slot)));
    }
    for (const OutputSpec& o : output_specs) out.emplace_back(o.spec.shape);
    if (!ComputeReference(attrs, in, out)) {
      return absl::UnimplementedError(
          absl::StrCat("[", schema.name, "] has no reference"));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (inplace) {
        outputs.push_back(inputs[0]);
        ReferenceTensor::Storage& storage = *AsReference(inputs[0]).storage;
        ++storage.version;
        storage.writer = absl::StrCat(schema.name, "_");
      } else {
        outputs.push_back(NewTensor(output_specs[i].spec.dtype, out[i].shape,
                                    std::vector<double>(out[i].v.size())));
      }
      AsReference(outputs[i]).Write(out[i]);
    }
  }
  if (node) {
    if (inplace) outputs[0] = Alias(inputs[0]);
    EndRecord(node, *this, outputs);
  }
  return outputs;
}

Value ReferenceSink::Alias(const Value& value) {
  return MakeRef<ReferenceTensor>(value->spec(), AsReference(value).storage);
}

absl::StatusOr<bool> ReferenceSink::HasNaN(const Value& value) {
  for (const double x : AsReference(value).Read().v) {
    if (std::isnan(x)) return true;
  }
  return false;
}

Value NewTensor(DType dtype, const Dims& shape, std::vector<double> values) {
  auto storage = std::make_shared<ReferenceTensor::Storage>();
  storage->data = std::move(values);
  return MakeRef<ReferenceTensor>(ContiguousSpec(dtype, shape),
                                  std::move(storage));
}

Value NewLeaf(const Dims& shape, std::vector<double> values) {
  Value leaf = NewTensor(DType::kFloat64, shape, std::move(values));
  leaf->SetLeafRequiresGrad(true);
  return leaf;
}

Values RunAll(ReferenceSink& sink, OpId op, const std::vector<Value>& inputs,
              const std::vector<NamedAttr>& attrs, bool inplace) {
  Attrs filled(&GetOp(op));
  for (const NamedAttr& attr : attrs) filled.Set(attr.first, attr.second);
  absl::StatusOr<Values> outputs =
      sink.Emit(filled, inputs, /*record=*/true, inplace);
  if (!outputs.ok()) {
    std::fprintf(stderr, "%s\n", outputs.status().ToString().c_str());
    std::abort();
  }
  return *std::move(outputs);
}

}  // namespace holdfast
