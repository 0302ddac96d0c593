// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fake device's library beside a program that has, and exports, functions
// of the same names: each calls its own.
#include <dlfcn.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/copy.h"
#include "kernels/cuda/copy.h"
#include "kernels/device_plugin.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/device_library.h"
#include "server/fake_device/guarded_memory.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

constexpr char kLibrary[] = "server/libholdfast_fake.so";

std::unique_ptr<Device> OpenFake(const char* kernels) {
  setenv("HOLDFAST_FAKE_KERNELS", kernels, 1);
  auto opened = OpenDevices("fake", kLibrary, 1);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return std::move((*opened)[0].device);
}

class PluginTest : public SessionTest {
 protected:
  explicit PluginTest(const char* kernels = "cuda")
      : SessionTest(OpenFake(kernels)) {}
  ~PluginTest() override { session_.reset(); }

  void RunningSumsOfColumns() {
    Put(1, {1, 2, 3, 4});
    v1::Attr* shape = Op(OpId::view, {1}, 2)->add_attrs();
    shape->set_slot(0);
    shape->mutable_ints()->add_values(2);
    shape->mutable_ints()->add_values(2);
    v1::OpCall* transpose = Op(OpId::transpose, {2}, 3);
    for (int slot : {0, 1}) {
      v1::Attr* dim = transpose->add_attrs();
      dim->set_slot(slot);
      dim->set_i(slot);
    }
    v1::Attr* dim = Op(OpId::cumsum, {3}, 4)->add_attrs();
    dim->set_slot(0);
    dim->set_i(0);
    EXPECT_EQ(Values(4), (V{1, 3, 3, 7}));
  }
};

class PluginOnCpuKernelsTest : public PluginTest {
 protected:
  PluginOnCpuKernelsTest() : PluginTest("cpu") {}
};

// This program's functions are there to be taken.
TEST_F(PluginTest, ItsKernelsSayThatTheyAreTheLibrarys) {
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_info own = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&cuda::MakeContiguous), &own), 0);
  ASSERT_NE(dlsym(program, own.dli_sname), nullptr);
  dlclose(program);
  const std::string who = device_->description();
  EXPECT_THAT(who, HasSubstr("/libholdfast_fake.so (cpu)"));
  EXPECT_THAT(who, HasSubstr("/libholdfast_fake.so (cuda)"));
}

TEST_F(PluginTest, TheLibraryShowsNothingElse) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  void* const entry = dlsym(library, kDevicePluginSymbol);
  ASSERT_NE(entry, nullptr);
  Dl_info own = {};
  dladdr(reinterpret_cast<void*>(&cuda::MakeContiguous), &own);
  EXPECT_EQ(dlsym(library, own.dli_sname), nullptr);
  dlclose(library);
}

// A transposed operand is copied before it is used, by whoever MakeContiguous
// belongs to: another's touches memory that is not its own, and dies of it.
TEST_F(PluginTest, StridedOperandsAreCopiedByTheLibrary) {
  RunningSumsOfColumns();
}

TEST_F(PluginOnCpuKernelsTest, AndByTheCpusKernelsInIt) {
  RunningSumsOfColumns();
}

TensorSpec Strided() {
  TensorSpec spec = ContiguousSpec(DType::kFloat32, {2, 2});
  std::swap(spec.strides[0], spec.strides[1]);
  return spec;
}

// The kernels of this program, which is the daemon here.
class PluginDeathTest : public PluginTest {
 protected:
  PluginDeathTest() : memory_(device_->CreateMemory(false)) {
    segment_ = memory_->AllocateSegment(1 << 20).value();
  }
  ~PluginDeathTest() override { memory_->FreeSegment(segment_); }

  void Copy(void* from) {
    const TensorSpec strided = Strided();
    const TensorSpec dense = ContiguousSpec(DType::kFloat32, {2, 2});
    float to[4];
    NoScratchContext context;
    cpu::CopyStrided(context, {from, &strided}, {to, &dense});
  }

  struct NoScratchContext final : KernelContext {
    void* Scratch(size_t) override { return nullptr; }
  };
  std::unique_ptr<DeviceMemory> memory_;
  MemorySegment segment_;
};

TEST_F(PluginDeathTest, TheDaemonsKernelsCannotUseAnAddressOfTheDevice) {
  EXPECT_DEATH(Copy(segment_.base),
               "memory of a device must be used by its kernels alone. Got "
               ".*plugin_test \\(by its address on device 0\\)");
}

TEST_F(PluginDeathTest, NorWhatLiesBehindIt) {
  EXPECT_DEATH(Copy(ToGuarded(segment_.base)),
               "used by its kernels alone. Got .*plugin_test "
               "\\(by its place in this process\\)");
}

TEST_F(PluginDeathTest, NorFunctionsOfTheSystemForThem) {
  const auto* const bytes = static_cast<char*>(ToGuarded(segment_.base));
  EXPECT_DEATH(EXPECT_EQ(std::string(bytes, 4096), ""),
               "used by its kernels alone");
}

}  // namespace
}  // namespace holdfast
