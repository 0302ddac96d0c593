// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/limits/config_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limits/user_limits.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kExample[] = R"(
default_limits { memory: "8GiB" max_sessions: 4 }
user {
  name: "alice"
  admin: true
  limits { memory: "16 GiB" weight: 2.5 idle_seconds: 3600 }
}
device_memory: "64GB"
)";

TEST(ConfigurationTest, IsRead) {
  const auto read = ParseConfiguration(kExample, "c");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->default_limits.memory_bytes(), uint64_t{8} << 30);
  EXPECT_EQ(read->users.at("alice").memory_bytes(), uint64_t{16} << 30);
  EXPECT_EQ(read->users.at("alice").weight(), 2.5);
  EXPECT_FALSE(read->users.at("alice").has_max_sessions());
  EXPECT_EQ(read->admins.count("alice"), 1u);
  EXPECT_EQ(read->device_bytes, 64000000000u);
}

TEST(ConfigurationTest, AMistakeIsToldWithItsLine) {
  const struct {
    const char* text;
    const char* line;
    const char* what;
  } kCases[] = {
      {"\nuser { nmae: \"x\" }", "c:2:", "nmae"},
      {"user {\n name: \"x\"\n limits { memory: \"8 cows\" }\n}",
       "c:3:", "8 cows"},
      {"\n\ndevice_memory: \"-1\"", "c:3:", "-1"},
      {"default_limits {\n weight: 0 }", "c:2:", "weight"},
      {"default_limits { weight: nan }", "c:1:", "weight"},
      {"default_limits {\n\n idle_seconds: -5 }", "c:3:", "idle"},
      {"default_limits {\n op_seconds: nan }", "c:2:", "op_seconds"},
      {"user { name: \"x\" }\nuser { name: \"x\" }", "c:2:", "twice"},
      {"user { }", "c:1:", "name"},
      {"user { name: \"x\" ", "c:1:", "Expected"},
  };
  for (const auto& c : kCases) {
    const auto read = ParseConfiguration(c.text, "c");
    ASSERT_FALSE(read.ok()) << c.text;
    EXPECT_THAT(std::string(read.status().message()),
                AllOf(HasSubstr(c.line), HasSubstr(c.what)))
        << c.text;
  }
  EXPECT_THAT(std::string(ReadConfiguration("/nowhere").status().message()),
              HasSubstr("No such file"));
}

TEST(SizeTest, HasUnits) {
  EXPECT_EQ(*ParseSize("1024"), 1024u);
  EXPECT_EQ(*ParseSize("1.5 KiB"), 1536u);
  EXPECT_EQ(*ParseSize("2MB"), 2000000u);
  for (const char* bad : {"", "GiB", "1 g", "-1", "1e30 TiB", "1..2"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(UserLimitsTest, TheNearestSayHolds) {
  v1::Limits base;
  base.set_weight(1);
  base.set_max_sessions(0);
  UserLimits limits(base);
  limits.Configure(*ParseConfiguration(kExample, "c"));
  EXPECT_EQ(limits.Of("alice").weight(), 2.5);
  EXPECT_EQ(limits.Of("alice").max_sessions(), 4u);
  EXPECT_EQ(limits.Of("bob").weight(), 1);
  EXPECT_TRUE(limits.IsAdmin("alice"));
  EXPECT_FALSE(limits.IsAdmin("bob"));
  v1::Limits set;
  set.set_weight(7);
  ASSERT_TRUE(limits.Set("", set, false).ok());
  EXPECT_EQ(limits.Of("bob").weight(), 7);
  EXPECT_EQ(limits.Of("alice").weight(), 2.5);
  ASSERT_TRUE(limits.Set("alice", set, false).ok());
  EXPECT_EQ(limits.Of("alice").weight(), 7);
  EXPECT_EQ(limits.Of("alice").memory_bytes(), uint64_t{16} << 30);
  ASSERT_TRUE(limits.Set("alice", {}, true).ok());
  EXPECT_EQ(limits.Of("alice").weight(), 2.5);
  set.set_weight(0);
  EXPECT_FALSE(limits.Set("bob", set, false).ok());
  EXPECT_EQ(limits.Of("bob").weight(), 7);
}

}  // namespace
}  // namespace holdfast
