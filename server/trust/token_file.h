// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TokenFile: who may come over the network. A line per token:
//
//   ID USER ROLE SHA256 CREATED EXPIRES
//
// ID is 8 hexadecimal digits, ROLE user or admin, SHA256 the token's hash in
// hexadecimal, CREATED and EXPIRES seconds since 1970 (EXPIRES 0: never). Lines
// that begin with # are comments. `holdfast token` edits the file. A token is
// hf_ID_SECRET with 256 random bits in SECRET, so that one fast hash is enough.
// Thread-safety: none; values.
#ifndef HOLDFAST_SERVER_TRUST_TOKEN_FILE_H_
#define HOLDFAST_SERVER_TRUST_TOKEN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/trust/user.h"

namespace holdfast {

struct Token {
  std::string id;
  User user;
  std::string sha256;  // 32 bytes
  absl::Time expires = absl::InfiniteFuture();
};

class TokenFile {
 public:
  // Checks that nobody but the daemon's user and root can read or write the
  // file. An error names file and line.
  static absl::StatusOr<TokenFile> Read(const std::string& path);
  static absl::StatusOr<TokenFile> Parse(absl::string_view text,
                                         const std::string& path);

  // The entry of a token that a client showed, expired or not; null: there is
  // none. Takes as long for any token of the same length.
  const Token* Find(absl::string_view token) const;
  const Token* FindById(absl::string_view id) const;
  bool HasUser(absl::string_view user, absl::Time now) const;
  const std::vector<Token>& tokens() const { return tokens_; }

 private:
  std::vector<Token> tokens_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRUST_TOKEN_FILE_H_
