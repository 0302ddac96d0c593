// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/shm_ring.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

using ::testing::Test;

constexpr uint32_t kCapacity = 1 << 14;

class ShmRingTest : public Test {
 protected:
  void SetUp() override {
    absl::StatusOr<RingMemory> memory = RingMemory::Create(kCapacity, &fd_);
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
  }
  void TearDown() override { close(fd_); }

  // Writes a length word where the reader looks next and moves the tail.
  void Forge(uint64_t position, uint32_t length, uint64_t tail) {
    std::memcpy(memory_.data() + position, &length, sizeof(length));
    memory_.header()->tail.store(tail);
  }

  int fd_ = -1;
  RingMemory memory_;
};

// The record number `i` of a stream that both ends can compute.
std::string Record(uint64_t i) {
  std::mt19937_64 random(i);
  std::string record(random() % 600, '\0');
  for (char& c : record) c = static_cast<char>(random());
  return record;
}

// Reads records 0..count-1 and compares; sleeps on the doorbell when idle.
bool Consume(RingMemory* memory, uint64_t count, int doorbell, int space) {
  RingReader reader(memory);
  std::string record;
  for (uint64_t i = 0; i < count;) {
    absl::StatusOr<bool> read = reader.TryRead(&record);
    if (!read.ok()) return false;
    if (*read) {
      if (record != Record(i++)) return false;
      if (reader.ProducerWaits()) eventfd_write(space, 1);
      continue;
    }
    if (!reader.Arm()) continue;
    pollfd wait = {doorbell, POLLIN, 0};
    if (poll(&wait, 1, 20000) != 1) return false;  // a lost wake-up
    eventfd_t value;
    eventfd_read(doorbell, &value);
    reader.Disarm();
  }
  return !reader.Ready();
}

bool Produce(RingMemory* memory, uint64_t count, int doorbell, int space) {
  RingWriter writer(memory);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string record = Record(i);
    while (!writer.TryWrite(record.data(), record.size())) {
      if (!writer.ArmForSpace(record.size())) continue;
      pollfd wait = {space, POLLIN, 0};
      if (poll(&wait, 1, 20000) != 1) return false;
      eventfd_t value;
      eventfd_read(space, &value);
    }
    if (writer.ConsumerWaits()) eventfd_write(doorbell, 1);
    // Now and then let the consumer fall asleep.
    if (i % 997 == 0) usleep(300);
  }
  return true;
}

TEST_F(ShmRingTest, KeepsRecordsAndTheirOrder) {
  RingWriter writer(&memory_);
  RingReader reader(&memory_);
  std::string record;
  EXPECT_FALSE(*reader.TryRead(&record));
  EXPECT_TRUE(writer.Empty());
  ASSERT_TRUE(writer.TryWrite("one", 3));
  ASSERT_TRUE(writer.TryWrite("", 0));
  ASSERT_TRUE(writer.TryWrite("three333", 8));
  EXPECT_FALSE(writer.Empty());
  for (const char* expected : {"one", "", "three333"}) {
    ASSERT_TRUE(reader.Ready());
    ASSERT_TRUE(*reader.TryRead(&record));
    EXPECT_EQ(record, expected);
  }
  EXPECT_FALSE(reader.Ready());
  EXPECT_TRUE(writer.Empty());
}

TEST_F(ShmRingTest, FullRingRefusesAndRecovers) {
  RingWriter writer(&memory_);
  RingReader reader(&memory_);
  const std::string big(MaxRecord(kCapacity), 'x');
  int written = 0;
  while (writer.TryWrite(big.data(), big.size())) ++written;
  EXPECT_EQ(written, 3);  // each takes its length word besides
  EXPECT_TRUE(writer.ArmForSpace(big.size()));
  std::string record;
  ASSERT_TRUE(*reader.TryRead(&record));
  EXPECT_EQ(record, big);
  // One record free is less than half a ring: not announced yet.
  EXPECT_FALSE(reader.ProducerWaits());
  ASSERT_TRUE(*reader.TryRead(&record));
  EXPECT_TRUE(reader.ProducerWaits());
  EXPECT_FALSE(reader.ProducerWaits());  // once
  EXPECT_FALSE(writer.ArmForSpace(big.size()));
  EXPECT_TRUE(writer.TryWrite(big.data(), big.size()));
}

TEST_F(ShmRingTest, ArmSeesWhatArrivedBefore) {
  RingWriter writer(&memory_);
  RingReader reader(&memory_);
  EXPECT_TRUE(reader.Arm());
  ASSERT_TRUE(writer.TryWrite("a", 1));
  EXPECT_TRUE(writer.ConsumerWaits());
  EXPECT_FALSE(writer.ConsumerWaits());  // the request was taken
  EXPECT_FALSE(reader.Arm());            // a record is there
}

TEST_F(ShmRingTest, TwoThreads) {
  absl::StatusOr<RingMemory> other = RingMemory::Map(fd_);
  ASSERT_TRUE(other.ok()) << other.status();
  const int doorbell = eventfd(0, EFD_NONBLOCK);
  const int space = eventfd(0, EFD_NONBLOCK);
  bool consumed = false;
  std::thread consumer(
      [&] { consumed = Consume(&*other, 50000, doorbell, space); });
  EXPECT_TRUE(Produce(&memory_, 50000, doorbell, space));
  consumer.join();
  EXPECT_TRUE(consumed);
  close(doorbell);
  close(space);
}

TEST_F(ShmRingTest, TwoProcesses) {
  const int doorbell = eventfd(0, EFD_NONBLOCK);
  const int space = eventfd(0, EFD_NONBLOCK);
  const pid_t child = fork();
  if (child == 0) {
    absl::StatusOr<RingMemory> memory = RingMemory::Map(fd_);
    const bool ok = memory.ok() && Consume(&*memory, 20000, doorbell, space);
    _exit(ok ? 0 : 1);
  }
  EXPECT_TRUE(Produce(&memory_, 20000, doorbell, space));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(doorbell);
  close(space);
}

// ---- a hostile producer

TEST_F(ShmRingTest, TailBeyondTheRing) {
  for (uint64_t tail : {uint64_t{kCapacity} + 8, ~uint64_t{0} - 7,
                        uint64_t{1} << 63, uint64_t{4}}) {
    Forge(0, 0, tail);
    RingReader reader(&memory_);
    std::string record;
    EXPECT_FALSE(reader.TryRead(&record).ok()) << tail;
  }
}

TEST_F(ShmRingTest, LengthsThatPassTheTailOrTheEnd) {
  for (uint32_t length :
       {uint32_t{5}, uint32_t{kCapacity}, MaxRecord(kCapacity) + 1,
        uint32_t{0xFFFFFFFE}, uint32_t{0x80000000}, uint32_t{0xFFFFFFFF}}) {
    Forge(0, length, 8);  // only 8 bytes are published
    RingReader reader(&memory_);
    std::string record;
    absl::StatusOr<bool> read = reader.TryRead(&record);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
        << length;
  }
}

TEST_F(ShmRingTest, RecordThatWraps) {
  memory_.header()->head.store(kCapacity - 16);
  Forge(kCapacity - 16, 64, kCapacity - 16 + 72);
  RingReader reader(&memory_);
  std::string record;
  EXPECT_FALSE(reader.TryRead(&record).ok());
}

TEST_F(ShmRingTest, SkipWithoutRecord) {
  memory_.header()->head.store(kCapacity - 16);
  Forge(kCapacity - 16, 0xFFFFFFFF, kCapacity);
  RingReader reader(&memory_);
  std::string record;
  EXPECT_FALSE(reader.TryRead(&record).ok());
}

TEST_F(ShmRingTest, RandomBytesNeverReadOutside) {
  std::mt19937_64 random(1);
  std::string record;
  for (int round = 0; round < 2000; ++round) {
    uint32_t* words = reinterpret_cast<uint32_t*>(memory_.data());
    for (uint32_t i = 0; i < kCapacity / 4; i += 2) {
      words[i] = random() % 8 == 0 ? random() : random() % 256;
    }
    memory_.header()->head.store((random() % kCapacity) & ~7ull);
    memory_.header()->tail.store(memory_.header()->head.load() +
                                 (random() % (2 * kCapacity) & ~7ull));
    RingReader reader(&memory_);
    int reads = 0;
    for (;; ++reads) {
      absl::StatusOr<bool> read = reader.TryRead(&record);
      if (!read.ok() || !*read) break;
      ASSERT_LE(record.size(), MaxRecord(kCapacity));
    }
    ASSERT_LE(reads, static_cast<int>(2 * kCapacity / 8));
  }
}

// ---- a hostile consumer

TEST_F(ShmRingTest, HeadAheadOfTheTailMeansNoSpace) {
  RingWriter writer(&memory_);
  const std::string filler(1000, 'f');
  while (writer.TryWrite(filler.data(), filler.size())) {
  }
  memory_.header()->head.store(uint64_t{1} << 40);
  EXPECT_FALSE(writer.TryWrite(filler.data(), filler.size()));
  EXPECT_TRUE(writer.Broken());
}

// ---- memory got from a peer

TEST(RingMemoryTest, RefusesWhatIsNoRing) {
  int fd = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_FALSE(RingMemory::Map(fd).ok());  // empty
  ASSERT_EQ(ftruncate(fd, kRingDataOffset + kCapacity), 0);
  EXPECT_FALSE(RingMemory::Map(fd).ok());  // could shrink
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(RingMemory::Map(fd).ok());  // no magic
  close(fd);
  EXPECT_FALSE(RingMemory::Map(-1).ok());
  EXPECT_FALSE(RingMemory::Create(1000, &fd).ok());
}

TEST(RingMemoryTest, RefusesAFalseCapacity) {
  int fd = -1;
  absl::StatusOr<RingMemory> memory = RingMemory::Create(kCapacity, &fd);
  ASSERT_TRUE(memory.ok());
  memory->header()->capacity = 2 * kCapacity;
  EXPECT_FALSE(RingMemory::Map(fd).ok());
  memory->header()->capacity = kCapacity;
  EXPECT_TRUE(RingMemory::Map(fd).ok());
  EXPECT_NE(ftruncate(fd, 4096), 0);  // sealed
  close(fd);
}

}  // namespace
}  // namespace holdfast
