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

}  // namespace
}  // namespace holdfast
