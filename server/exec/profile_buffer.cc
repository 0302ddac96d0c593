// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/profile_buffer.h"

#include <algorithm>
#include <utility>

#include "proto/profile_clock.h"

namespace holdfast {
namespace {

// Of one record's shapes: an op may have thousands of inputs.
constexpr int kMaxSizes = 256;

void NoteShapes(absl::Span<const Value> inputs, v1::ProfileRecord* record) {
  int left = kMaxSizes;
  for (const Value& input : inputs) {
    // An empty list costs room, too.
    const int sizes = 1 + (input ? input->spec().rank() : 0);
    if (sizes > left) return;
    left -= sizes;
    v1::IntList* shape = record->add_input_shapes();
    if (!input) continue;
    for (int64_t size : input->spec().shape) shape->add_values(size);
  }
}

uint64_t NewBytes(const OpSchema& schema, bool inplace,
                  absl::Span<const Value> outputs) {
  if (inplace || schema.has(kView)) return 0;
  uint64_t bytes = 0;
  for (const Value& output : outputs) {
    if (output) bytes += output->spec().nbytes();
  }
  return bytes;
}

}  // namespace

ProfileBuffer::ProfileBuffer(const v1::Profile& options)
    : shapes_(options.shapes()),
      max_records_(options.max_records() == 0 ? UINT64_MAX
                                              : options.max_records()) {}

void ProfileBuffer::Begin(v1::ProfileRecord::Kind kind, uint64_t sequence,
                          int64_t received_ns) {
  current_.Clear();
  ran_ = false;
  const int64_t now = ProfileNow();
  current_.set_kind(kind);
  current_.set_op_sequence(sequence);
  current_.set_start_ns(now);
  if (received_ns != 0 && received_ns <= now) {
    current_.set_waited_ns(now - received_ns);
  }
}

void ProfileBuffer::SetOp(uint32_t op, bool inplace) {
  current_.set_op(op);
  current_.set_inplace(inplace);
}

void ProfileBuffer::End() {
  current_.set_duration_ns(ProfileNow() - current_.start_ns());
  // An op that inherited a failure never ran.
  if (current_.kind() == v1::ProfileRecord::OP && !ran_) {
    current_.set_failed(true);
  }
  Add(current_);
}

void ProfileBuffer::NoteOp(const OpSchema& schema,
                           absl::Span<const Value> inputs, bool inplace,
                           absl::Span<const Value> outputs, int64_t start_ns,
                           bool ok) {
  const uint64_t bytes = NewBytes(schema, inplace, outputs);
  const auto id = static_cast<uint32_t>(schema.id);
  if (current_.kind() != v1::ProfileRecord::BACKWARD) {
    current_.set_output_bytes(current_.output_bytes() + bytes);
    const bool own =
        current_.kind() == v1::ProfileRecord::OP && current_.op() == id;
    if (!own || ran_) return;
    ran_ = true;
    if (!ok) current_.set_failed(true);
    if (shapes_) NoteShapes(inputs, &current_);
    return;
  }
  v1::ProfileRecord record;
  record.set_op(id);
  record.set_inplace(inplace);
  record.set_failed(!ok);
  record.set_in_backward(true);
  record.set_op_sequence(current_.op_sequence());
  if (pass_ != nullptr) record.set_forward_op_sequence(pass_->running_op());
  record.set_start_ns(start_ns);
  record.set_duration_ns(ProfileNow() - start_ns);
  record.set_output_bytes(bytes);
  if (shapes_) NoteShapes(inputs, &record);
  Add(std::move(record));
}

void ProfileBuffer::Add(v1::ProfileRecord record) {
  const size_t bytes = record.SpaceUsedLong();
  if (records_.size() >= max_records_ || bytes_ + bytes > kMaxBytes) {
    ++dropped_;
    return;
  }
  bytes_ += bytes;
  records_.push_back(std::move(record));
}

void ProfileBuffer::Take(size_t bytes, v1::ProfileChunk* chunk) {
  size_t taken = 0;
  while (!records_.empty()) {
    v1::ProfileRecord& record = records_.front();
    // Its tag and length beside it.
    taken += record.ByteSizeLong() + 8;
    if (taken > bytes && chunk->records_size() > 0) break;
    bytes_ -= std::min(bytes_, record.SpaceUsedLong());
    *chunk->add_records() = std::move(record);
    records_.pop_front();
  }
  if (records_.empty()) bytes_ = 0;
  chunk->set_more(!records_.empty());
  chunk->set_dropped(dropped_);
}

}  // namespace holdfast
