// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Large copies from and to the host on streams of their own, on devices that
// do everything later: what is copied is what the session's order says.
#include "server/exec/copy_streams.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/fake_device.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using V = std::vector<float>;

constexpr size_t kLarge = CopyStreams::kLeastBytes / sizeof(float) + 7;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

std::unique_ptr<FakeDevice> NewFake(absl::Duration lag, int index) {
  auto device = std::make_unique<FakeDevice>(lag, &NewCpu, nullptr, index);
  device->set_name("cuda");
  return device;
}

// By the device's number in specs: the tests run on the first of two devices
// and on the second, while the other one has nothing to do. What is asked of
// the wrong one has passed already.
class CopyStreamsTest : public SessionTest,
                        public testing::WithParamInterface<int> {
 protected:
  CopyStreamsTest()
      : SessionTest(NewFake(absl::Microseconds(Lag(1)), 0)),
        second_(NewFake(absl::Microseconds(Lag(2)), 1)) {
    OpenOnBoth();
  }
  ~CopyStreamsTest() override { session_.reset(); }

  static int Lag(int device) { return device == GetParam() ? 300 : 0; }
  FakeDevice& Used() {
    return *static_cast<FakeDevice*>(GetParam() == 1 ? device_.get()
                                                     : second_.get());
  }
  void OpenOnBoth() {
    Session::Options options;
    options.further_devices = {second_.get()};
    Open(options);
  }
  void PutThere(uint64_t handle, std::vector<float> values) {
    Put(handle, std::move(values));
    batch_.mutable_commands(batch_.commands_size() - 1)
        ->mutable_put()
        ->mutable_spec()
        ->set_device(GetParam());
  }
  // Without waiting, as part of the next batch.
  void AddRead(uint64_t handle) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
  }
  void AddInPlace(uint64_t to, uint64_t other) {
    Op(OpId::add, {to, other}, next_output_++)->set_inplace(true);
  }

  const std::unique_ptr<FakeDevice> second_;
  uint64_t next_output_ = 100;
};

INSTANTIATE_TEST_SUITE_P(Devices, CopyStreamsTest, testing::Values(1, 2));

TEST_P(CopyStreamsTest, AnUploadIsThereForWhatFollows) {
  uint64_t handle = 1;
  for (int round = 0; round < 100; ++round) {
    PutThere(handle, V(kLarge, round));
    Op(OpId::add, {handle, handle}, handle + 1);
    PutThere(handle + 2, V(kLarge, 1));
    Op(OpId::add, {handle + 1, handle + 2}, handle + 3);
    // Their blocks go to the next uploads and ops.
    for (int i = 0; i < 3; ++i) Add()->add_release(handle + i);
    ASSERT_EQ(Values(handle + 3), V(kLarge, 2 * round + 1)) << round;
    Add()->add_release(handle + 3);
    handle += 4;
  }
}

TEST_P(CopyStreamsTest, WhatIsReadIsWhatWasThere) {
  PutThere(1, V(kLarge, 0));
  PutThere(2, V(kLarge, 1));
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    AddRead(1);
    AddRead(1);
    AddInPlace(1, 2);
  }
  Deliver();
  AwaitReads();
  std::vector<float> seen;
  for (const v1::Event& event : wire_.events) {
    V values(event.read().data().size() / sizeof(float));
    std::memcpy(values.data(), event.read().data().data(),
                event.read().data().size());
    ASSERT_EQ(values, V(kLarge, values.at(0))) << "torn";
    seen.push_back(values[0]);
  }
  ASSERT_EQ(seen.size(), 2u * kRounds);
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_EQ(seen[2 * round], round);
    EXPECT_EQ(seen[2 * round + 1], round);
  }
}

TEST_P(CopyStreamsTest, WhoWritesWaitsForTheRead) {
  PutThere(1, V(kLarge, 1));
  EXPECT_EQ(Values(1), V(kLarge, 1));
  const StreamId download = Used().newest_stream();
  Used().Hold(download, true);
  AddRead(1);
  AddInPlace(1, 1);
  Deliver();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(session_->AwaitsDevice());
  Used().Hold(download, false);
  AwaitReads();
  const std::string& data = wire_.events.back().read().data();
  V values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  EXPECT_EQ(values, V(kLarge, 1));
  EXPECT_EQ(Values(1), V(kLarge, 2));
}

// The staging memory of an upload that has not begun is not the next one's.
TEST_P(CopyStreamsTest, UploadsDoNotOvertakeOneAnother) {
  PutThere(1, V(kLarge, 0));
  Deliver();
  const StreamId upload = Used().newest_stream();
  Used().Hold(upload, true);
  constexpr int kUploads = 8;
  for (int i = 1; i < kUploads; ++i) {
    PutThere(1 + i, V(kLarge, i));
    Deliver();
  }
  Used().Hold(upload, false);
  for (int i = 0; i < kUploads; ++i) {
    EXPECT_EQ(Values(1 + i), V(kLarge, i));
  }
}

TEST_P(CopyStreamsTest, AReadSurvivesTheReleaseOfItsTensor) {
  PutThere(1, V(kLarge, 1));
  uint64_t handle = 1;
  for (int round = 0; round < 100; ++round) {
    AddRead(handle);
    Op(OpId::add, {handle, handle}, handle + 1);
    Op(OpId::sub, {handle + 1, handle}, handle + 2);
    Add()->add_release(handle);
    Add()->add_release(handle + 1);
    handle += 2;
  }
  Deliver();
  AwaitReads();
  EXPECT_EQ(wire_.events.size(), 100u);
  for (const v1::Event& event : wire_.events) {
    V values(kLarge);
    ASSERT_EQ(event.read().data().size(), kLarge * sizeof(float));
    std::memcpy(values.data(), event.read().data().data(),
                kLarge * sizeof(float));
    ASSERT_EQ(values, V(kLarge, 1));
  }
}

TEST_P(CopyStreamsTest, ABarrierWaitsForCopies) {
  PutThere(1, V(kLarge, 1));
  Deliver();
  const StreamId upload = Used().newest_stream();
  AddRead(1);
  Deliver();
  AwaitReads();
  const StreamId download = Used().newest_stream();
  for (const StreamId stream : {upload, download}) {
    Used().Hold(stream, true);
    if (stream == download) {
      AddRead(1);
    } else {
      PutThere(2, V(kLarge, 1));
    }
    v1::Read* barrier = Add()->mutable_read();
    barrier->set_id(++read_id_);
    Deliver();
    absl::SleepFor(absl::Milliseconds(20));
    session_->RunSome({});
    EXPECT_TRUE(session_->AwaitsDevice()) << stream;
    EXPECT_LT(wire_.events.back().read().id(), read_id_) << stream;
    Used().Hold(stream, false);
    AwaitReads();
    EXPECT_EQ(wire_.events.back().read().id(), read_id_) << stream;
  }
}

TEST_P(CopyStreamsTest, ASessionMayEndWithCopiesUnderWay) {
  for (int round = 0; round < 20; ++round) {
    OpenOnBoth();
    sequence_ = 0;
    PutThere(1, V(kLarge, 1));
    AddRead(1);
    AddRead(1);
    Deliver();
    session_.reset();
  }
}

}  // namespace
}  // namespace holdfast
