// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every order of events that two clients, their connections and a clock can
// make, up to a depth: what is kept ends only where its owner said so, or where
// its time was truly over.
#include "server/session/session_life.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using State = SessionLife::State;
using Stay = SessionLife::Stay;

enum Verb {
  kAttach,
  kAttachIfAway,
  kResume,
  kArrive,
  kCut,
  kLeaveForGood,
  kLeaveForGrace,
  kGoodbye,
  kExpel,
  kNumVerbs
};
constexpr const char* kVerbNames[] = {
    "attach",         "attach if away",  "resume",  "arrive", "cut",
    "leave for good", "leave for grace", "goodbye", "expel"};
constexpr int kClients = 2;
constexpr int kLeft = kNumVerbs * kClients;  // what was sent is done
constexpr int kFirstWait = kLeft + 1;
// Shorter than a promise, longer, as long as the one grace and as the other.
constexpr int kWaits[] = {1, 5, 10, 40};
constexpr int kNumEvents = kFirstWait + 4;
constexpr int kGraces[kClients] = {10, 40};
constexpr int kForever = 1 << 30;

SteadyTime At(int seconds) { return SteadyTime() + absl::Seconds(seconds); }

// What must be so, told without the class's own notions: who holds the token,
// who is connected, and the moments that grace counts from.
class World {
 public:
  World() : life_(absl::Seconds(kGraces[0]), Now()) {
    life_.set_token(token_[0]);
    stays_until_ = 30;  // for a first connection
  }

  // False: nothing can have come of it.
  bool Happen(int event) {
    const bool done =
        event >= kFirstWait ? Wait(kWaits[event - kFirstWait])
        : event == kLeft
            ? Left()
            : Act(static_cast<Verb>(event / kClients), event % kClients);
    Compare();
    return done;
  }

 private:
  SteadyTime Now() const { return At(now_); }
  bool Holds(int client) const { return holder_ == client && !expelled_; }

  // Whoever was connected is not any more.
  void Disconnected() {
    if (there_.has_value() && !leaving_) {
      stays_until_ = now_ + kGraces[*there_];
    }
    there_.reset();
    leaving_ = false;
  }
  void Await(int client) {
    Disconnected();
    awaited_until_ = now_ + 5;
    stays_until_ = std::max(stays_until_, now_ + kGraces[client]);
  }

  bool Attach(int client, bool only_if_away) {
    const bool used = there_.has_value() || now_ < awaited_until_;
    const std::string fresh = absl::StrCat("token", ++tokens_);
    const bool may = !ended_ && !(only_if_away && used);
    EXPECT_EQ(life_.Attach(fresh, absl::Seconds(kGraces[client]), only_if_away,
                           Now()),
              may);
    if (!may) return false;
    token_[client] = fresh;
    holder_ = client;
    expelled_ = false;
    Await(client);
    return true;
  }

  bool Leave(int client, Stay stay) {
    const std::string fresh = absl::StrCat("token", ++tokens_);
    const bool may = !ended_ && Holds(client);
    EXPECT_EQ(life_.Leave(token_[client], fresh, stay, Now()), may);
    if (!may) return false;
    EXPECT_TRUE(life_.WasLeftBy(token_[client]));
    stays_until_ = stay == Stay::kUntilEnded
                       ? kForever
                       : std::max(stays_until_, now_ + kGraces[client]);
    if (there_.has_value() && stay == Stay::kGrace) {
      stays_until_ = now_ + kGraces[client];
    }
    leaving_ = there_.has_value();
    leaver_ = client;
    holder_.reset();
    awaited_until_ = 0;
    return true;
  }

  bool Act(Verb verb, int client) {
    const std::string& token = token_[client];
    const bool may = !ended_ && Holds(client);
    switch (verb) {
      case kAttach:
        return Attach(client, false);
      case kAttachIfAway:
        return Attach(client, true);
      case kResume:
        EXPECT_EQ(life_.Resume(token, Now()), may);
        if (may) Await(client);
        return may;
      case kArrive:
        EXPECT_EQ(life_.Arrive(token, Now()), may);
        if (!may) return false;
        there_ = client;
        awaited_until_ = 0;
        stays_until_ = now_ + kGraces[client];
        return true;
      case kCut:
        if (there_ != client || leaving_) {
          // Of a connection that is the session's, which this one is not; or
          // whose client has left, which changes nothing.
          if (leaving_) life_.Cut(Now());
          return false;
        }
        life_.Cut(Now());
        Disconnected();
        return true;
      case kLeaveForGood:
        return Leave(client, Stay::kUntilEnded);
      case kLeaveForGrace:
        return Leave(client, Stay::kGrace);
      case kGoodbye:  // the registry finds the session by the token
        if (ended_ || holder_ != client) return false;
        EXPECT_TRUE(life_.End());
        EXPECT_FALSE(life_.End());
        ended_ = true;
        return true;
      case kExpel:
        if (there_ != client) return false;
        life_.Expel(Now());
        Disconnected();
        expelled_ = true;
        return true;
      case kNumVerbs:
        break;
    }
    return false;
  }

  bool Left() {
    life_.Left(Now());
    if (!leaving_) return false;
    if (stays_until_ != kForever) {
      stays_until_ = std::max(stays_until_, now_ + kGraces[leaver_]);
    }
    there_.reset();
    leaving_ = false;
    return true;
  }

  bool Wait(int seconds) {
    now_ += seconds;
    const bool over = !ended_ && !there_.has_value() &&
                      now_ >= awaited_until_ && now_ >= stays_until_;
    EXPECT_EQ(life_.Tick(Now()), over);
    ended_ = ended_ || over;
    return true;
  }

  void Compare() {
    EXPECT_EQ(life_.ended(), ended_);
    if (ended_) return;
    EXPECT_EQ(life_.connected(), there_.has_value());
    EXPECT_EQ(life_.leaving(), leaving_);
    EXPECT_EQ(life_.in_use(Now()), there_.has_value() || now_ < awaited_until_);
    if (!there_.has_value()) {
      EXPECT_EQ(life_.expires(), stays_until_ == kForever ? SteadyTime::Future()
                                                          : At(stays_until_));
    }
  }

  int now_ = 0;
  int tokens_ = 0;
  std::string token_[kClients] = {"token0", "none"};
  std::optional<int> holder_ = 0;
  std::optional<int> there_;  // whose connection the session has
  bool leaving_ = false;
  int leaver_ = 0;
  bool expelled_ = false;
  bool ended_ = false;
  int awaited_until_ = 5;
  int stays_until_ = 0;
  SessionLife life_;
};

std::string Describe(const std::vector<int>& events) {
  std::string text;
  for (int event : events) {
    if (event >= kFirstWait) {
      absl::StrAppend(&text, kWaits[event - kFirstWait], " s; ");
    } else if (event == kLeft) {
      absl::StrAppend(&text, "left; ");
    } else {
      absl::StrAppend(&text, event % kClients == 0 ? "A " : "B ",
                      kVerbNames[event / kClients], "; ");
    }
  }
  return text;
}

// Tries each event after `path`, and goes on where it changed something.
// Returns how many orders there were.
int64_t Explore(std::vector<int>* path, int depth) {
  int64_t count = 0;
  for (int event = 0; event < kNumEvents; ++event) {
    World world;
    for (int former : *path) world.Happen(former);
    const bool changed = world.Happen(event);
    ++count;
    path->push_back(event);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "after " << Describe(*path);
      return count;
    }
    if (changed && depth > 1) count += Explore(path, depth - 1);
    path->pop_back();
    if (testing::Test::HasFailure()) return count;
  }
  return count;
}

TEST(SessionLifeTest, EveryOrderOfTwoClientsAndAClock) {
  std::vector<int> path;
  const int64_t orders = Explore(&path, 6);
  EXPECT_GT(orders, 1000000);
  RecordProperty("orders", std::to_string(orders));
}

TEST(SessionLifeTest, WhatCameFromTheDiskWaits) {
  const SteadyTime start;
  SessionLife life(absl::ZeroDuration(), start);
  life.Restore();
  EXPECT_FALSE(life.Tick(start + absl::Hours(1000)));
  ASSERT_TRUE(life.Attach("a", absl::Seconds(1), true, start));
  EXPECT_FALSE(life.Tick(start + absl::Hours(1000)));
  ASSERT_TRUE(life.Arrive("a", start));
  life.Cut(start);
  EXPECT_TRUE(life.Tick(start + absl::Seconds(1)));
}

}  // namespace
}  // namespace holdfast
