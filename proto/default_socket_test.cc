// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/default_socket.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

TEST(DefaultSocketTest, FirstVariableThatIsSetWins) {
  setenv("HOLDFAST_SOCKET", "/a/b.sock", 1);
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(DefaultSocketPath(), "/a/b.sock");
  setenv("HOLDFAST_SOCKET", "", 1);
  EXPECT_EQ(DefaultSocketPath(), "/run/user/7/holdfast/holdfastd.sock");
  unsetenv("HOLDFAST_SOCKET");
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(DefaultSocketPath(),
            "/tmp/holdfast-" + std::to_string(geteuid()) + "/holdfastd.sock");
}

TEST(DefaultSocketTest, TheServiceComesNext) {
  setenv("HOLDFAST_SOCKET", "", 1);
  EXPECT_EQ(ServiceSocketPath(), "/run/holdfast/holdfastd.sock");
  setenv("HOLDFAST_SERVICE_SOCKET", "/s.sock", 1);
  EXPECT_EQ(ServiceSocketPath(), "/s.sock");
  // Who names a place means that one.
  setenv("HOLDFAST_SOCKET", "/a/b.sock", 1);
  EXPECT_EQ(ServiceSocketPath(), "");
}

}  // namespace
}  // namespace holdfast
