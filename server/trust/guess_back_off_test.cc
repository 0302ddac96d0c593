// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/guess_back_off.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/steady_time.h"

namespace holdfast {
namespace {

const SteadyTime kStart = SteadyTime() + absl::Seconds(1000000);

TEST(GuessBackOffTest, DoublesAfterAFewMistakes) {
  GuessBackOff guesses;
  for (int i = 1; i < GuessBackOff::kFreeMistakes; ++i) {
    guesses.Mistake("a", kStart);
    EXPECT_EQ(guesses.Wait("a", kStart), absl::ZeroDuration()) << i;
  }
  SteadyTime now = kStart;
  for (int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    guesses.Mistake("a", now);
    EXPECT_EQ(guesses.Wait("a", now), absl::Seconds(seconds));
    EXPECT_EQ(guesses.Wait("b", now), absl::ZeroDuration());
    now += absl::Seconds(seconds);
    EXPECT_EQ(guesses.Wait("a", now), absl::ZeroDuration());
  }
}

TEST(GuessBackOffTest, ForgetsAndSurvivesClocks) {
  GuessBackOff guesses;
  for (int i = 0; i < 30; ++i) guesses.Mistake("a", kStart);
  // The clock is set back by a day.
  EXPECT_EQ(guesses.Wait("a", kStart - absl::Hours(24)), absl::Minutes(1));
  const SteadyTime later = kStart + GuessBackOff::kForget + absl::Seconds(1);
  guesses.Mistake("a", later);
  EXPECT_EQ(guesses.Wait("a", later), absl::ZeroDuration());
}

TEST(GuessBackOffTest, RemembersABoundedNumberOfOrigins) {
  GuessBackOff guesses;
  for (size_t i = 0; i < GuessBackOff::kMaxOrigins + 100; ++i) {
    guesses.Mistake(absl::StrCat(i), kStart + absl::Milliseconds(i));
  }
  EXPECT_LE(guesses.origins(), GuessBackOff::kMaxOrigins);
}

}  // namespace
}  // namespace holdfast
