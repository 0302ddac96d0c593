// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Large copies from and to the host on streams of their own, on a device that
// does everything later: what is copied is what the session's order says.
#include "server/exec/copy_streams.h"

#include <cstring>
#include <memory>
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

std::unique_ptr<FakeDevice> NewFake() {
  auto device =
      std::make_unique<FakeDevice>(absl::Microseconds(300), &NewCpu, nullptr);
  device->set_name("cuda");
  return device;
}

class CopyStreamsTest : public SessionTest {
 protected:
  CopyStreamsTest() : SessionTest(NewFake()) {}
  ~CopyStreamsTest() override { session_.reset(); }

  // Without waiting, as part of the next batch.
  void AddRead(uint64_t handle) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
  }
  void AddInPlace(uint64_t to, uint64_t other) {
    Op(OpId::add, {to, other}, next_output_++)->set_inplace(true);
  }

  uint64_t next_output_ = 100;
};

TEST_F(CopyStreamsTest, AnUploadIsThereForWhatFollows) {
  uint64_t handle = 1;
  for (int round = 0; round < 100; ++round) {
    Put(handle, V(kLarge, round));
    Op(OpId::add, {handle, handle}, handle + 1);
    Put(handle + 2, V(kLarge, 1));
    Op(OpId::add, {handle + 1, handle + 2}, handle + 3);
    // Their blocks go to the next uploads and ops.
    for (int i = 0; i < 3; ++i) Add()->add_release(handle + i);
    ASSERT_EQ(Values(handle + 3), V(kLarge, 2 * round + 1)) << round;
    Add()->add_release(handle + 3);
    handle += 4;
  }
}

TEST_F(CopyStreamsTest, WhatIsReadIsWhatWasThere) {
  Put(1, V(kLarge, 0));
  Put(2, V(kLarge, 1));
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

TEST_F(CopyStreamsTest, AReadSurvivesTheReleaseOfItsTensor) {
  Put(1, V(kLarge, 1));
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

TEST_F(CopyStreamsTest, ASessionMayEndWithCopiesUnderWay) {
  for (int round = 0; round < 20; ++round) {
    Open({});
    sequence_ = 0;
    Put(1, V(kLarge, 1));
    AddRead(1);
    AddRead(1);
    Deliver();
    session_.reset();
  }
}

}  // namespace
}  // namespace holdfast
