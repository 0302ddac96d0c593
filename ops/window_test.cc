// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace holdfast {
namespace {

// PyTorch's rule by counting: positions start at -padding; the last one must
// fit, or with ceil_mode start before the end of the input or its left padding
// and overlap the padded input.
int64_t CountByForce(const Window& w, int64_t size) {
  const int64_t extent = (w.kernel[0] - 1) * w.dilation[0] + 1;
  const int64_t padded = size + 2 * w.padding[0];
  int64_t count = 0;
  for (int64_t start = 0;; start += w.stride[0]) {
    const bool fits = start + extent <= padded;
    // ceil(x / s) windows: one more while the previous one ends inside.
    const bool hangs = w.ceil_mode && start + extent < padded + w.stride[0] &&
                       start < size + w.padding[0];
    if (!fits && !hangs) return count;
    if (fits && w.ceil_mode && start >= size + w.padding[0]) return count;
    ++count;
  }
}

TEST(WindowTest, CountsEveryCombination) {
  int cases = 0;
  for (int64_t size = 1; size <= 9; ++size) {
    for (int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (int64_t stride = 1; stride <= 4; ++stride) {
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          for (int64_t padding = 0; padding <= 4; ++padding) {
            for (bool ceil_mode : {false, true}) {
              Window w;
              w.kernel = {kernel, 1};
              w.stride = {stride, 1};
              w.dilation = {dilation, 1};
              w.padding = {padding, 0};
              w.ceil_mode = ceil_mode;
              if (!PaddingIsAtMostHalf(w, 0)) continue;
              ++cases;
              const int64_t count = WindowCount(w, 0, size);
              ASSERT_EQ(count > 0 ? count : 0, CountByForce(w, size))
                  << "size " << size << " kernel " << kernel << " stride "
                  << stride << " dilation " << dilation << " padding "
                  << padding << " ceil " << ceil_mode;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

TEST(WindowTest, LargestFieldsDoNotOverflow) {
  Window w;
  w.kernel = {kMaxWindowField, 1};
  w.dilation = {kMaxWindowField, 1};
  w.padding = {kMaxWindowField, 0};
  EXPECT_LE(WindowCount(w, 0, int64_t{1} << 46), 0);
  w.kernel = {1, 1};
  w.dilation = {1, 1};
  EXPECT_EQ(WindowCount(w, 0, int64_t{1} << 46),
            (int64_t{1} << 46) + 2 * kMaxWindowField);
  w.stride = {kMaxWindowField, 1};
  w.ceil_mode = true;
  EXPECT_GT(WindowCount(w, 0, int64_t{1} << 46), 0);
}

TEST(WindowTest, AxesAreIndependent) {
  Window w;
  w.kernel = {3, 5};
  w.stride = {1, 2};
  w.padding = {1, 0};
  EXPECT_EQ(WindowCount(w, 0, 8), 8);
  EXPECT_EQ(WindowCount(w, 1, 8), 2);
}

TEST(WindowTest, PaddingLimit) {
  Window w;
  w.kernel = {3, 3};
  w.padding = {1, 2};
  EXPECT_TRUE(PaddingIsAtMostHalf(w, 0));
  EXPECT_FALSE(PaddingIsAtMostHalf(w, 1));
  w.dilation = {1, 2};  // does not count
  EXPECT_FALSE(PaddingIsAtMostHalf(w, 1));
}

}  // namespace
}  // namespace holdfast
