// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ReferenceSink: an OpSink that computes for real, in double precision with
// naive loops, for testing gradients without a server. Shapes come from the
// op table's inference, so a rule that emits an ill-formed op fails here.
// Thread-safety: one thread.
#ifndef HOLDFAST_AUTOGRAD_REFERENCE_SINK_H_
#define HOLDFAST_AUTOGRAD_REFERENCE_SINK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/grad_rule.h"
#include "autograd/op_sink.h"
#include "autograd/reference_ops.h"
#include "autograd/variable.h"
#include "ops/op_id.h"

namespace holdfast {

// Elements, strided as the spec says, in a storage that views share.
class ReferenceTensor final : public Variable {
 public:
  struct Storage {
    std::vector<double> data;
    uint32_t version = 0;
    std::string writer;
  };

  ReferenceTensor(TensorSpec spec, std::shared_ptr<Storage> storage)
      : Variable(std::move(spec)), storage(std::move(storage)) {}

  uint32_t version() const override { return storage->version; }
  const char* last_writer() const override { return storage->writer.c_str(); }

  // A row-major copy of the elements.
  Dense Read() const;
  void Write(const Dense& values);

  const std::shared_ptr<Storage> storage;
};

inline ReferenceTensor& AsReference(const Value& value) {
  return static_cast<ReferenceTensor&>(*value);
}

class ReferenceSink final : public OpSink {
 public:
  absl::StatusOr<Values> Emit(const Attrs& attrs,
                              absl::Span<const Value> inputs, bool record,
                              bool inplace) override;
  Value Alias(const Value& value) override;
  absl::StatusOr<bool> HasNaN(const Value& value) override;

  // Ops run so far, by kind.
  int count(OpId op) const { return counts_[static_cast<int>(op)]; }
  int inplace_count() const { return inplace_count_; }

 private:
  int counts_[kNumOps] = {};
  int inplace_count_ = 0;
};

// A contiguous tensor with the given elements.
Value NewTensor(DType dtype, const Dims& shape, std::vector<double> values);
// The same as a leaf that requires a gradient.
Value NewLeaf(const Dims& shape, std::vector<double> values);

// What the executor does with a user's op: runs it, records it, and returns
// its outputs. Aborts on an error: tests call it with valid ops.
Values RunAll(ReferenceSink& sink, OpId op, const std::vector<Value>& inputs,
              const std::vector<NamedAttr>& attrs = {}, bool inplace = false);
inline Value RunOne(ReferenceSink& sink, OpId op,
                    const std::vector<Value>& inputs,
                    const std::vector<NamedAttr>& attrs = {}) {
  return RunAll(sink, op, inputs, attrs)[0];
}

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_REFERENCE_SINK_H_
