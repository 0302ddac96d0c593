// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A connection over rings whose other end does what it likes.
#include "server/transport/shm_connection.h"

#include <poll.h>
#include <string.h>

#include <memory>
#include <random>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// The client's mappings of what the connection owns.
class ShmConnectionTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    absl::StatusOr<ShmChannel> channel = ShmChannel::Create();
    ASSERT_TRUE(channel.ok()) << channel.status();
    submission_ = *RingMemory::Map(channel->submission_fd.get());
    completion_ = *RingMemory::Map(channel->completion_fd.get());
    client_bell_ = channel->client_bell_fd.get();
    writer_ = std::make_unique<RingWriter>(&submission_);
    reader_ = std::make_unique<RingReader>(&completion_);
    connection_ = std::make_unique<ShmConnection>(*std::move(channel), nullptr,
                                                  nullptr, nullptr);
  }

  bool Submit(const std::string& record) {
    return writer_->TryWrite(record.data(), record.size());
  }
  bool Rung() {
    pollfd bell = {client_bell_, POLLIN, 0};
    return poll(&bell, 1, 0) == 1;
  }

  RingMemory submission_, completion_;
  int client_bell_ = -1;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
  std::unique_ptr<ShmConnection> connection_;
};

v1::Batch BatchOf(uint64_t sequence, int ops) {
  v1::Batch batch;
  batch.set_sequence(sequence);
  for (int i = 0; i < ops; ++i) {
    v1::OpCall* op = batch.add_commands()->mutable_op();
    op->set_op(7);
    op->add_inputs(i + 1);
    op->add_inputs(i + 2);
    op->set_outputs(i + 3);
  }
  return batch;
}

v1::Event ReadOf(uint64_t id, size_t bytes) {
  v1::Event event;
  event.set_sequence(id);
  event.mutable_read()->set_id(id);
  event.mutable_read()->set_data(std::string(bytes, 'x'));
  return event;
}

TEST_F(ShmConnectionTest, BatchesArriveInOrderAndWhole) {
  EXPECT_FALSE(connection_->HasBatch());
  EXPECT_EQ(*connection_->NextBatch(), nullptr);
  for (int i = 1; i <= 2000; ++i) {
    const v1::Batch sent = BatchOf(i, i % 700);  // beyond the arena's block
    ASSERT_TRUE(Submit(sent.SerializeAsString()));
    EXPECT_TRUE(connection_->HasBatch());
    absl::StatusOr<const v1::Batch*> got = connection_->NextBatch();
    ASSERT_TRUE(got.ok());
    ASSERT_NE(*got, nullptr);
    EXPECT_EQ((*got)->SerializeAsString(), sent.SerializeAsString());
  }
  EXPECT_FALSE(connection_->HasBatch());
}

TEST_F(ShmConnectionTest, ArmSeesWhatIsThere) {
  EXPECT_TRUE(connection_->Arm());
  ASSERT_TRUE(Submit(BatchOf(1, 1).SerializeAsString()));
  EXPECT_TRUE(writer_->ConsumerWaits());
  EXPECT_FALSE(connection_->Arm());
}

TEST_F(ShmConnectionTest, TheBellRingsForASleeperOnly) {
  ASSERT_TRUE(connection_->Send(ReadOf(1, 10)));
  EXPECT_FALSE(Rung());
  std::string record;
  EXPECT_TRUE(*reader_->TryRead(&record));
  ASSERT_TRUE(reader_->Arm());
  ASSERT_TRUE(connection_->Send(ReadOf(2, 10)));
  EXPECT_TRUE(Rung());
}

TEST_F(ShmConnectionTest, AFullRingRefusesAndRecovers) {
  uint64_t sent = 0;
  while (connection_->Send(ReadOf(sent + 1, 100000))) ++sent;
  EXPECT_GE(sent, 9u);
  EXPECT_LE(sent, 11u);
  EXPECT_FALSE(connection_->Send(ReadOf(sent + 1, 100000)));
  EXPECT_FALSE(connection_->HasBatch());
  EXPECT_EQ(*connection_->NextBatch(), nullptr);
  std::string record;
  uint64_t asked = 0;
  for (uint64_t i = 1; i <= sent; ++i) {
    ASSERT_TRUE(*reader_->TryRead(&record));
    v1::Event event;
    ASSERT_TRUE(event.ParseFromString(record));
    EXPECT_EQ(event.sequence(), i);
    asked += reader_->ProducerWaits();
  }
  EXPECT_EQ(asked, 1u);  // the refused sender wants to know
  EXPECT_TRUE(connection_->Send(ReadOf(sent + 1, 100000)));
}

TEST_F(ShmConnectionTest, TheInlineLimitFitsAndMoreIsAnError) {
  std::string record;
  v1::Event event;
  v1::Event full = ReadOf(~0ull, kShmInlineLimit);
  for (int i = 0; i < 32; ++i) {
    full.mutable_read()->mutable_spec()->add_shape(-1);
    full.mutable_read()->mutable_spec()->add_strides(-1);
  }
  ASSERT_TRUE(connection_->Send(full));
  ASSERT_TRUE(*reader_->TryRead(&record));
  ASSERT_TRUE(event.ParseFromString(record));
  EXPECT_EQ(event.SerializeAsString(), full.SerializeAsString());

  ASSERT_TRUE(connection_->Send(ReadOf(5, 2 * kShmInlineLimit)));
  ASSERT_TRUE(*reader_->TryRead(&record));
  ASSERT_TRUE(event.ParseFromString(record));
  EXPECT_EQ(event.sequence(), 5u);
  EXPECT_EQ(event.read().id(), 5u);
  EXPECT_EQ(event.read().status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
}

TEST_F(ShmConnectionTest, ARecordThatIsNoBatchIsAnError) {
  ASSERT_TRUE(Submit("\xff\xff\xff\xff\xff"));
  absl::StatusOr<const v1::Batch*> got = connection_->NextBatch();
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("Batch"));
}

TEST_F(ShmConnectionTest, ATruncatedBatchIsAnErrorOrAShorterBatch) {
  const std::string whole = BatchOf(1, 3).SerializeAsString();
  int errors = 0;
  for (size_t n = 0; n < whole.size(); ++n) {
    ASSERT_TRUE(Submit(whole.substr(0, n)));
    absl::StatusOr<const v1::Batch*> got = connection_->NextBatch();
    errors += !got.ok();
    EXPECT_TRUE(!got.ok() || (*got)->commands_size() <= 3);
  }
  EXPECT_GT(errors, 20);
}

TEST_F(ShmConnectionTest, AnImpossibleTailIsAnError) {
  for (const uint64_t tail : {uint64_t{kSubmissionRingBytes} + 8, ~uint64_t{0},
                              uint64_t{1} << 63, uint64_t{4}}) {
    Open();
    submission_.header()->tail.store(tail);
    EXPECT_TRUE(connection_->HasBatch());
    EXPECT_EQ(connection_->NextBatch().status().code(),
              absl::StatusCode::kInvalidArgument)
        << tail;
  }
}

TEST_F(ShmConnectionTest, AnImpossibleLengthIsAnError) {
  for (const uint32_t length :
       {0x7fffffffu, 0xfffffffeu, 0xffffffffu, kSubmissionRingBytes, 61u}) {
    Open();
    memcpy(submission_.data(), &length, sizeof(length));
    submission_.header()->tail.store(64);
    EXPECT_FALSE(connection_->NextBatch().ok()) << length;
  }
}

TEST_F(ShmConnectionTest, AnImpossibleHeadEndsItOnceSomethingMustBeSent) {
  ASSERT_TRUE(connection_->Send(ReadOf(1, 10)));
  completion_.header()->head.store(uint64_t{1} << 40);
  bool sent = true;
  for (int i = 0; i < 20 && sent; ++i) {
    sent = connection_->Send(ReadOf(i + 2, 100000));
  }
  EXPECT_FALSE(sent);
  EXPECT_EQ(connection_->NextBatch().status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Whatever the client leaves in its ring: an answer in bounded time, and no
// access outside of it (the sanitizers watch).
TEST_F(ShmConnectionTest, RandomRings) {
  std::mt19937_64 random(3);
  const std::string good = BatchOf(1, 5).SerializeAsString();
  for (int round = 0; round < 300; ++round) {
    Open();
    uint8_t* data = submission_.data();
    for (int i = 0; i < 4096; ++i) data[i] = static_cast<uint8_t>(random());
    uint64_t at = 0;
    for (int i = 0; i < 8; ++i) {  // lengths that lead deeper than chance
      const uint32_t length = round % 2 ? good.size() : random() % 600;
      memcpy(data + at, &length, sizeof(length));
      if (random() % 2) memcpy(data + at + 4, good.data(), good.size());
      at += (length + 4 + 7) & ~7u;
    }
    submission_.header()->tail.store(round % 3 ? at : random() % 8192 & ~7ull);
    int reads = 0;
    while (reads < 10000) {
      absl::StatusOr<const v1::Batch*> got = connection_->NextBatch();
      if (!got.ok() || *got == nullptr) break;
      ++reads;
    }
    EXPECT_LT(reads, 10000);
  }
}

}  // namespace
}  // namespace holdfast
