// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/authenticator.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/trust/local_users.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// SHA-256 of "hf_00000001_secret".
constexpr char kToken[] = "Bearer hf_00000001_secret";

class AuthenticatorTest : public testing::Test {
 protected:
  AuthenticatorTest() {
    char path[] = "/tmp/holdfast_tokens_XXXXXX";
    close(mkstemp(path));
    path_ = path;
    Write(0);
  }
  ~AuthenticatorTest() override { unlink(path_.c_str()); }

  void Write(int64_t expires, const char* user = "alice") {
    // python3 -c 'import hashlib; print(hashlib.sha256(b"hf_00000001_secret")
    // .hexdigest())'
    std::ofstream(path_)
        << "00000001 " << user
        << " user "
           "995c75adae3bd3f1495773a6be7a82295b6d7e800fc9d3ea8f92832ad5db9e2e"
           " 1 "
        << expires << "\n";
  }
  std::unique_ptr<Authenticator> Make(Authenticator::Options options = {}) {
    options.token_file = path_;
    auto made = Authenticator::Create(options);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static Authenticator::Call From(const std::string& peer,
                                  const std::string& authorization = kToken) {
    Authenticator::Call call;
    call.peer = peer;
    call.listen = "127.0.0.1:1";
    call.authorization = authorization;
    return call;
  }

  std::string path_;
};

TEST_F(AuthenticatorTest, ATokenNamesItsUser) {
  auto trust = Make();
  const auto peer = trust->Remote(From("ipv4:127.0.0.1:5"));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->user.name, "alice");
  EXPECT_EQ(peer->credential, "token 00000001");
  EXPECT_FALSE(peer->user.admin());
  trust->set_admins([](const std::string& user) { return user == "alice"; });
  EXPECT_TRUE(trust->Remote(From("ipv4:127.0.0.1:5"))->user.admin());
}

TEST_F(AuthenticatorTest, TokensNeedTlsFromElsewhere) {
  auto trust = Make();
  Authenticator::Call call = From("ipv4:10.1.2.3:5");
  const absl::Status refused = trust->Remote(call).status();
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--tls_certificate"));
  call.encrypted = true;
  EXPECT_TRUE(trust->Remote(call).ok());
  Authenticator::Options options;
  options.allow_plaintext_tokens = true;
  EXPECT_TRUE(Make(options)->Remote(From("ipv4:10.1.2.3:5")).ok());
}

TEST_F(AuthenticatorTest, GuessesAreMadeToWait) {
  auto trust = Make();
  Authenticator::Call guess = From("ipv4:10.1.2.3:5", "Bearer hf_00000001_x");
  guess.encrypted = true;
  for (int i = 0; i < GuessBackOff::kFreeMistakes; ++i) {
    EXPECT_TRUE(absl::IsUnauthenticated(trust->Remote(guess).status())) << i;
  }
  // Not even the right one is looked at now; elsewhere it is.
  guess.authorization = kToken;
  const absl::Status wait = trust->Remote(guess).status();
  EXPECT_TRUE(absl::IsUnavailable(wait)) << wait;
  EXPECT_THAT(std::string(wait.message()), HasSubstr("10.1.2.3"));
  guess.peer = "ipv4:10.1.2.4:5";
  EXPECT_TRUE(trust->Remote(guess).ok());
  EXPECT_EQ(trust->refused(), GuessBackOff::kFreeMistakes + 1u);
}

TEST_F(AuthenticatorTest, AnIpv6NetworkIsOneOrigin) {
  auto trust = Make();
  for (int i = 0; i <= GuessBackOff::kFreeMistakes; ++i) {
    Authenticator::Call guess =
        From(absl::StrCat("ipv6:%5B2001:db8:1:2:3::", i, "%5D:5"), "Bearer x");
    guess.encrypted = true;
    const absl::Status status = trust->Remote(guess).status();
    EXPECT_EQ(absl::IsUnavailable(status), i == GuessBackOff::kFreeMistakes)
        << status;
  }
}

TEST_F(AuthenticatorTest, WithATokenFileEverybodyNeedsOne) {
  auto trust = Make();
  for (const char* authorization : {"", "hf_00000001_secret", "Basic abc"}) {
    const absl::Status status =
        trust->Remote(From("ipv4:127.0.0.1:5", authorization)).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << authorization;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("holdfast token create"));
  }
}

TEST_F(AuthenticatorTest, ExpiredAndRevokedTokensAreNoticed) {
  auto trust = Make();
  EXPECT_TRUE(trust->CheckStill("alice", "token 00000001").ok());
  Write(5);
  ASSERT_TRUE(trust->Reload(/*force=*/true).ok());
  EXPECT_THAT(
      std::string(trust->CheckStill("alice", "token 00000001").message()),
      HasSubstr("expired at 1970"));
  EXPECT_THAT(
      std::string(trust->Remote(From("ipv4:127.0.0.1:5")).status().message()),
      HasSubstr("expired at 1970"));
  EXPECT_FALSE(trust->HasToken("alice"));
  // The same number for somebody else is not alice's any more.
  Write(0, "bob");
  ASSERT_TRUE(trust->Reload(/*force=*/false).ok());
  EXPECT_THAT(
      std::string(trust->CheckStill("alice", "token 00000001").message()),
      HasSubstr("revoked"));
  EXPECT_TRUE(trust->CheckStill("alice", "uid 1000").ok());
}

TEST_F(AuthenticatorTest, ABrokenFileKeepsTheFormerTokens) {
  auto trust = Make();
  std::ofstream(path_) << "nonsense\n";
  EXPECT_FALSE(trust->Reload(/*force=*/true).ok());
  EXPECT_TRUE(trust->Remote(From("ipv4:127.0.0.1:5")).ok());
}

TEST(AnonymousTest, OnlyFromThisMachineUnlessAllowed) {
  Authenticator trust;
  Authenticator::Call call;
  call.peer = "ipv4:10.1.2.3:5";
  EXPECT_TRUE(absl::IsUnauthenticated(trust.Remote(call).status()));
  Authenticator::Options options;
  options.allow_anonymous = true;
  const auto open = (*Authenticator::Create(options))->Remote(call);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->user.name, "(anonymous)");
  EXPECT_FALSE(open->user.admin());
}

// A real connection within this machine: the kernel names its owner, and
// nobody is an admin by it.
TEST(LoopbackTest, TheKernelNamesThePeer) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, raw, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, raw, &size), 0);
  const std::string listen_at =
      absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(client, raw, size), 0);
  ASSERT_EQ(getsockname(client, raw, &size), 0);
  const std::string peer =
      absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
  const auto uid = UserOfLoopback(peer, listen_at);
  if (!uid.has_value()) GTEST_SKIP() << "this kernel does not say";
  EXPECT_EQ(*uid, geteuid());
  Authenticator trust;
  Authenticator::Call call;
  call.peer = peer;
  call.listen = listen_at;
  const auto found = trust.Remote(call);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->user.name, UserName(geteuid()));
  EXPECT_FALSE(found->user.admin());
  // Closed: nobody's, and not root's.
  close(client);
  EXPECT_FALSE(UserOfLoopback(peer, listen_at).has_value());
  close(listener);
}

TEST(ParsePeerTest, KnowsLoopback) {
  EXPECT_TRUE(ParsePeer("ipv4:127.0.0.1:5")->loopback);
  EXPECT_TRUE(ParsePeer("ipv6:%5B::1%5D:5")->loopback);
  EXPECT_TRUE(ParsePeer("ipv6:%5B::ffff:127.0.0.1%5D:5")->loopback);
  EXPECT_FALSE(ParsePeer("ipv4:12.7.0.1:5")->loopback);
  EXPECT_FALSE(ParsePeer("ipv6:%5B::ffff:10.0.0.1%5D:5")->loopback);
  EXPECT_FALSE(ParsePeer("ipv6:%5B127::1%5D:5")->loopback);
  EXPECT_EQ(ParsePeer("ipv6:%5Bfe80::1%5D:77")->host, "fe80::1");
  EXPECT_EQ(ParsePeer("ipv4:10.0.0.1:77")->port, 77);
  for (const char* bad :
       {"", "unix:/x", "ipv4:1.2.3.4", "ipv4:1.2.3.4:99999"}) {
    EXPECT_FALSE(ParsePeer(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace holdfast
