// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/profile_buffer.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "proto/profile_clock.h"

namespace holdfast {
namespace {

using Record = v1::ProfileRecord;

v1::Profile Options(uint64_t max_records = 0, bool shapes = false) {
  v1::Profile options;
  options.set_on(true);
  options.set_max_records(max_records);
  options.set_shapes(shapes);
  return options;
}

v1::ProfileChunk TakeAll(ProfileBuffer* buffer) {
  v1::ProfileChunk chunk;
  buffer->Take(SIZE_MAX, &chunk);
  return chunk;
}

void Note(ProfileBuffer* buffer, OpId op, absl::Span<const Value> inputs = {}) {
  buffer->NoteOp(GetOp(op), inputs, /*inplace=*/false, {}, ProfileNow(),
                 /*ok=*/true);
}

TEST(ProfileBufferTest, ACommandIsOneRecordWhateverItNeeds) {
  ProfileBuffer buffer(Options());
  buffer.Begin(Record::OP, 7, /*received_ns=*/0);
  buffer.SetOp(static_cast<uint32_t>(OpId::add), /*inplace=*/true);
  Note(&buffer, OpId::as_strided);  // a view's history, read anew
  Note(&buffer, OpId::add);
  buffer.End();
  const v1::ProfileChunk chunk = TakeAll(&buffer);
  ASSERT_EQ(chunk.records_size(), 1);
  const Record& record = chunk.records(0);
  EXPECT_EQ(record.op(), static_cast<uint32_t>(OpId::add));
  EXPECT_EQ(record.op_sequence(), 7u);
  EXPECT_TRUE(record.inplace());
  EXPECT_FALSE(record.failed());
  EXPECT_EQ(record.waited_ns(), 0u);
  EXPECT_TRUE(buffer.empty());
}

TEST(ProfileBufferTest, AnOpThatNeverRanFailed) {
  ProfileBuffer buffer(Options());
  buffer.Begin(Record::OP, 1, 0);
  buffer.SetOp(static_cast<uint32_t>(OpId::add), false);
  buffer.End();
  EXPECT_TRUE(TakeAll(&buffer).records(0).failed());
}

TEST(ProfileBufferTest, OpsInsideABackwardAreRecords) {
  ProfileBuffer buffer(Options());
  const int64_t received = ProfileNow();
  buffer.Begin(Record::BACKWARD, 9, received);
  Note(&buffer, OpId::mul);
  Note(&buffer, OpId::sum);
  buffer.End();
  const v1::ProfileChunk chunk = TakeAll(&buffer);
  ASSERT_EQ(chunk.records_size(), 3);
  const Record& backward = chunk.records(2);
  EXPECT_EQ(backward.kind(), Record::BACKWARD);
  EXPECT_GE(static_cast<int64_t>(backward.start_ns()), received);
  EXPECT_EQ(backward.start_ns() - backward.waited_ns(),
            static_cast<uint64_t>(received));
  for (int i = 0; i < 2; ++i) {
    const Record& op = chunk.records(i);
    EXPECT_TRUE(op.in_backward());
    EXPECT_EQ(op.op_sequence(), 9u);
    EXPECT_GE(op.start_ns(), backward.start_ns());
    EXPECT_LE(op.start_ns() + op.duration_ns(),
              backward.start_ns() + backward.duration_ns());
  }
}

TEST(ProfileBufferTest, TheClientsBoundHolds) {
  ProfileBuffer buffer(Options(/*max_records=*/3));
  for (uint64_t i = 1; i <= 10; ++i) {
    buffer.Begin(Record::PUT, i, 0);
    buffer.End();
  }
  const v1::ProfileChunk chunk = TakeAll(&buffer);
  ASSERT_EQ(chunk.records_size(), 3);
  EXPECT_EQ(chunk.records(2).op_sequence(), 3u);  // the first ones stay
  EXPECT_EQ(chunk.dropped(), 7u);
}

TEST(ProfileBufferTest, MemoryIsBoundedWhateverTheClientSays) {
  ProfileBuffer buffer(Options(UINT64_MAX));
  const uint64_t all = ProfileBuffer::kMaxBytes / sizeof(Record) + 1000;
  for (uint64_t i = 1; i <= all; ++i) {
    buffer.Begin(Record::PUT, i, 0);
    buffer.End();
  }
  uint64_t taken = 0;
  v1::ProfileChunk chunk;
  do {
    chunk.Clear();
    buffer.Take(1 << 20, &chunk);
    EXPECT_LE(chunk.ByteSizeLong(), (1u << 20) + 64);
    ASSERT_GT(chunk.records_size(), 0);
    taken += chunk.records_size();
  } while (chunk.more());
  EXPECT_LE(taken * sizeof(Record), ProfileBuffer::kMaxBytes);
  EXPECT_EQ(taken + chunk.dropped(), all);
  EXPECT_GE(chunk.dropped(), 1000u);
  // Room again.
  buffer.Begin(Record::PUT, 1, 0);
  buffer.End();
  EXPECT_EQ(TakeAll(&buffer).records_size(), 1);
}

TEST(ProfileBufferTest, ShapesOfThousandsOfInputsAreCut) {
  ProfileBuffer buffer(Options(0, /*shapes=*/true));
  buffer.Begin(Record::OP, 1, 0);
  buffer.SetOp(static_cast<uint32_t>(OpId::cat), false);
  Note(&buffer, OpId::cat, std::vector<Value>(5000));
  buffer.End();
  EXPECT_EQ(TakeAll(&buffer).records(0).input_shapes_size(), 256);
}

TEST(ProfileBufferTest, ATinyReplyStillHoldsARecord) {
  ProfileBuffer buffer(Options());
  for (uint64_t i = 1; i <= 2; ++i) {
    buffer.Begin(Record::READ, i, 0);
    buffer.End();
  }
  v1::ProfileChunk chunk;
  buffer.Take(0, &chunk);
  EXPECT_EQ(chunk.records_size(), 1);
  EXPECT_TRUE(chunk.more());
}

}  // namespace
}  // namespace holdfast
