// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/pool_windows.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/covering_windows.h"

namespace holdfast::cuda {
namespace {

WindowAxis Axis(int64_t kernel, int64_t stride, int64_t padding,
                int64_t dilation, int64_t size) {
  WindowAxis a;
  a.kernel = kernel;
  a.stride = stride;
  a.padding = padding;
  a.dilation = dilation;
  a.size = size;
  a.out = (size + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  return a;
}

std::vector<int64_t> PlacesByHand(const WindowAxis& a, int64_t window) {
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < a.kernel; ++tap) {
    const int64_t at = window * a.stride - a.padding + tap * a.dilation;
    if (at >= 0 && at < a.size) places.push_back(at);
  }
  return places;
}

template <typename Index>
std::vector<int64_t> PlacesOf(const PoolAxis<Index>& a, int64_t window) {
  const auto i = static_cast<typename PoolAxis<Index>::Place>(window);
  std::vector<int64_t> places;
  for (auto at = a.First(i); at < a.End(i); at += a.dilation) {
    places.push_back(at);
  }
  return places;
}

std::vector<WindowAxis> SomeAxes() {
  return {Axis(2, 2, 0, 1, 9),  Axis(3, 2, 1, 1, 7), Axis(3, 1, 1, 2, 5),
          Axis(4, 3, 2, 3, 17), Axis(9, 2, 4, 1, 3), Axis(5, 1, 2, 4, 13),
          Axis(1, 1, 0, 1, 1)};
}

TEST(PoolAxisTest, WindowsHaveTheirTapsInside) {
  for (const WindowAxis& a : SomeAxes()) {
    ASSERT_TRUE(FitsPoolAxis(a));
    for (int64_t window = 0; window < a.out; ++window) {
      const std::vector<int64_t> places = PlacesByHand(a, window);
      EXPECT_EQ(PlacesOf(PoolAxis<uint32_t>(a), window), places);
      EXPECT_EQ(PlacesOf(PoolAxis<int64_t>(a), window), places);
    }
  }
}

template <typename Index>
void ExpectWindowsVisitTheirElements(const PoolPlane& p) {
  const PoolWindows<Index> windows(p);
  std::vector<float> plane(p.in_size());
  std::iota(plane.begin(), plane.end(), 0.0f);
  for (int64_t n = 0; n < 2 * p.out_size(); ++n) {
    const auto at = windows.Split(n);
    EXPECT_EQ(at.plane, n / p.out_size());
    EXPECT_EQ(at.i, n / p.w.out % p.h.out);
    EXPECT_EQ(at.j, n % p.w.out);
    std::vector<int64_t> expected, visited;
    for (int64_t y : PlacesByHand(p.h, at.i)) {
      for (int64_t x : PlacesByHand(p.w, at.j)) {
        expected.push_back(y * p.w.size + x);
      }
    }
    windows.ForEachElement(plane.data(), at.i, at.j, [&](float v, auto place) {
      EXPECT_EQ(v, static_cast<float>(place));
      visited.push_back(place);
    });
    EXPECT_EQ(visited, expected);
  }
}

TEST(PoolWindowsTest, VisitEachElementOnceInOrder) {
  PoolPlane p;
  for (const WindowAxis& h : SomeAxes()) {
    for (const WindowAxis& w : SomeAxes()) {
      p.h = h;
      p.w = w;
      ExpectWindowsVisitTheirElements<uint32_t>(p);
      ExpectWindowsVisitTheirElements<int64_t>(p);
    }
  }
}

template <int kSide>
void ExpectSquaresToBeTheirWindows(const WindowAxis& h, const WindowAxis& w) {
  PoolPlane p;
  p.h = h;
  p.w = w;
  const PoolWindows<uint32_t> windows(p);
  std::vector<float> plane(p.in_size());
  std::iota(plane.begin(), plane.end(), 0.0f);
  for (int64_t n = 0; n < p.out_size(); ++n) {
    const auto at = windows.Split(n);
    std::vector<float> expected, visited;
    windows.ForEachElement(plane.data(), at.i, at.j,
                           [&](float v, int32_t) { expected.push_back(v); });
    int taken = 0;
    windows.ForEachOfSquare<kSide>(plane.data(), at.i, at.j, -1.0f,
                                   [&](float v, int32_t place) {
                                     ++taken;
                                     if (v < 0) return;
                                     EXPECT_EQ(v, static_cast<float>(place));
                                     visited.push_back(v);
                                   });
    EXPECT_EQ(taken, kSide * kSide);
    EXPECT_EQ(visited, expected);
  }
}

TEST(PoolWindowsTest, SquaresAreWindowsWithWhatIsOutside) {
  ExpectSquaresToBeTheirWindows<2>(Axis(2, 2, 0, 1, 9), Axis(2, 1, 1, 1, 5));
  ExpectSquaresToBeTheirWindows<2>(Axis(2, 3, 1, 1, 1), Axis(2, 2, 1, 1, 4));
  ExpectSquaresToBeTheirWindows<3>(Axis(3, 2, 1, 1, 8), Axis(3, 1, 1, 1, 7));
  ExpectSquaresToBeTheirWindows<3>(Axis(3, 3, 1, 1, 2), Axis(3, 2, 0, 1, 9));
}

template <typename Index>
void ExpectCoversByHand(const WindowAxis& a) {
  using Place = typename PoolAxis<Index>::Place;
  const Covering<Index> cover(a);
  for (int64_t place = 0; place < a.size; ++place) {
    std::vector<int64_t> expected, few, many;
    for (int64_t window = 0; window < a.out; ++window) {
      const int64_t tap = place - a.Start(window);
      if (tap >= 0 && tap < a.kernel) expected.push_back(window);
    }
    const auto at = static_cast<Place>(place);
    for (int k = static_cast<int>(MostCovering(a)) - 1; k >= 0; --k) {
      const auto of = cover.Before(cover.Last(at), k);
      if (!cover.Has(of)) continue;
      few.push_back(of.window);
      EXPECT_EQ(of.tap, place - a.Start(of.window));
    }
    for (Place i = cover.First(at); i < cover.End(at); ++i) many.push_back(i);
    EXPECT_EQ(few, expected) << place;
    EXPECT_EQ(many, expected) << place;
  }
}

TEST(CoveringTest, FindsTheWindowsOfEveryPlace) {
  for (WindowAxis a : SomeAxes()) {
    a.dilation = 1;
    for (int64_t out : {a.out, int64_t{1}, a.out + 1}) {  // ceil_mode has more
      a.out = out;
      ExpectCoversByHand<uint32_t>(a);
      ExpectCoversByHand<int64_t>(a);
    }
  }
  ExpectCoversByHand<uint32_t>(Axis(7, 1, 0, 1, 7));
  ExpectCoversByHand<uint32_t>(Axis(2, 5, 1, 1, 23));
}

TEST(PoolAxisTest, OneTapHasNoDilation) {
  const WindowAxis a = Axis(1, 1, 0, int64_t{1} << 62, 5);
  EXPECT_EQ(PoolAxis<int64_t>(a).dilation, 1);
  EXPECT_EQ(PlacesOf(PoolAxis<int64_t>(a), 3), std::vector<int64_t>{3});
}

TEST(FitsPoolAxisTest, WhatClientsSendMayNotFit) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  EXPECT_FALSE(FitsPoolAxis(Axis(kHuge, 1, kHuge, 1, 5)));
  EXPECT_FALSE(FitsPoolAxis(Axis(2, kHuge, 0, 1, 5)));
  EXPECT_FALSE(FitsPoolAxis(Axis(1 << 15, 1, 1 << 27, 1 << 14, 5)));
  EXPECT_FALSE(FitsPoolAxis(Axis(2, 1 << 27, 0, 1, 1 << 28)));
  for (int64_t side : {1, 2, 3, 4}) {
    PoolPlane square;
    square.h = square.w = Axis(side, 1, 0, 1, 5);
    int found = -1;
    const auto note_side = [&](auto constant) {
      found = constant();
      return absl::OkStatus();
    };
    EXPECT_TRUE(DispatchSide<uint32_t>(square, note_side).ok());
    EXPECT_EQ(found, side == 2 || side == 3 ? side : 0);
    square.w.kernel = 5;
    EXPECT_TRUE(DispatchSide<uint32_t>(square, note_side).ok());
    EXPECT_EQ(found, 0);
  }
  PoolPlane p;
  bool narrow = false;
  const auto note = [&](auto tag) {
    narrow = std::is_same_v<typename decltype(tag)::type, uint32_t>;
    return absl::OkStatus();
  };
  EXPECT_TRUE(DispatchWindows(p, 1000, note).ok());
  EXPECT_TRUE(narrow);
  EXPECT_TRUE(DispatchWindows(p, kHuge, note).ok());
  EXPECT_FALSE(narrow);
  p.h.out = p.w.out = 1 << 16;
  EXPECT_TRUE(DispatchWindows(p, 1000, note).ok());
  EXPECT_FALSE(narrow);
}

}  // namespace
}  // namespace holdfast::cuda
