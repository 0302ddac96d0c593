// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that a session and its client's process see both, and clients that
// tell lies about it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/exec/shared_storages.h"
#include "server/fake_device/fake_device.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using V = std::vector<float>;

std::unique_ptr<Device> NewCpu() { return NewCpuDevice(1); }

std::unique_ptr<FakeDevice> NewFake() {
  auto device = std::make_unique<FakeDevice>(absl::Milliseconds(2), &NewCpu);
  device->set_name("cuda");
  return device;
}

class ForeignMemoryTest : public SessionTest {
 protected:
  ForeignMemoryTest() : SessionTest(NewFake()) {
    Session::Options options;
    options.local = true;
    Open(options);
  }
  // The device outlives its sessions.
  ~ForeignMemoryTest() override { session_.reset(); }

  v1::ReadResult ReadWith(v1::Read wish) {
    wish.set_id(++read_id_);
    *Add()->mutable_read() = std::move(wish);
    Deliver();
    AwaitReads();
    return wire_.events.back().read();
  }
  v1::ReadResult Export(uint64_t handle) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
    read->set_export_memory(true);
    Deliver();
    AwaitReads();
    return wire_.events.back().read();
  }
  v1::ExportedMemory Exported(uint64_t handle) {
    const v1::ReadResult result = Export(handle);
    EXPECT_FALSE(result.has_status()) << result.status().message();
    v1::ExportedMemory memory;
    EXPECT_TRUE(memory.ParseFromString(result.data()));
    return memory;
  }
  // A Put of three floats from `handle`, to be changed.
  v1::ForeignMemory* Bring(uint64_t output, const std::string& handle) {
    v1::Put* put = Add()->mutable_put();
    put->set_handle(output);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(3);
    put->mutable_spec()->set_device(1);
    put->mutable_foreign()->set_handle(handle);
    put->mutable_foreign()->add_strides(1);
    return put->mutable_foreign();
  }
  std::string Failure(uint64_t handle) {
    return Read(handle).status().message();
  }
};

// A file of memory as another process would have it.
class Sealed {
 public:
  Sealed(size_t bytes, int seals) : fd_(memfd_create("m", MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(fd_, bytes), 0);
    EXPECT_EQ(fcntl(fd_, F_ADD_SEALS, seals), 0);
    // The device refuses its own process: a child's names the same file.
    EXPECT_EQ(pipe(pipe_), 0);
    child_ = fork();
    if (child_ == 0) {
      char byte;
      close(pipe_[1]);
      _exit(static_cast<int>(read(pipe_[0], &byte, 1)));
    }
    close(pipe_[0]);
  }
  ~Sealed() {
    close(pipe_[1]);
    close(fd_);
  }
  std::string handle() const {
    return absl::StrCat("/proc/", child_, "/fd/", fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
  int pipe_[2];
  pid_t child_;
};

TEST_F(ForeignMemoryTest, AnExportTellsWhereTheElementsAre) {
  Put(1, {1, 2, 3});
  Op(OpId::add, {1, 1}, 2);
  const v1::ExportedMemory memory = Exported(2);
  EXPECT_EQ(memory.gpu(), 0u);
  EXPECT_GE(memory.bytes(), 12u);
  const int fd = open(memory.handle().c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  float values[3] = {};
  ASSERT_EQ(pread(fd, values, sizeof(values), memory.offset()), 12);
  EXPECT_THAT(values, testing::ElementsAre(2, 4, 6));
  values[1] = 50;
  ASSERT_EQ(pwrite(fd, values, sizeof(values), memory.offset()), 12);
  close(fd);
  Op(OpId::add, {2, 1}, 3);
  EXPECT_EQ(Values(3), (V{3, 52, 9}));
}

TEST_F(ForeignMemoryTest, ExportedSegmentsStay) {
  Put(1, V(3 << 20, 1));  // segments of their own
  Put(2, V(3 << 20, 2));
  Exported(1);
  Add()->add_release(1);
  Add()->add_release(2);
  Deliver();
  const uint64_t before = session_->Stats().segments();
  Add()->mutable_release_memory();
  Deliver();
  EXPECT_EQ(session_->Stats().segments(), before - 1);
}

TEST_F(ForeignMemoryTest, ARemoteClientGetsNone) {
  session_.reset();
  Open({});
  sequence_ = 0;
  Put(1, {1});
  EXPECT_THAT(Export(1).status().message(), HasSubstr("over shared memory"));
  Bring(2, "/proc/1/fd/1");
  EXPECT_THAT(Failure(2), HasSubstr("of this machine"));
}

TEST_F(ForeignMemoryTest, BringsWhatAnotherProcessHas) {
  const Sealed file(4096, F_SEAL_SHRINK);
  const float values[] = {1, 2, 3, 4, 5, 6};
  ASSERT_EQ(pwrite(file.fd(), values, sizeof(values), 8), sizeof(values));
  Bring(1, file.handle())->set_offset(8);
  v1::ForeignMemory* odd = Bring(2, file.handle());
  odd->set_offset(8);
  odd->set_strides(0, 2);
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
  EXPECT_EQ(Values(2), (V{1, 3, 5}));
}

TEST_F(ForeignMemoryTest, TheAnswerComesWhenTheCopyIsDone) {
  const Sealed file(4096, F_SEAL_SHRINK);
  Bring(1, file.handle());
  v1::Read* read = Add()->mutable_read();
  read->set_id(9);
  read->set_handle(1);
  read->set_spec_only(true);
  read->set_complete(true);
  Deliver();
  EXPECT_TRUE(wire_.events.empty());
  AwaitReads();
  ASSERT_EQ(wire_.events.size(), 1u);
  EXPECT_EQ(wire_.events[0].read().spec().shape(0), 3);
  const float late[] = {9, 9, 9};
  ASSERT_EQ(pwrite(file.fd(), late, sizeof(late), 0), sizeof(late));
  EXPECT_EQ(Values(1), (V{0, 0, 0}));
}

TEST_F(ForeignMemoryTest, GarbageIsTheOpsError) {
  const Sealed unsealed(4096, 0);
  uint64_t handle = 0;
  for (const std::string& garbage :
       {std::string(), std::string(64, '\0'), std::string(100000, 'x'),
        std::string("/etc/passwd"), std::string("/proc/self/../1/fd/0"),
        std::string("/proc/1/mem"), absl::StrCat("/proc/", getpid(), "/fd/0"),
        unsealed.handle()}) {
    Bring(++handle, garbage);
    EXPECT_THAT(Failure(handle), HasSubstr("no other process's memory"))
        << garbage;
  }
  Put(++handle, {1, 2});
  EXPECT_EQ(Values(handle), (V{1, 2}));
}

TEST_F(ForeignMemoryTest, NothingOutsideIsRead) {
  const Sealed file(4096, F_SEAL_SHRINK);
  const std::string good = file.handle();
  Bring(1, good)->set_offset(4096 - 8);
  Bring(2, good)->set_offset(uint64_t{1} << 63);
  Bring(3, good)->set_offset(6);
  Bring(4, good)->set_strides(0, int64_t{1} << 62);
  Bring(5, good)->set_strides(0, -1);
  Bring(6, good)->add_strides(1);
  Bring(7, good)->set_segment(77);
  for (uint64_t handle = 1; handle <= 7; ++handle) {
    EXPECT_NE(Failure(handle), "") << handle;
  }
  Bring(8, good)->set_offset(4096 - 12);
  EXPECT_EQ(Values(8), (V{0, 0, 0}));
}

TEST_F(ForeignMemoryTest, OfTheSessionsOwnByItsNumber) {
  Put(1, {1, 2, 3});
  const v1::ExportedMemory memory = Exported(1);
  v1::ForeignMemory* own = Bring(2, "");
  own->set_segment(memory.segment());
  own->set_offset(memory.offset());
  EXPECT_EQ(Values(2), (V{1, 2, 3}));
}

TEST_F(ForeignMemoryTest, AnEndInTheMiddleOfACopy) {
  const Sealed file(4096, F_SEAL_SHRINK);
  Bring(1, file.handle());
  Deliver();
  session_->End(absl::OkStatus());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

// What is known of integers from their upload no longer holds.
TEST_F(ForeignMemoryTest, IndicesThatTheClientWroteAreChecked) {
  Put(1, {1, 2, 3});
  v1::Put* put = Add()->mutable_put();
  put->set_handle(2);
  put->mutable_spec()->set_dtype(v1::DTYPE_INT64);
  put->mutable_spec()->add_shape(2);
  int64_t index[] = {0, 2};
  put->set_data(index, sizeof(index));
  const v1::ExportedMemory memory = Exported(2);
  const auto take = [&](uint64_t output) {
    v1::Attr* dim = Op(OpId::index_select, {1, 2}, output)->add_attrs();
    dim->set_slot(0);
    dim->set_i(0);
  };
  take(3);
  EXPECT_EQ(Values(3), (V{1, 3}));
  index[1] = int64_t{1} << 40;
  const int fd = open(memory.handle().c_str(), O_RDWR);
  ASSERT_EQ(pwrite(fd, index, sizeof(index), memory.offset()), sizeof(index));
  close(fd);
  take(4);
  EXPECT_THAT(Failure(4), HasSubstr("out of"));
}

// An array that a client looks at keeps nothing on the device.
TEST_F(ForeignMemoryTest, WhatWasReadByPlaceIsHostMemory) {
  Session::Options options;
  options.local = true;
  Open(options);
  const V values(1000, 3);
  Put(1, values);
  Deliver();
  const uint64_t before = session_->Stats().bytes_in_use();
  Op(OpId::clone, {1}, 2);
  v1::Read place;
  place.set_handle(2);
  place.set_place(true);
  const v1::ReadResult read = ReadWith(place);
  ASSERT_TRUE(read.has_place());
  EXPECT_EQ(session_->Stats().bytes_in_use(), before);
  const absl::StatusOr<MemorySegment> segment =
      session_->FindSegment(read.place().segment());
  ASSERT_TRUE(segment.ok());
  const auto* bytes =
      static_cast<const char*>(segment->base) + read.place().offset();
  EXPECT_EQ(std::memcmp(bytes, values.data(), values.size() * sizeof(float)),
            0);
  // Others are read beside it, not over it.
  Op(OpId::neg, {1}, 3);
  place.set_handle(3);
  EXPECT_NE(ReadWith(place).place().offset(), read.place().offset());
  Op(OpId::add, {1, 2}, 4);
  EXPECT_THAT(Failure(4), HasSubstr("read by place: it is host memory"));
  // Its handle is still the client's to release, once.
  Add()->add_release(2);
  Deliver();
  Op(OpId::neg, {1}, 5);
  EXPECT_EQ(Values(5), V(1000, -3));
  EXPECT_EQ(SessionError(), "");
}

// What a client maps of a tensor is memory of its session, the tensor perhaps
// not any more.
TEST_F(ForeignMemoryTest, ASharedTensorOutlivesWhoMappedIt) {
  Session::Options options;
  options.local = true;
  options.shared = std::make_shared<SharedStorages>();
  Open(options);
  Put(1, {1, 2, 3});
  v1::Read share;
  share.set_handle(1);
  share.set_share(true);
  const std::string token = ReadWith(share).data();
  Op(OpId::detach, {1}, 2);
  v1::Read place;
  place.set_handle(2);
  place.set_place(true);
  EXPECT_TRUE(ReadWith(place).has_place());
  std::shared_ptr<Session> first = std::move(session_);
  sequence_ = 0;
  Open(options);
  v1::Open* open = Add()->mutable_open();
  open->set_handle(1);
  open->set_token(token);
  open->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
  open->mutable_spec()->add_shape(3);
  Deliver();
  first.reset();
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
  Add()->add_release(1);
  Put(2, {4});
  EXPECT_EQ(Values(2), V{4});
}

}  // namespace
}  // namespace holdfast
