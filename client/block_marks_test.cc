// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/block_marks.h"

#include <cstring>
#include <random>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace holdfast::client {
namespace {

std::string Bytes(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(BlockMarks, CopyAndMarksAgreeAtAnySize) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{4095},
        size_t{4096}, size_t{4097}, size_t{100'001}, size_t{17} << 20}) {
    const std::string bytes = Bytes(size);
    for (const size_t shift : {0, 1}) {  // of the target: streamed or not
      std::string copy(size + 64, '\0');
      BlockMarks copied, taken;
      char* to = copy.data() + shift;
      CopyMarked(to, bytes.data(), size, &copied);
      EXPECT_EQ(std::memcmp(to, bytes.data(), size), 0) << size;
      EXPECT_EQ(to[size], '\0') << size;
      TakeMarks(bytes.data(), size, &taken);
      EXPECT_EQ(copied, taken) << size;
      EXPECT_EQ(taken.size(), (size + kMarkedBlock - 1) / kMarkedBlock);
      for (size_t i = 0; i < taken.size(); i += 97) {
        const size_t at = i * kMarkedBlock;
        EXPECT_EQ(taken[i],
                  MarkOf(bytes.data() + at, std::min(kMarkedBlock, size - at)));
      }
    }
  }
}

TEST(BlockMarks, EveryBitCounts) {
  for (const size_t size : {size_t{8}, size_t{200}, kMarkedBlock}) {
    for (const bool zeros : {false, true}) {
      std::string bytes = zeros ? std::string(size, '\0') : Bytes(size);
      std::set<uint64_t> seen{MarkOf(bytes.data(), size)};
      for (size_t bit = 0; bit < 8 * size; ++bit) {
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
        seen.insert(MarkOf(bytes.data(), size));
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      }
      EXPECT_EQ(seen.size(), 8 * size + 1);
    }
  }
}

// What programs do to arrays: sums of the elements often stay as they are.
TEST(BlockMarks, RegularChangesCount) {
  double values[512];
  const auto mark = [&] { return MarkOf(values, sizeof(values)); };
  for (const double fill : {0.0, 1.0, -3.5}) {
    std::set<uint64_t> seen;
    size_t changes = 0;
    const auto note = [&] {
      seen.insert(mark());
      ++changes;
    };
    for (double& value : values) value = fill + 1;
    note();
    for (double& value : values) value = -value;  // all signs
    note();
    for (int step : {1, 2, 3, 16, 32, 128}) {  // pairs of signs, and swaps
      for (int at = 0; at + step < 512; at += 5) {
        values[at] = -values[at];
        values[at + step] = -values[at + step];
        note();
        values[at] = -values[at];
        values[at + step] = -values[at + step];
      }
      std::swap(values[0], values[step] = fill + 2 + step);
      note();
      values[0] = values[step] = -(fill + 1);
    }
    EXPECT_EQ(seen.size(), changes) << fill;
  }
}

}  // namespace
}  // namespace holdfast::client
