// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What sessions of different users have of each other: nothing, whatever
// tokens they know.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/exec/shared_storages.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using V = std::vector<float>;

class UserSharingTest : public SessionTest {
 protected:
  void OpenAs(const std::string& user) {
    Session::Options options;
    options.user = user;
    options.shared = shared_;
    options.find_session = [this](const std::string&) { return first_; };
    Open(options);
    sequence_ = 0;
  }
  // The token of a tensor of alice's; her session stays.
  std::string ShareAsAlice() {
    OpenAs("alice");
    Put(1, {1, 2, 3});
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(1);
    read->set_share(true);
    read->set_hold(true);
    Deliver();
    first_ = session_;
    return wire_.events.back().read().data();
  }
  v1::ReadResult OpenToken(const std::string& token) {
    v1::Open* open = Add()->mutable_open();
    open->set_handle(1);
    open->set_token(token);
    open->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    open->mutable_spec()->add_shape(3);
    return Read(1);
  }

  const std::shared_ptr<SharedStorages> shared_ =
      std::make_shared<SharedStorages>();
  std::shared_ptr<Session> first_;
};

TEST_F(UserSharingTest, ATokenIsGoodForTheMakersUser) {
  const std::string token = ShareAsAlice();
  OpenAs("alice");
  EXPECT_FALSE(OpenToken(token).has_status());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(UserSharingTest, AnotherUsersTokenIsNone) {
  const std::string token = ShareAsAlice();
  OpenAs("bob");
  EXPECT_THAT(OpenToken(token).status().message(),
              HasSubstr("no shared tensor has that token"));
}

TEST_F(UserSharingTest, AnotherUsersSessionIsNoParent) {
  ShareAsAlice();
  const auto inherit = [&] {
    v1::Put* put = Add()->mutable_put();
    put->set_handle(1);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(3);
    put->mutable_inherited()->set_session_token("hers");
    put->mutable_inherited()->set_handle(1);
    put->mutable_inherited()->set_op_sequence(1);
    return Read(1);
  };
  OpenAs("bob");
  EXPECT_THAT(inherit().status().message(), HasSubstr("It has ended"));
  OpenAs("alice");
  EXPECT_FALSE(inherit().has_status());
}

}  // namespace
}  // namespace holdfast
