// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/device_library.h"

#include <stdlib.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

std::string MessageFor(absl::string_view device, const std::string& library) {
  return std::string(OpenDevices(device, library, 1).status().message());
}

TEST(DeviceLibraryTest, TheCpuNeedsNone) {
  EXPECT_EQ(OpenDevices("cpu", "", 1).value()[0].device->name(), "cpu");
}

TEST(DeviceLibraryTest, RefusesOtherNames) {
  for (const char* name : {"", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "../x"}) {
    EXPECT_THAT(MessageFor(name, ""), AllOf(HasSubstr("--device must be"),
                                            HasSubstr(std::string(name))));
  }
}

TEST(DeviceLibraryTest, AMissingLibrarySaysWhereItWasLookedFor) {
  setenv("HOLDFAST_PLUGIN_PATH", "/nowhere", 1);
  EXPECT_THAT(DeviceLibraryPaths("cuda"),
              Contains("/nowhere/libholdfast_cuda.so"));
  unsetenv("HOLDFAST_PLUGIN_PATH");
  EXPECT_THAT(MessageFor("cuda", "/nowhere/x.so"),
              AllOf(HasSubstr("/nowhere/x.so"), HasSubstr("--device=cpu")));
}

TEST(DeviceLibraryTest, AFileThatIsNoLibraryIsRefused) {
  const std::string path = testing::TempDir() + "/libholdfast_cuda.so";
  std::ofstream(path) << "not a library";
  EXPECT_THAT(MessageFor("cuda", path),
              AllOf(HasSubstr("cannot be loaded"), HasSubstr(path)));
}

TEST(DeviceLibraryTest, ALibraryOfSomethingElseIsRefused) {
  EXPECT_THAT(MessageFor("cuda", "/usr/lib/x86_64-linux-gnu/libm.so.6"),
              HasSubstr("holdfast_device_plugin"));
}

}  // namespace
}  // namespace holdfast
