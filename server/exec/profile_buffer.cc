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

bool ProfileBuffer::HasRoom(size_t held, size_t bytes, uint64_t* dropped) {
  if (held >= max_records_ || bytes_ + bytes > kMaxBytes) {
    ++*dropped;
    return false;
  }
  bytes_ += bytes;
  return true;
}

void ProfileBuffer::Add(v1::ProfileRecord record) {
  if (HasRoom(records_.size(), record.SpaceUsedLong(), &dropped_)) {
    records_.push_back(std::move(record));
  }
}

void ProfileBuffer::NoteWork(const std::string& stream,
                             std::vector<Device::WorkTime> times) {
  for (Device::WorkTime& time : times) {
    v1::DeviceWork work;
    work.set_name(std::move(time.name));
    work.set_stream(stream);
    work.set_op_sequence(time.tag);
    work.set_start_ns(time.start_ns);
    work.set_duration_ns(time.duration_ns);
    if (HasRoom(work_.size(), work.SpaceUsedLong(), &dropped_work_)) {
      work_.push_back(std::move(work));
    }
  }
}

namespace {

// Moves the first of `from` into the chunk unless that is full, with its tag
// and length beside it.
template <typename Record, typename Add>
bool MoveFirst(std::deque<Record>* from, size_t limit, size_t* taken,
               size_t* held, Add add) {
  const size_t size = from->front().ByteSizeLong() + 8;
  if (*taken > 0 && *taken + size > limit) return false;
  *taken += size;
  *held -= std::min(*held, from->front().SpaceUsedLong());
  *add() = std::move(from->front());
  from->pop_front();
  return true;
}

}  // namespace

void ProfileBuffer::Take(size_t bytes, v1::ProfileChunk* chunk) {
  size_t taken = 0;
  bool room = true;
  while (room && !records_.empty()) {
    room = MoveFirst(&records_, bytes, &taken, &bytes_,
                     [&] { return chunk->add_records(); });
  }
  while (room && !work_.empty()) {
    room = MoveFirst(&work_, bytes, &taken, &bytes_,
                     [&] { return chunk->add_kernels(); });
  }
  if (empty()) bytes_ = 0;
  chunk->set_more(!empty());
  chunk->set_dropped(dropped_);
  chunk->set_dropped_kernels(dropped_work_);
}

}  // namespace holdfast
