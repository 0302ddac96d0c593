// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A session on two devices that do everything later, each at its own pace, and
// that refuse each other's memory.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/exec/copy_streams.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/fake_device.h"
#include "server/replay/replaying_device.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

std::unique_ptr<FakeDevice> NewFake(absl::Duration lag, int index) {
  auto device = std::make_unique<FakeDevice>(lag, &NewCpu, nullptr, index);
  device->set_name("cuda");
  return device;
}

// What the daemon does for --graphs=on.
std::unique_ptr<Device> Replaying(std::unique_ptr<FakeDevice> device) {
  Recorder* const recorder = device.get();
  return std::make_unique<ReplayingDevice>(std::move(device), recorder);
}

class SeveralDevicesTest : public SessionTest {
 protected:
  SeveralDevicesTest()
      : SeveralDevicesTest(NewFake(absl::Milliseconds(3), 0)) {}
  explicit SeveralDevicesTest(std::unique_ptr<Device> first)
      : SessionTest(std::move(first)),
        second_(NewFake(absl::Microseconds(10), 1)) {
    OpenOnBoth();
  }
  // The devices outlive their sessions.
  ~SeveralDevicesTest() override { session_.reset(); }

  void OpenOnBoth() {
    Session::Options options;
    options.further_devices = {second_.get()};
    Open(options);
  }
  void PutOn(int device, uint64_t handle, V values) {
    Put(handle, std::move(values));
    batch_.mutable_commands(batch_.commands_size() - 1)
        ->mutable_put()
        ->mutable_spec()
        ->set_device(device);
  }
  void Move(uint64_t input, int device, uint64_t output) {
    v1::Attr* attr = Op(OpId::to_device, {input}, output)->add_attrs();
    attr->set_slot(0);
    attr->set_i(device);
  }

  std::unique_ptr<Device> second_;
};

// The first device is slow, the second fast: who does not wait reads too early
// or writes over what is still to be read.
TEST_F(SeveralDevicesTest, CopiesWaitForBothStreams) {
  Put(1, V(300, 1));
  uint64_t handle = 1;
  for (int round = 0; round < 10; ++round) {
    Op(OpId::add, {handle, handle}, handle + 1);
    Move(handle + 1, 2, handle + 2);
    Op(OpId::add, {handle + 2, handle + 2}, handle + 3);
    Move(handle + 3, 1, handle + 4);
    // The blocks go to the next ops at once.
    for (int i = 0; i < 4; ++i) Add()->add_release(handle + i);
    handle += 4;
  }
  EXPECT_EQ(Values(handle), V(300, 1 << 20));
}

TEST_F(SeveralDevicesTest, ReadsBarriersAndReleasesKnowBoth) {
  Put(1, {1, 2, 3});
  Move(1, 2, 2);
  Op(OpId::exp, {2}, 3);
  Op(OpId::log, {3}, 4);
  EXPECT_NEAR(Values(4)[2], 3, 1e-5);
  v1::Read* barrier = Add()->mutable_read();
  barrier->set_id(99);
  Deliver();
  AwaitReads();
  EXPECT_EQ(wire_.events.back().read().id(), 99u);
  const v1::SessionStats stats = session_->Stats();
  ASSERT_EQ(stats.devices_size(), 2);
  EXPECT_EQ(stats.devices(1).device(), 1u);
  EXPECT_EQ(stats.devices(1).bytes_in_use(), 3u * 512);
  EXPECT_EQ(stats.bytes_in_use(),
            stats.devices(0).bytes_in_use() + stats.devices(1).bytes_in_use());
  session_->End(absl::OkStatus());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

TEST_F(SeveralDevicesTest, ADeviceThatIsNotThere) {
  Put(1, {1});
  Move(1, 3, 2);
  EXPECT_THAT(Read(2).status().message(),
              HasSubstr("has 2 GPUs, counted from 0. Got cuda:2"));
  v1::OpCall* empty = Op(OpId::randperm, {}, 3);
  v1::Attr* attr = empty->add_attrs();
  attr->set_slot(0);
  attr->set_i(4);
  empty->set_device(5);
  EXPECT_THAT(Read(3).status().message(), HasSubstr("Got cuda:4"));
  EXPECT_EQ(Values(1), (V{1}));
}

TEST_F(SeveralDevicesTest, ANumberThatNoDeviceHasBreaksTheProtocol) {
  Op(OpId::random_state, {}, 1)->set_device(64);
  Deliver();
  EXPECT_THAT(SessionError(), HasSubstr("must be below 64. Got 64"));
}

TEST_F(SeveralDevicesTest, DataOfTheSecondPassesTheFirstBy) {
  const V large(CopyStreams::kLeastBytes, 3);
  PutOn(2, 1, {1, 2});
  PutOn(2, 2, large);
  Op(OpId::add, {2, 2}, 3);
  EXPECT_EQ(Values(1), (V{1, 2}));
  EXPECT_EQ(Values(2), large);
  EXPECT_EQ(Values(3), V(large.size(), 6));
  auto& first = *static_cast<FakeDevice*>(device_.get());
  auto& second = *static_cast<FakeDevice*>(second_.get());
  EXPECT_EQ(first.launches(), 0u);
  EXPECT_EQ(first.copies(), 0u);
  EXPECT_EQ(second.copies(), 5u);
  const v1::SessionStats stats = session_->Stats();
  ASSERT_EQ(stats.devices_size(), 2);
  EXPECT_EQ(stats.devices(0).peak_bytes_in_use(), 0u);
  EXPECT_GT(stats.devices(1).bytes_in_use(), 2 * large.size() * sizeof(float));
}

TEST_F(SeveralDevicesTest, DataForADeviceThatIsNotThere) {
  PutOn(3, 1, {1, 2});
  EXPECT_THAT(Read(1).status().message(),
              HasSubstr("has 2 GPUs, counted from 0. Got cuda:2"));
  PutOn(2, 2, {1, 2});
  EXPECT_EQ(Values(2), (V{1, 2}));
}

TEST_F(SeveralDevicesTest, AFullSecondDeviceRefusesUploadsAlone) {
  session_->set_memory_limit(4 << 20);
  PutOn(2, 1, V(200 << 10, 1));
  PutOn(2, 2, V(1 << 20, 1));
  EXPECT_THAT(Read(2).status().message(), HasSubstr("limit=4.0 MiB"));
  PutOn(1, 3, V(200 << 10, 2));
  EXPECT_EQ(Values(3), V(200 << 10, 2));
  EXPECT_EQ(Values(1), V(200 << 10, 1));
}

// What a copy to the host still reads is written after it, also where an op of
// the other device has read it since.
TEST_F(SeveralDevicesTest, ReadsAreKnownOnTheDeviceOfTheirTensor) {
  const size_t count = CopyStreams::kLeastBytes;
  PutOn(0, 1, V(count, 1));
  PutOn(2, 2, V(count, 0));
  EXPECT_EQ(Values(1), V(count, 1));
  auto& first = *static_cast<FakeDevice*>(device_.get());
  const StreamId download = first.newest_stream();
  first.Hold(download, true);
  v1::Read* read = Add()->mutable_read();
  read->set_id(++read_id_);
  read->set_handle(1);
  Op(OpId::add, {2, 1}, 3)->set_inplace(true);
  Op(OpId::add, {1, 1}, 3)->set_inplace(true);
  Deliver();
  absl::SleepFor(absl::Milliseconds(30));
  first.Hold(download, false);
  AwaitReads();
  const std::string& data = wire_.events.back().read().data();
  V values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  EXPECT_EQ(values, V(count, 1));
  EXPECT_EQ(Values(1), V(count, 2));
  EXPECT_EQ(Values(2), V(count, 1));
}

TEST_F(SeveralDevicesTest, MemoryOfAnotherDeviceIsRefused) {
  const StreamId stream = second_->CreateStream(0).value();
  const std::unique_ptr<DeviceMemory> own = second_->CreateMemory(false);
  const std::unique_ptr<DeviceMemory> other = device_->CreateMemory(false);
  const MemorySegment mine = own->AllocateSegment(4096).value();
  const MemorySegment theirs = other->AllocateSegment(4096).value();
  const TensorSpec spec = ContiguousSpec(DType::kFloat32, {4});
  const Attrs exp(&GetOp(OpId::exp));
  const TensorView from = {theirs.base, &spec}, to = {mine.base, &spec};
  EXPECT_THAT(second_->Launch(stream, {}, exp, {&from, 1}, {&to, 1}).message(),
              HasSubstr("device 1 uses memory of device 0"));
  own->FreeSegment(mine);
  other->FreeSegment(theirs);
  second_->DestroyStream(stream);
}

// Launches that wait to be part of a recording are given to the stream before a
// copy looks at what they make.
class ReplayedDevicesTest : public SeveralDevicesTest {
 protected:
  ReplayedDevicesTest()
      : SeveralDevicesTest(Replaying(NewFake(absl::Microseconds(10), 0))) {
    session_.reset();
    second_ = Replaying(NewFake(absl::Microseconds(50), 1));
    OpenOnBoth();
  }
};

TEST_F(ReplayedDevicesTest, CopiesFollowWhatIsWithheld) {
  Put(1, V(100, 1));
  uint64_t handle = 1;
  for (int round = 0; round < 40; ++round) {
    Move(1, 2, handle + 1);
    for (int i = 1; i <= 12; ++i) {
      Op(OpId::add, {handle + i, handle + i}, handle + i + 1);
    }
    Move(handle + 13, 1, handle + 14);
    EXPECT_EQ(Values(handle + 14), V(100, 1 << 12)) << round;
    for (int i = 1; i <= 14; ++i) Add()->add_release(handle + i);
    handle += 14;
  }
  EXPECT_GT(second_->replay_counts().replayed, 0u);
}

}  // namespace
}  // namespace holdfast
