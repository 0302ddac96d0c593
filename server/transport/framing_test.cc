// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The frame parser against every way that bytes can arrive.
#include "server/transport/framing.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/holdfast.pb.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

std::string Header(uint32_t length) {
  std::string header;
  for (int i = 0; i < 4; ++i) {
    header.push_back(static_cast<char>(length >> (8 * i)));
  }
  return header;
}

std::string RandomBytes(size_t size, std::mt19937* random) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>((*random)());
  return bytes;
}

TEST(Framing, MessagesSurviveAnySplit) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::string stream;
    std::vector<std::string> sent;
    for (int i = 0; i < 20; ++i) {
      sent.push_back(RandomBytes(random() % 300, &random));
      stream += Header(sent.back().size()) + sent.back();
    }
    FrameParser parser;
    std::vector<std::string> got;
    for (size_t at = 0; at < stream.size();) {
      const size_t n = std::min<size_t>(1 + random() % 97, stream.size() - at);
      parser.Append(absl::string_view(stream).substr(at, n));
      at += n;
      absl::string_view payload;
      while (true) {
        const bool ready = parser.Ready();
        absl::StatusOr<bool> next = parser.Next(&payload);
        ASSERT_TRUE(next.ok());
        EXPECT_EQ(*next, ready);
        if (!*next) break;
        got.emplace_back(payload);
      }
    }
    EXPECT_EQ(got, sent);
    EXPECT_EQ(parser.buffered(), 0u);
  }
}

TEST(Framing, MakeFrameIsWhatTheParserReads) {
  v1::LocalRequest request;
  request.mutable_hello()->set_client("a client");
  FrameParser parser;
  parser.Append(MakeFrame(request));
  absl::string_view payload;
  ASSERT_TRUE(*parser.Next(&payload));
  v1::LocalRequest read;
  ASSERT_TRUE(read.ParseFromArray(payload.data(), payload.size()));
  EXPECT_EQ(read.hello().client(), "a client");
}

TEST(Framing, ATruncatedFrameWaits) {
  const std::string frame = Header(100) + std::string(100, 'x');
  for (size_t n = 0; n < frame.size(); ++n) {
    FrameParser parser;
    parser.Append(absl::string_view(frame).substr(0, n));
    absl::string_view payload;
    absl::StatusOr<bool> next = parser.Next(&payload);
    ASSERT_TRUE(next.ok());
    EXPECT_FALSE(*next) << n;
    EXPECT_EQ(parser.buffered(), n);
  }
}

TEST(Framing, TheLargestFrameIsTakenAndALargerOneIsNot) {
  FrameParser parser;
  parser.Append(Header(kMaxFrameBytes) + std::string(kMaxFrameBytes, 'x'));
  absl::string_view payload;
  ASSERT_TRUE(*parser.Next(&payload));
  EXPECT_EQ(payload.size(), kMaxFrameBytes);

  parser.Append(Header(kMaxFrameBytes + 1));
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<bool> next = parser.Next(&payload);
    EXPECT_EQ(next.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(next.status().message()), HasSubstr("1048577"));
  }
}

TEST(Framing, RandomBytesEndInAnErrorOrAWait) {
  std::mt19937 random(2);
  int errors = 0;
  for (int round = 0; round < 500; ++round) {
    FrameParser parser;
    size_t given = 0, taken = 0;
    for (int i = 0; i < 20; ++i) {
      const std::string bytes = RandomBytes(random() % 64, &random);
      given += bytes.size();
      parser.Append(bytes);
      absl::string_view payload;
      absl::StatusOr<bool> next = parser.Next(&payload);
      if (!next.ok()) {
        ++errors;
        break;
      }
      if (*next) taken += 4 + payload.size();
      EXPECT_EQ(parser.buffered(), given - taken);
    }
  }
  // A random length is above the limit but once in 4096.
  EXPECT_GT(errors, 450);
}

}  // namespace
}  // namespace holdfast
