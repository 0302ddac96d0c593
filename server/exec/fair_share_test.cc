// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Shares of a device by simulation: clients that always have work, that pause
// between their ops, that come late.
#include "server/exec/fair_share.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

constexpr double kSlice = 0.002, kCredit = 0.05;

struct Client {
  std::shared_ptr<UserShare> user = std::make_shared<UserShare>();
  ShareAccount account;
  double pause = 0;     // between its ops
  double op = kSlice;   // device time of one
  double ready_at = 0;  // when it has work again
  double used = 0;      // device time
  double max_wait = 0;  // from ready to served
};

class Device {
 public:
  void Add(Client* client) {
    share_.Enter(client->user.get(), &client->account);
    client->ready_at = now_;
    clients_.push_back(client);
  }

  void RunUntil(double end) {
    while (now_ < end) {
      Client* next = nullptr;
      double soonest = std::numeric_limits<double>::infinity();
      for (Client* c : clients_) {
        soonest = std::min(soonest, c->ready_at);
        if (c->ready_at > now_) continue;
        share_.Contend(c->user.get(), &c->account);
        if (next == nullptr ||
            FairShare::Precedes(*c->user, c->account, *next->user,
                                next->account)) {
          next = c;
        }
      }
      if (next == nullptr) {
        now_ = soonest;
        continue;
      }
      share_.Begin(next->user.get(), next->account);
      next->max_wait = std::max(next->max_wait, now_ - next->ready_at);
      now_ += next->op;
      next->used += next->op;
      FairShare::Charge(next->user.get(), &next->account, next->op);
      next->ready_at = now_ + next->pause;
    }
  }

 private:
  FairShare share_{kCredit};
  double now_ = 0;
  std::vector<Client*> clients_;
};

TEST(FairShareTest, EqualClientsGetEqualTime) {
  Device device;
  Client clients[8];
  for (Client& c : clients) device.Add(&c);
  device.RunUntil(8);
  for (const Client& c : clients) EXPECT_NEAR(c.used, 1, 0.01);
}

TEST(FairShareTest, WeightsHold) {
  Device device;
  Client clients[3];
  for (int i = 0; i < 3; ++i) {
    clients[i].user->account.set_weight(1 << i);
    device.Add(&clients[i]);
  }
  device.RunUntil(7);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(clients[i].used, 1 << i, 0.02);
}

TEST(FairShareTest, APauseBetweenOpsCostsNoShare) {
  Device device;
  Client steady, pausing;
  pausing.op = 0.01;
  pausing.pause = 0.004;  // it could use 71 % of the device alone
  device.Add(&steady);
  device.Add(&pausing);
  device.RunUntil(10);
  EXPECT_NEAR(pausing.used, 5, 0.1);
}

TEST(FairShareTest, IdleTimeIsNotSavedUpBeyondTheCredit) {
  Device device;
  Client steady, late;
  device.Add(&steady);
  device.Add(&late);
  late.ready_at = 100;
  device.RunUntil(100);
  const double before = steady.used;
  device.RunUntil(101);
  EXPECT_NEAR(steady.used - before, 0.5, kCredit);
}

TEST(FairShareTest, AShortOpWaitsForNoMoreThanASlice) {
  Device device;
  Client trainers[4], interactive;
  for (Client& c : trainers) device.Add(&c);
  interactive.op = 0.0001;
  interactive.pause = 0.05;
  device.Add(&interactive);
  device.RunUntil(1);
  interactive.max_wait = 0;  // past the level start
  device.RunUntil(20);
  EXPECT_LE(interactive.max_wait, kSlice * 1.01);
}

TEST(FairShareTest, ManySessionsDoNotMakeAUserRicher) {
  Device device;
  Client many[5], one;
  for (Client& c : many) {
    c.user = many[0].user;
    device.Add(&c);
  }
  device.Add(&one);
  device.RunUntil(10);
  EXPECT_NEAR(one.used, 5, 0.02);
  for (const Client& c : many) EXPECT_NEAR(c.used, 1, 0.02);
}

TEST(FairShareTest, AShortOpGoesFirstAmongSessionsOfItsUser) {
  Device device;
  Client trainers[4], interactive;
  interactive.user = trainers[0].user;
  for (Client& c : trainers) {
    c.user = trainers[0].user;
    device.Add(&c);
  }
  interactive.op = 0.0001;
  interactive.pause = 0.05;
  device.Add(&interactive);
  device.RunUntil(1);
  interactive.max_wait = 0;
  device.RunUntil(20);
  EXPECT_LE(interactive.max_wait, kSlice * 1.01);
}

// An asynchronous device: the worker's time and the device's count once.
TEST(FairShareTest, TheLongerOfTwoTimesCounts) {
  UserShare user;
  ShareAccount session;
  FairShare::Charge(&user, &session, 0.002);
  FairShare::Settle(&user, &session, 0.005);
  EXPECT_NEAR(session.virtual_time(), 0.005, 1e-9);
  FairShare::Settle(&user, &session, 0.001);
  EXPECT_NEAR(session.virtual_time(), 0.006, 1e-9);
  // The worker was busier than the device: that is settled, too.
  FairShare::Charge(&user, &session, 0.004);
  FairShare::Settle(&user, &session, 0.001);
  FairShare::Settle(&user, &session, 0.002);
  EXPECT_NEAR(session.virtual_time(), 0.010, 1e-9);
  EXPECT_NEAR(user.account.virtual_time(), 0.010, 1e-9);
  // But is no credit for ever.
  for (int i = 0; i < 100; ++i) {
    FairShare::Charge(&user, &session, 1);
    FairShare::Settle(&user, &session, 0.5);
  }
  const double before = session.virtual_time();
  FairShare::Settle(&user, &session, 0.5);
  EXPECT_NEAR(session.virtual_time() - before, 0.5, 0.021);
}

}  // namespace
}  // namespace holdfast
