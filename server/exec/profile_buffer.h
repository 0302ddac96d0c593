// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ProfileBuffer: what one session executed and when, until its client reads
// it. Bounded: a client that does not read loses the latest records, and is
// told how many.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_PROFILE_BUFFER_H_
#define HOLDFAST_SERVER_EXEC_PROFILE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/engine.h"
#include "kernels/device.h"
#include "ops/op_schema.h"
#include "proto/holdfast.pb.h"
#include "server/exec/tensor.h"

namespace holdfast {

class ProfileBuffer {
 public:
  // Memory that one session's records may take.
  static constexpr size_t kMaxBytes = 64 << 20;

  explicit ProfileBuffer(const v1::Profile& options);

  // A command, or a stretch of a backward, begins. `sequence`:
  // ProfileRecord.op_sequence. `received_ns`: when its batch came, 0 if not
  // known.
  void Begin(v1::ProfileRecord::Kind kind, uint64_t sequence,
             int64_t received_ns);
  // It is over.
  void End();
  // Of the command that has begun: it is this op.
  void SetOp(uint32_t op, bool inplace);

  // An op began at `start_ns` and is done: the command's own, or one of those
  // it needs. Inside a backward each is a record.
  void NoteOp(const OpSchema& schema, absl::Span<const Value> inputs,
              bool inplace, absl::Span<const Value> outputs, int64_t start_ns,
              bool ok);
  // The pass behind NoteOp's ops; null: none.
  void set_pass(const BackwardPass* pass) { pass_ = pass; }

  // What a device has done on a stream.
  void NoteWork(const std::string& stream, std::vector<Device::WorkTime> times);

  // Moves the oldest records, some `bytes` of them but at least one.
  void Take(size_t bytes, v1::ProfileChunk* chunk);
  bool empty() const { return records_.empty() && work_.empty(); }

 private:
  void Add(v1::ProfileRecord record);
  // Counts what is dropped instead; `held`: such records are there.
  bool HasRoom(size_t held, size_t bytes, uint64_t* dropped);

  const bool shapes_;
  const uint64_t max_records_;
  std::deque<v1::ProfileRecord> records_;
  std::deque<v1::DeviceWork> work_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;  // of records_
  uint64_t dropped_work_ = 0;
  v1::ProfileRecord current_;
  bool ran_ = false;  // the command's own op
  const BackwardPass* pass_ = nullptr;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_PROFILE_BUFFER_H_
