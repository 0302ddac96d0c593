// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/sha.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

std::string Hash(const std::string& token) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         hash);
  return absl::BytesToHexString(
      std::string(reinterpret_cast<char*>(hash), sizeof(hash)));
}

std::string Line(const std::string& id, const std::string& user,
                 const std::string& token, int64_t expires = 0) {
  return absl::StrCat(id, " ", user, " user ", Hash(token), " 1 ", expires,
                      "\n");
}

TEST(TokenFileTest, FindsATokenByItsHash) {
  const auto file = TokenFile::Parse(
      absl::StrCat("# comment\n\n", Line("00000001", "alice", "hf_a"),
                   "00000002 bob admin ", Hash("hf_b"), " 1 5\n"),
      "tokens");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->Find("hf_b"), nullptr);
  EXPECT_EQ(file->Find("hf_b")->user.name, "bob");
  EXPECT_TRUE(file->Find("hf_b")->user.admin());
  EXPECT_EQ(file->Find("hf_b")->expires, absl::FromUnixSeconds(5));
  EXPECT_FALSE(file->Find("hf_a")->user.admin());
  EXPECT_EQ(file->Find("hf_c"), nullptr);
  EXPECT_EQ(file->Find(""), nullptr);
  // The hash itself opens nothing.
  EXPECT_EQ(file->Find(Hash("hf_a")), nullptr);
  EXPECT_TRUE(file->HasUser("bob", absl::FromUnixSeconds(4)));
  EXPECT_FALSE(file->HasUser("bob", absl::FromUnixSeconds(6)));
}

TEST(TokenFileTest, NamesTheLineOfAMistake) {
  const std::string good = Line("00000001", "alice", "hf_a");
  for (const std::string& bad :
       {std::string("00000002 bob\n"), std::string("x bob user 00 1 0\n"),
        absl::StrCat("00000002 bob king ", Hash("b"), " 1 0\n"),
        absl::StrCat("00000002 bob user ", Hash("b").substr(2), " 1 0\n"),
        absl::StrCat("00000002 bob user ", Hash("b"), " now 0\n"),
        absl::StrCat("00000002 bob user ", Hash("b"), " 1 -1\n"), good}) {
    const auto file = TokenFile::Parse(good + bad, "tokens");
    ASSERT_FALSE(file.ok()) << bad;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("tokens:2:"))
        << bad;
  }
}

TEST(TokenFileTest, OthersMayNotReadIt) {
  char path[] = "/tmp/holdfast_tokens_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << Line("00000001", "alice", "hf_a");
  EXPECT_TRUE(TokenFile::Read(path).ok());
  for (const mode_t mode : {0640, 0604, 0620, 0602}) {
    chmod(path, mode);
    const auto file = TokenFile::Read(path);
    EXPECT_TRUE(absl::IsPermissionDenied(file.status())) << mode;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("chmod 600"));
  }
  unlink(path);
  EXPECT_THAT(std::string(TokenFile::Read(path).status().message()),
              HasSubstr("holdfast token create"));
}

}  // namespace
}  // namespace holdfast
