// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are wrong: each ends its op, and nothing else.
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "ops/check.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

// A kernel whose loop has several threads: the last piece fails.
void FailInAPiece(const std::function<void()>& fail) {
  class FourThreads final : public KernelContext {
   public:
    FourThreads() { num_threads = 4; }
    void* Scratch(size_t) override { return nullptr; }
  };
  cpu::ParallelFor(FourThreads(), 1000, 10, [&](int64_t, int64_t end) {
    if (end == 1000) fail();
  });
}

// The CPU, some of whose kernels throw.
class WrongDevice final : public Device {
 public:
  absl::string_view name() const override { return cpu_->name(); }
  bool host_memory() const override { return true; }
  std::string description() const override { return "wrong"; }
  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override {
    return cpu_->CreateMemory(shared);
  }
  absl::Status PinHost(void* base, size_t bytes) override {
    return cpu_->PinHost(base, bytes);
  }
  void UnpinHost(void* base) override { cpu_->UnpinHost(base); }
  absl::StatusOr<StreamId> CreateStream(int priority) override {
    return cpu_->CreateStream(priority);
  }
  void DestroyStream(StreamId) override {}
  absl::Status Launch(StreamId stream, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override {
    const auto wrong = wrong_.find(attrs.schema().id);
    if (wrong != wrong_.end()) wrong->second();
    return cpu_->Launch(stream, philox, attrs, inputs, outputs);
  }
  absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override {
    return cpu_->ComputeSizes(stream, attrs, inputs, sizes);
  }
  absl::Status Copy(StreamId stream, CopyKind kind, void* to, const void* from,
                    size_t bytes) override {
    return cpu_->Copy(stream, kind, to, from, bytes);
  }
  absl::Status CopyFrom(StreamId stream, void* to, Device* source,
                        StreamId source_stream, const void* from,
                        size_t bytes) override {
    return cpu_->CopyFrom(stream, to, source, source_stream, from, bytes);
  }
  absl::Status CopyToHost(StreamId stream, void* host, const void* device,
                          size_t bytes) override {
    return cpu_->CopyToHost(stream, host, device, bytes);
  }
  uint64_t RecordPoint(StreamId) override { return 0; }
  bool PointPassed(uint64_t) override { return true; }
  void WaitPoint(uint64_t) override {}
  absl::Status StreamStatus(StreamId) override { return absl::OkStatus(); }
  absl::Status Synchronize(StreamId) override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<Device> cpu_ = NewCpuDevice(1);
  const std::map<OpId, std::function<void()>> wrong_ = {
      {OpId::mul, [] { HF_CHECK(2 * 2 == 5); }},
      {OpId::sub, [] { throw std::bad_alloc(); }},
      {OpId::exp, [] { throw std::length_error("of a list"); }},
      {OpId::sin, [] { throw std::runtime_error("of a library"); }},
      {OpId::floor, [] { FailInAPiece([] { HF_CHECK(3 * 3 == 8); }); }},
      {OpId::ceil, [] { FailInAPiece([] { throw std::bad_alloc(); }); }},
  };
};

class CheckFailureTest : public SessionTest {
 protected:
  CheckFailureTest() : SessionTest(std::make_unique<WrongDevice>()) {
    Put(1, {1, 2});
    Put(2, {3, 4});
  }

  // The session as if nothing had been.
  void ExpectGoesOn(uint64_t output) {
    Op(OpId::add, {1, 2}, output);
    EXPECT_EQ(Values(output), (std::vector<float>{4, 6}));
    EXPECT_EQ(SessionError(), "");
  }
};

TEST_F(CheckFailureTest, ItIsTheOpsError) {
  Op(OpId::mul, {1, 2}, 3);
  Op(OpId::add, {3, 3}, 4);  // inherits it
  const v1::Status status = Read(4).status();
  EXPECT_EQ(status.code(), static_cast<int>(absl::StatusCode::kInternal));
  for (const char* part :
       {"[mul] a check failed in mul at server/session/check_failure_test.cc:",
        "2 * 2 == 5", "please report it", "Got f32[2], f32[2]"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << part << " in " << status.message();
  }
  ExpectGoesOn(5);
}

TEST_F(CheckFailureTest, AListThatDoesNotFitIsShortMemory) {
  Op(OpId::sub, {1, 2}, 3);
  EXPECT_EQ(Read(3).status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  Op(OpId::exp, {1}, 4);
  EXPECT_EQ(Read(4).status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  ExpectGoesOn(5);
}

TEST_F(CheckFailureTest, ALibrarysExceptionIsTheOpsError) {
  Op(OpId::sin, {1}, 3);
  const v1::Status status = Read(3).status();
  EXPECT_EQ(status.code(), static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_NE(status.message().find("of a library"), std::string::npos);
  ExpectGoesOn(4);
}

TEST_F(CheckFailureTest, InAThreadOfALoopItIsTheOpsErrorToo) {
  Op(OpId::floor, {1}, 3);
  const v1::Status status = Read(3).status();
  EXPECT_EQ(status.code(), static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_NE(status.message().find("3 * 3 == 8"), std::string::npos)
      << status.message();
  Op(OpId::ceil, {1}, 4);
  EXPECT_EQ(Read(4).status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  ExpectGoesOn(5);
}

TEST_F(CheckFailureTest, ATargetIsUsableOnceItIsTold) {
  Op(OpId::mul, {1, 2}, 0)->set_inplace(true);
  EXPECT_EQ(Read(1).status().code(),
            static_cast<int>(absl::StatusCode::kInternal));
  ExpectGoesOn(3);
}

TEST_F(CheckFailureTest, InABackwardItIsTheGradients) {
  Add()->mutable_set_requires_grad()->set_handle(1);
  batch_.mutable_commands(batch_.commands_size() - 1)
      ->mutable_set_requires_grad()
      ->set_requires_grad(true);
  Op(OpId::cos, {1}, 3)->set_record(true);  // -sin(x) * grad
  Op(OpId::sum, {3}, 4)->set_record(true);
  v1::Backward* backward = Add()->mutable_backward();
  backward->add_roots(4);
  backward->add_gradients(0);
  auto* target = backward->add_targets();
  target->set_tensor(1);
  target->set_grad(5);
  const v1::Status status = Read(5).status();
  EXPECT_EQ(status.code(), static_cast<int>(absl::StatusCode::kInternal))
      << status.message();
  ExpectGoesOn(6);
}

}  // namespace
}  // namespace holdfast
