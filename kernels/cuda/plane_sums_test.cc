// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums per channel as the threads of a group make them, one rank after the
// other, against sums in double; and the elements that applying reaches.
#include "kernels/cuda/plane_sums.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/channel_terms.h"
#include "kernels/cuda/norm_sums.h"

namespace holdfast::cuda {
namespace {

// `offset` elements after an address that any pack fits.
template <typename S>
class Elements {
 public:
  Elements(int64_t n, int offset)
      : blocks_((n + offset) * sizeof(S) / 16 + 1),
        data_(reinterpret_cast<S*>(blocks_.data()) + offset),
        n_(n) {}
  S* data() { return data_; }
  int64_t size() const { return n_; }
  void FillRandom(double mean, double deviation) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal(mean, deviation);
    for (int64_t i = 0; i < n_; ++i) data_[i] = Convert<S>(normal(random));
  }

 private:
  struct alignas(16) Block {
    char bytes[16];
  };
  std::vector<Block> blocks_;
  S* data_;
  int64_t n_;
};

template <typename S>
Moments MomentsByHand(const PlaneLayout& l, const S* x, int64_t channel) {
  Moments m = {static_cast<double>(l.count()), 0, 0};
  for (int pass = 0; pass < 2; ++pass) {
    double sum = 0;
    for (int64_t n = 0; n < l.batch; ++n) {
      for (int64_t i = 0; i < l.inner; ++i) {
        const double v =
            Convert<double>(x[(n * l.channels + channel) * l.inner + i]);
        sum += pass == 0 ? v : (v - m.mean) * (v - m.mean);
      }
    }
    (pass == 0 ? m.mean : m.squares) = pass == 0 ? sum / m.count : sum;
  }
  return m;
}

void ExpectNear(const Moments& got, const Moments& expected, double tolerance) {
  EXPECT_EQ(got.count, expected.count);
  const double deviation = std::sqrt(expected.squares / expected.count);
  EXPECT_NEAR(got.mean, expected.mean, tolerance * (deviation + 1e-30));
  EXPECT_NEAR(got.squares, expected.squares, tolerance * expected.squares);
}

// A channel's moments by all segments and ranks of a group.
template <typename S, int kWidth, typename Index>
Moments MomentsOfGroups(const PlaneLayout& l, const S* x, int64_t channel,
                        const PlanePlan& plan, int group) {
  using Body = MomentsOfChannel<S>;
  const PlaneWalk<Body, kWidth, Index> walk = {
      {{x}},
      static_cast<Index>(l.channels * l.inner),
      Division<Index>(l.inner / kWidth)};
  Moments sum = Body::Init();
  for (int64_t s = 0; s < plan.segments; ++s) {
    const int64_t begin = s * plan.length;
    const int64_t end = std::min(begin + plan.length, plan.count);
    for (int rank = 0; rank < group; ++rank) {
      sum = Body::Combine(
          sum, walk.Run(channel, static_cast<Index>(channel * l.inner),
                        static_cast<Index>(begin), static_cast<Index>(end),
                        rank, group));
    }
  }
  return sum;
}

template <typename S>
void CheckGroups(const PlaneLayout& l, double tolerance) {
  constexpr int kFull = kPackWidth<S>;
  Elements<S> x(l.numel(), 0);
  x.FillRandom(1, 1);
  const int64_t channel = l.channels - 1;
  const Moments expected = MomentsByHand(l, x.data(), channel);
  for (int group : {1, kWarp, kBlockThreads}) {
    PlanePlan plan = PlanPlanes(l, false, 1);
    ExpectNear(
        MomentsOfGroups<S, 1, uint32_t>(l, x.data(), channel, plan, group),
        expected, tolerance);
    ExpectNear(
        MomentsOfGroups<S, 1, int64_t>(l, x.data(), channel, plan, group),
        expected, tolerance);
    if (l.inner % kFull != 0) continue;
    plan = PlanPlanes(l, false, kFull);
    ExpectNear(
        MomentsOfGroups<S, kFull, uint32_t>(l, x.data(), channel, plan, group),
        expected, tolerance);
  }
}

TEST(PlaneWalkTest, RanksTogetherTakeEachElementOnce) {
  for (int64_t batch : {1, 3, 17}) {
    for (int64_t channels : {1, 5}) {
      for (int64_t inner : {1, 3, 17, 48, 1023, 4096, 4097}) {
        SCOPED_TRACE(testing::Message()
                     << batch << " " << channels << " " << inner);
        const PlaneLayout l = {batch, channels, inner};
        CheckGroups<float>(l, 1e-6);
        CheckGroups<double>(l, 1e-13);
      }
    }
  }
  CheckGroups<BFloat16>({3, 2, 4096}, 1e-6);
  CheckGroups<Float16>({3, 2, 1001}, 1e-6);
}

TEST(PlaneWalkTest, SegmentsTakeEachElementOnce) {
  const PlaneLayout l = {40, 2, 4096};
  for (int width : {1, 4}) {
    const PlanePlan plan = PlanPlanes(l, false, width);
    EXPECT_GT(plan.segments, 1);
  }
  CheckGroups<float>(l, 1e-6);
}

TEST(PlaneWalkTest, MeansMuchLargerThanDeviationsLoseNothing) {
  const PlaneLayout l = {8, 2, 4096};
  Elements<float> x(l.numel(), 0);
  x.FillRandom(1e4, 1);
  const PlanePlan plan = PlanPlanes(l, false, 4);
  const Moments expected = MomentsByHand(l, x.data(), 1);
  for (int group : {1, kBlockThreads}) {
    ExpectNear(MomentsOfGroups<float, 4, uint32_t>(l, x.data(), 1, plan, group),
               expected, 1e-6);
  }
}

TEST(PlaneWalkTest, AnOutlierAtTheStartHarmsNoOther) {
  const PlaneLayout l = {8, 1, 4096};
  Elements<float> x(l.numel(), 0);
  x.FillRandom(0, 1);
  x.data()[0] = 1e4f;
  const Moments expected = MomentsByHand(l, x.data(), 0);
  const Moments got = MomentsOfGroups<float, 4, uint32_t>(
      l, x.data(), 0, PlanPlanes(l, false, 4), 1);
  ExpectNear(got, expected, 1e-6);
  // What is left when the outlier's own part is taken away.
  const double rest = expected.squares - 1e8;
  EXPECT_NEAR(got.squares - 1e8, rest, 0.02 * std::fabs(rest));
}

TEST(PlaneWalkTest, NothingHasNoMoments) {
  for (const PlaneLayout& l : {PlaneLayout{0, 2, 3}, PlaneLayout{2, 2, 0}}) {
    const PlanePlan plan = PlanPlanes(l, false, 1);
    const Moments m =
        MomentsOfGroups<float, 1, uint32_t>(l, nullptr, 0, plan, kWarp);
    EXPECT_EQ(m.count, 0);
    EXPECT_EQ(m.squares, 0);
  }
}

template <typename S, int kWidth>
void CheckColumns(const PlaneLayout& l, int offset, double tolerance) {
  using Body = MomentsOfChannel<S>;
  Elements<S> x(l.numel(), offset);
  x.FillRandom(2, 1);
  const PlanePlan plan = PlanPlanes(l, true, kWidth);
  const ColumnWalk<Body, kWidth> walk = {{{x.data()}}, l.channels};
  for (int64_t c = 0; c < l.channels; c += kWidth) {
    Moments sums[kWidth];
    for (Moments& sum : sums) sum = Body::Init();
    for (int64_t s = 0; s < plan.segments; ++s) {
      const int64_t begin = s * plan.length;
      Moments part[kWidth];
      walk.Run(c, begin, std::min(begin + plan.length, plan.count), part);
      for (int k = 0; k < kWidth; ++k)
        sums[k] = Body::Combine(sums[k], part[k]);
    }
    for (int k = 0; k < kWidth; ++k) {
      ExpectNear(sums[k], MomentsByHand(l, x.data(), c + k), tolerance);
    }
  }
}

TEST(ColumnWalkTest, SegmentsTakeEachRowOfEachChannelOnce) {
  for (int64_t batch : {1, 3, 8, 17, 1023, 4097}) {
    CheckColumns<float, 4>({batch, 32, 1}, 0, 1e-6);
    CheckColumns<float, 1>({batch, 33, 1}, 1, 1e-6);
    CheckColumns<double, 2>({batch, 34, 1}, 0, 1e-13);
    CheckColumns<BFloat16, 4>({batch, 36, 1}, 0, 1e-6);
  }
}

TEST(PlanPlanesTest, SegmentsCoverAChannel) {
  for (int64_t batch : {int64_t{0}, int64_t{1}, int64_t{17}, int64_t{65536}}) {
    for (int64_t channels : {1, 33, 4096}) {
      for (int64_t inner : {int64_t{0}, int64_t{1}, int64_t{49}, int64_t{12544},
                            int64_t{1} << 32}) {
        for (int width : {1, 4}) {
          for (bool columns : {false, true}) {
            const PlaneLayout l = {batch, channels, columns ? 1 : inner};
            const PlanePlan plan = PlanPlanes(l, columns, width);
            ASSERT_GE(plan.segments, 1);
            ASSERT_LE(plan.segments, 1024);
            ASSERT_GE(plan.segments * plan.length, plan.count);
            ASSERT_EQ(kBlockThreads % plan.group, 0);
          }
        }
      }
    }
  }
}

TEST(PacksFitTest, AddressesAndRowsDecide) {
  alignas(16) float x[8];
  EXPECT_TRUE(PacksFit<float>(4, 12, {x, nullptr, x + 4}));
  EXPECT_FALSE(PacksFit<float>(4, 12, {x, x + 1}));
  EXPECT_FALSE(PacksFit<float>(4, 49, {x}));
  EXPECT_TRUE(PacksFit<float>(1, 49, {x + 1}));
  EXPECT_TRUE(PacksFit<BFloat16>(4, 12, {x + 2}));   // 8 bytes
  EXPECT_FALSE(PacksFit<BFloat16>(8, 16, {x + 2}));  // 16
}

float PlaceOf(int64_t i) { return static_cast<float>(i % 1013); }

// out = g a + (x - mean) b + k with channel c's numbers c + 1, c + 2, ...
float AppliedByHand(int64_t c, int64_t i) {
  const float t = static_cast<float>(c);
  return PlaceOf(i) * (t + 2) + (PlaceOf(i) - (t + 1)) * (t + 3) + (t + 4);
}

template <typename Kernel>
void CheckApplied(const PlaneLayout& l, int offset, int64_t items,
                  Kernel kernel) {
  Elements<float> x(l.numel(), offset), out(l.numel(), offset);
  Elements<float> terms(4 * l.channels, 0);
  for (int64_t i = 0; i < l.numel(); ++i) x.data()[i] = PlaceOf(i);
  for (int64_t c = 0; c < l.channels; ++c) {
    const float t = static_cast<float>(c);
    StoreTerms<float>(terms.data(), c, {t + 1, t + 2, t + 3, t + 4});
  }
  const TermsCall<TermsOf::kBoth, float> call = {terms.data(), x.data(),
                                                 x.data(), out.data()};
  for (int64_t item = 0; item < items; ++item) kernel(call, item);
  for (int64_t i = 0; i < l.numel(); ++i) {
    ASSERT_EQ(out.data()[i], AppliedByHand(i / l.inner % l.channels, i)) << i;
  }
}

template <int kWidth, typename Index>
void CheckPlanesApplied(const PlaneLayout& l, int offset) {
  CheckApplied(l, offset, l.numel() / kWidth, [&](auto call, int64_t item) {
    ApplyToPlanes<TermsOf::kBoth, float, kWidth, Index>{
        call, Division<Index>(l.inner / kWidth),
        Division<Index>(l.channels)}(item);
  });
}

template <int kWidth, typename Index>
void CheckColumnsApplied(const PlaneLayout& l, int offset) {
  const int64_t blocks = (l.batch + kTermRows - 1) / kTermRows;
  CheckApplied(
      l, offset, blocks * (l.channels / kWidth), [&](auto call, int64_t item) {
        ApplyToColumns<TermsOf::kBoth, float, kWidth, Index>{
            call, static_cast<Index>(l.batch), static_cast<Index>(l.channels),
            Division<Index>(l.channels / kWidth)}(item);
      });
}

TEST(ApplyTermsTest, EachElementHasItsChannelsTerms) {
  for (int64_t batch : {1, 3, 17}) {
    for (int64_t channels : {1, 5}) {
      CheckPlanesApplied<4, uint32_t>({batch, channels, 12}, 0);
      CheckPlanesApplied<4, int64_t>({batch, channels, 12}, 0);
      for (int64_t inner : {1, 3, 17, 49}) {
        CheckPlanesApplied<1, uint32_t>({batch, channels, inner}, 1);
      }
    }
    CheckColumnsApplied<4, uint32_t>({batch, 36, 1}, 0);
    CheckColumnsApplied<1, uint32_t>({batch, 33, 1}, 1);
    CheckColumnsApplied<1, int64_t>({batch, 33, 1}, 1);
  }
}

}  // namespace
}  // namespace holdfast::cuda
