// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/log.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/json_string.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class LogTest : public ::testing::Test {
 protected:
  void Use(const std::string& format) {
    ASSERT_TRUE(
        SetLogSink(format,
                   std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_))
            .ok());
  }
  void TearDown() override {
    ASSERT_TRUE(
        SetLogSink("text", std::make_shared<spdlog::sinks::ostream_sink_mt>(
                               elsewhere()))
            .ok());
  }
  static std::ostringstream& elsewhere() {
    static auto& stream = *new std::ostringstream;
    return stream;
  }
  std::string Lines() {
    spdlog::default_logger()->flush();
    return lines_.str();
  }

  std::ostringstream lines_;
};

TEST_F(LogTest, TextIsOneLineWhateverTheClientCallsItself) {
  Use("text");
  LogSession(spdlog::level::info, {7, "00ff"}, "opened",
             {{"name", "two\nlines \"x\""}, {"client", "py-1"}, {"user", ""}});
  EXPECT_THAT(
      Lines(),
      EndsWith("info session 7 opened name=\"two\\u000alines \\\"x\\\"\""
               " client=py-1 trace_id=00ff\n"));
}

// Named after a review that found it: any message, not only a session's.
TEST_F(LogTest, Review16NoValueMakesALineOfItsOwn) {
  Use("text");
  spdlog::warn("ended by {}: {}", "eve",
               "x\n2026-01-01 00:00:00.000 info root ended everything\r\x1b[2J"
               "\x7f\xc2\x85\xe2\x80\xa8 caf\xc3\xa9 \xff");
  EXPECT_THAT(Lines(),
              EndsWith("warning ended by eve: x\\n2026-01-01 00:00:00.000 info "
                       "root ended everything\\r\\x1b[2J\\x7f\\xc2\\x85"
                       "\\xe2\\x80\\xa8 caf\xc3\xa9 \xff\n"));
}

TEST_F(LogTest, OneUserDoesNotFillIt) {
  Use("text");
  for (int i = 0; i < 5000; ++i) {
    LogSession(spdlog::level::info, {7, "00ff", "eve"}, "opened");
  }
  LogSession(spdlog::level::info, {8, "00ff", "bob"}, "opened");
  const std::string lines = Lines();
  const auto count = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_GE(count, 500);
  EXPECT_LT(count, 3000);  // some more come as time passes
  EXPECT_THAT(lines, HasSubstr("session 8 opened"));
}

TEST_F(LogTest, JsonHasNumbersAsNumbers) {
  Use("json");
  LogSession(spdlog::level::info, {7, "00ff"}, "ended",
             {{"ops", uint64_t{12}}, {"device_seconds", 1.5}});
  EXPECT_THAT(Lines(), EndsWith(",\"ops\":12,\"device_seconds\":1.500}\n"));
}

TEST_F(LogTest, JsonHasMembersForASession) {
  Use("json");
  LogSession(spdlog::level::warn, {7, "00ff"}, "limit hit",
             {{"reason", "a \"b\""}});
  EXPECT_THAT(Lines(),
              MatchesRegex(
                  "\\{\"time\":\"[-0-9]+T[:0-9.]+Z\",\"level\":\"warning\","
                  "\"message\":\"session 7 limit hit\",\"event\":\"limit hit\","
                  "\"session\":7,\"trace_id\":\"00ff\","
                  "\"reason\":\"a \\\\\"b\\\\\"\"\\}\n"));
}

TEST_F(LogTest, JsonEscapesOtherLines) {
  Use("json");
  spdlog::info("path \"{}\"", "a\\b");
  EXPECT_THAT(Lines(), StartsWith("{\"time\":"));
  EXPECT_THAT(Lines(), HasSubstr("\"message\":\"path \\\"a\\\\b\\\"\"}\n"));
}

TEST_F(LogTest, WrongFlagsNameTheChoices) {
  EXPECT_THAT(std::string(SetUpLog({"loud", "text", ""}).message()),
              HasSubstr("trace, debug, info, warning, error, critical, off. "
                        "Got 'loud'"));
  EXPECT_THAT(std::string(SetUpLog({"info", "xml", ""}).message()),
              HasSubstr("--log_format must be text or json. Got 'xml'"));
  EXPECT_THAT(
      std::string(SetUpLog({"info", "json", "/dev/null/log"}).message()),
      HasSubstr("/dev/null/log"));
}

TEST(JsonString, TextThatIsNotUtf8) {
  EXPECT_EQ(JsonString("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(JsonString("\xff\n"), "\"\\\\xff\\\\n\"");
}

}  // namespace
}  // namespace holdfast
