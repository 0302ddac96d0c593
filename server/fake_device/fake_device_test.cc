// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions on a device that does everything later, in memory that the host
// cannot see.
#include "server/fake_device/fake_device.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/version.h"
#include "server/exec/cpu_device.h"
#include "server/exec/worker.h"
#include "server/session/scripted_session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

class FakeDeviceTest : public SessionTest {
 protected:
  FakeDeviceTest()
      : SessionTest(
            std::make_unique<FakeDevice>(absl::Milliseconds(5), &NewCpu)) {}
  // The device outlives its sessions.
  ~FakeDeviceTest() override { session_.reset(); }
};

TEST_F(FakeDeviceTest, AReadIsAnsweredWhenItsBytesHaveCome) {
  Put(1, {1, 2, 3});
  Op(OpId::add, {1, 1}, 2);
  v1::Read* read = Add()->mutable_read();
  read->set_id(7);
  read->set_handle(2);
  Op(OpId::mul, {2, 2}, 3);  // goes on behind the read
  Deliver();
  EXPECT_TRUE(session_->AwaitsDevice());
  EXPECT_TRUE(wire_.events.empty());
  EXPECT_FALSE(session_->HasWork());
  AwaitReads();
  ASSERT_EQ(wire_.events.size(), 1u);
  EXPECT_EQ(wire_.events[0].read().id(), 7u);
  EXPECT_EQ(Values(3), (V{4, 16, 36}));
}

TEST_F(FakeDeviceTest, ABarrierWaitsToo) {
  Put(1, {1});
  v1::Read* read = Add()->mutable_read();
  read->set_id(1);
  Deliver();
  EXPECT_TRUE(wire_.events.empty());
  AwaitReads();
  ASSERT_EQ(wire_.events.size(), 1u);
  EXPECT_FALSE(wire_.events[0].read().has_status());
}

// Each upload's staging memory is wanted again before the copy has run.
TEST_F(FakeDeviceTest, StagingMemoryIsReusedOnlyWhenItsCopyIsDone) {
  for (uint64_t i = 1; i <= 50; ++i) {
    Put(i, V(100, static_cast<float>(i)));
  }
  Deliver();
  for (uint64_t i = 1; i <= 50; ++i) {
    EXPECT_EQ(Values(i), V(100, static_cast<float>(i)));
  }
}

// Released memory goes to the next op at once, in the stream's order.
TEST_F(FakeDeviceTest, FreedMemoryFollowsTheStream) {
  Put(1, V(100, 1));
  for (uint64_t handle = 1; handle <= 20; ++handle) {
    Op(OpId::add, {handle, handle}, handle + 1);
    Add()->add_release(handle);
  }
  EXPECT_EQ(Values(21), V(100, 1 << 20));
  // Two blocks took turns.
  EXPECT_LE(session_->Stats().peak_bytes_in_use(), 4u * 512);
}

TEST_F(FakeDeviceTest, NumbersAreSeenThoughTheirCallIsOver) {
  Put(1, {1, 2});
  for (uint64_t i = 0; i < 10; ++i) {
    v1::OpCall* call = Op(OpId::mul, {1 + i, 0}, 2 + i);
    v1::Attr* other = call->add_attrs();
    other->set_slot(1);
    other->set_i(2);
  }
  EXPECT_EQ(Values(11), (V{1024, 2048}));
}

TEST_F(FakeDeviceTest, AFailureOfCheckedDataIsItsOpsOwn) {
  Put(1, {1, 2, 3});
  v1::Put* put = Add()->mutable_put();
  put->set_handle(2);
  put->mutable_spec()->set_dtype(v1::DTYPE_INT64);
  put->mutable_spec()->add_shape(1);
  const int64_t index = 9;
  put->set_data(&index, sizeof(index));
  v1::OpCall* call = Op(OpId::index_select, {1, 2}, 3);
  v1::Attr* dim = call->add_attrs();
  dim->set_slot(0);
  dim->set_i(0);
  Op(OpId::exp, {3}, 4);
  const v1::ReadResult result = Read(4);
  EXPECT_EQ(result.status().op(), "index_select");
  EXPECT_THAT(result.status().message(), HasSubstr("index 9"));
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

// The message says what it was, and nothing hangs.
TEST_F(FakeDeviceTest, ALostDeviceFailsEveryReadAndLetsSessionsEnd) {
  int told = 0;
  static_cast<FakeDevice&>(*device_).BreakOn(
      "log", [&](const absl::Status&) { ++told; });
  Put(1, {1, 2, 3});
  Op(OpId::exp, {1}, 2);
  EXPECT_FALSE(Read(2).has_status());
  Op(OpId::log, {1}, 3);
  Op(OpId::exp, {1}, 4);
  for (uint64_t handle : {3, 1, 2, 4}) {
    const v1::ReadResult result = Read(handle);
    EXPECT_THAT(result.status().message(), HasSubstr("one of log"));
    EXPECT_EQ(result.data().size(), 0u);
  }
  EXPECT_EQ(told, 1);
  session_->End(absl::OkStatus());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

TEST_F(FakeDeviceTest, NumericsAreTheStreams) {
  auto& fake = static_cast<FakeDevice&>(*device_);
  const StreamId stream = session_->options().stream;
  v1::SetNumerics* wish = Add()->mutable_set_numerics();
  wish->set_matmul_tf32(true);
  wish->set_conv_float32(true);
  wish->set_deterministic(true);
  wish->set_without_cudnn(true);
  Deliver();
  EXPECT_TRUE(fake.numerics(stream).matmul_tf32);
  EXPECT_FALSE(fake.numerics(stream).conv_tf32);
  EXPECT_TRUE(fake.numerics(stream).deterministic);
  EXPECT_FALSE(fake.numerics(stream).benchmark);
  EXPECT_FALSE(fake.numerics(stream).cudnn);
  Add()->mutable_set_numerics();
  Deliver();
  EXPECT_FALSE(fake.numerics(stream).matmul_tf32);
  EXPECT_TRUE(fake.numerics(stream).conv_tf32 && fake.numerics(stream).cudnn);
}

TEST_F(FakeDeviceTest, MemoryKeptForReuseIsGivenBackWhenAsked) {
  Put(1, {1, 2, 3});
  // Two fill a segment.
  for (uint64_t i = 2; i <= 6; ++i) Put(i, V(1 << 18, 1));
  Deliver();
  v1::Command* released = Add();
  for (uint64_t i = 2; i <= 6; ++i) released->add_release(i);
  Deliver();
  const v1::SessionStats before = session_->Stats();
  EXPECT_GT(before.bytes_cached(), 4u << 20);
  EXPECT_EQ(before.peak_bytes_held(),
            before.bytes_in_use() + before.bytes_cached());
  Add()->mutable_release_memory();
  Add()->mutable_reset_peak_memory();
  Deliver();
  const v1::SessionStats after = session_->Stats();
  EXPECT_LT(after.bytes_cached(), before.bytes_cached());
  EXPECT_LT(after.peak_bytes_held(), before.peak_bytes_held());
  EXPECT_LT(after.segments(), before.segments());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(FakeDeviceTest, ASessionMayEndWhileItsWorkRuns) {
  for (uint64_t i = 1; i <= 20; ++i) Put(i, V(5000, 1));
  v1::Read* read = Add()->mutable_read();
  read->set_id(1);
  read->set_handle(20);
  Deliver();
  session_->End(absl::OkStatus());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

TEST_F(FakeDeviceTest, ANewClientDoesNotGetOldReads) {
  Put(1, {1});
  v1::Read* read = Add()->mutable_read();
  read->set_id(1);
  read->set_handle(1);
  Deliver();
  v1::HelloReply reply;
  session_->FillHello({}, /*attach=*/true, /*local=*/false, &reply);
  EXPECT_FALSE(session_->AwaitsDevice());
}

// Between the loss and the daemon's new start whoever comes in is told so, not
// given a session that has ended before it began.
TEST_F(FakeDeviceTest, ASessionDoesNotFillTheDevicesQueue) {
  FakeDevice& device = static_cast<FakeDevice&>(*device_);
  constexpr uint64_t kMost = EnqueuedWork::kMostOps;
  constexpr int kOps = 3 * kMost;
  Put(1, {0});
  Put(2, {1});
  for (int i = 0; i < kOps; ++i) {
    Op(OpId::add, {1, 2}, 3 + i)->set_inplace(true);
  }
  const uint64_t before = device.launches();
  const StreamId stream = session_->options().stream;
  device.Hold(stream, true);
  Deliver();
  EXPECT_LE(device.launches() - before, kMost);
  EXPECT_TRUE(session_->HasWork());
  EXPECT_FALSE(session_->Runnable(absl::InfiniteDuration()));
  // It goes on as the device does.
  device.Hold(stream, false);
  while (session_->HasWork()) {
    if (session_->Runnable(absl::InfiniteDuration())) {
      session_->RunSome({1 << 20});
    }
  }
  EXPECT_EQ(device.launches() - before, kOps);
  EXPECT_TRUE(device.Synchronize(stream).ok());
  EXPECT_EQ(Values(1), (V{kOps}));
}

TEST(LostDeviceTest, NoSessionIsOpened) {
  FakeDevice device(absl::ZeroDuration(), &NewCpu);
  device.BreakOn("cosh", nullptr);
  Worker worker({});
  SessionRegistry registry(&device, &worker, {});
  worker.Start();
  v1::HelloRequest request;
  request.set_min_version(kMinProtocolVersion);
  request.set_max_version(kProtocolVersion);
  const Peer peer{{"alice", Role::kUser}, "test"};
  ASSERT_TRUE(registry.Hello(request, peer, /*local=*/true).ok());
  EXPECT_TRUE(registry.Ready().ok());

  const Attrs attrs(&GetOp(OpId::cosh));
  EXPECT_FALSE(device.Launch(1, {}, attrs, {}, {}).ok());
  const absl::Status refused = registry.Hello(request, peer, true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("one of cosh"));
  EXPECT_EQ(registry.Ready().code(), absl::StatusCode::kUnavailable);
  worker.Stop();
}

}  // namespace
}  // namespace holdfast
