// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far sessions may be ahead of a device that works later, and what it is
// seen to have done for them.
#include "server/exec/enqueued_work.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "proto/steady_time.h"
#include "server/exec/cpu_device.h"
#include "server/fake_device/fake_device.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

constexpr absl::Duration kKernel = absl::Milliseconds(2);

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

std::unique_ptr<Device> NewSlow() {
  auto device = std::make_unique<FakeDevice>(absl::ZeroDuration(), &NewCpu);
  device->WorkOneAtATime(kKernel);
  return device;
}

class EnqueuedWorkTest : public SessionTest {
 protected:
  EnqueuedWorkTest() : SessionTest(NewSlow()) {
    Put(1, {0});
    Put(2, {1});
    Deliver();
    session_->MarkWork();
    Wait();
  }
  ~EnqueuedWorkTest() override { session_.reset(); }

  FakeDevice& device() { return static_cast<FakeDevice&>(*device_); }
  void Wait() { (void)device_->Synchronize(session_->options().stream); }
  void AddOps(int count) {
    for (int i = 0; i < count; ++i) {
      Op(OpId::add, {1, 2}, 3 + made_++)->set_inplace(true);
    }
    batch_.set_sequence(++sequence_);
    wire_.batches.push_back(batch_);
    batch_.Clear();
  }
  // Ops that one turn launches.
  uint64_t Turn(absl::Duration lead) {
    const uint64_t before = device().launches();
    Session::Slice slice = {1 << 20};
    slice.lead = lead;
    session_->RunSome(slice);
    return device().launches() - before;
  }
  double Used() {
    double seconds = 0;
    for (const DeviceUse& use : session_->TakeDeviceUses()) {
      EXPECT_EQ(use.device, device_.get());
      EXPECT_LT(use.from, use.to);
      seconds += absl::ToDoubleSeconds(use.to - use.from);
    }
    return seconds;
  }

  int made_ = 0;
};

TEST_F(EnqueuedWorkTest, WhoIsAloneMayBeFarAhead) {
  AddOps(200);
  EXPECT_EQ(Turn(absl::InfiniteDuration()), 200u);
}

TEST_F(EnqueuedWorkTest, WhereOthersWaitItIsMillisecondsAhead) {
  AddOps(100);
  // Nothing is known of its ops yet.
  EXPECT_EQ(Turn(absl::Milliseconds(10)), EnqueuedWork::kFirstOps);
  EXPECT_FALSE(session_->Runnable(absl::Milliseconds(10)));
  Wait();
  EXPECT_TRUE(session_->Runnable(absl::Milliseconds(10)));
  // An op takes 2 ms, or more on a busy machine.
  const uint64_t ahead = Turn(absl::Milliseconds(10));
  EXPECT_GE(ahead, 1u);
  EXPECT_LE(ahead, 5u);
  Wait();
  // One at a time, however long it takes.
  EXPECT_EQ(Turn(absl::Nanoseconds(1)), 1u);
  EXPECT_EQ(Turn(absl::Nanoseconds(1)), 0u);
}

TEST_F(EnqueuedWorkTest, WhatTheDeviceDidIsSeen) {
  (void)Used();
  const SteadyTime begin = SteadyNow();
  AddOps(20);
  Turn(absl::InfiniteDuration());
  EXPECT_EQ(Used(), 0);
  session_->MarkWork();
  EXPECT_TRUE(session_->work_under_way());
  Wait();
  const double all = absl::ToDoubleSeconds(SteadyNow() - begin);
  const double used = Used();
  EXPECT_FALSE(session_->work_under_way());
  EXPECT_GE(used, 20 * absl::ToDoubleSeconds(kKernel));
  EXPECT_LE(used, all);
  EXPECT_EQ(Used(), 0);
}

TEST_F(EnqueuedWorkTest, AnIdleDeviceIsNobodys) {
  (void)Used();
  double all = 0, used = 0;
  for (int round = 0; round < 3; ++round) {
    const SteadyTime begin = SteadyNow();
    AddOps(1);
    Turn(absl::InfiniteDuration());
    session_->MarkWork();
    Wait();
    all += absl::ToDoubleSeconds(SteadyNow() - begin);
    // Seen late, and far from the next.
    absl::SleepFor(absl::Milliseconds(30));
    used += Used();
  }
  EXPECT_GE(used, 3 * absl::ToDoubleSeconds(kKernel));
  EXPECT_LE(used, all);
}

}  // namespace
}  // namespace holdfast
