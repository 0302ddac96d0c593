// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "openssl/crypto.h"
#include "openssl/sha.h"

namespace holdfast {
namespace {

constexpr off_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxUserBytes = 256;

absl::Status CannotRead(const std::string& path) {
  const int error = errno;
  // The two mistakes have two cures: no file yet, and another user's file.
  const std::string cure =
      error == EACCES
          ? absl::StrCat("chgrp ", getegid(), " ", path, " && chmod 640 ", path)
          : "holdfast token create USER makes it";
  return absl::Status(absl::ErrnoToStatusCode(error),
                      absl::StrCat("[token] the token file ", path,
                                   " must be readable by the daemon (", cure,
                                   "). Got: ", strerror(error), "."));
}

absl::Status BadLine(const std::string& path, int number,
                     absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("[token] ", path, ":", number, ": ", what,
                   ". A line must be ID USER ROLE SHA256 CREATED EXPIRES; edit "
                   "the file with "
                   "holdfast token."));
}

bool IsHex(absl::string_view text, size_t size) {
  return text.size() == size &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

absl::StatusOr<Token> ParseLine(absl::string_view line, int number,
                                const std::string& path) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 6) {
    return BadLine(path, number,
                   absl::StrCat("got ", fields.size(), " fields"));
  }
  Token token;
  token.id = std::string(fields[0]);
  token.user.name = std::string(fields[1]);
  if (!IsHex(fields[0], 8)) return BadLine(path, number, "ID is no number");
  if (fields[1].size() > kMaxUserBytes) {
    return BadLine(path, number, "USER is too long");
  }
  if (fields[2] == "admin") {
    token.user.role = Role::kAdmin;
  } else if (fields[2] != "user") {
    return BadLine(
        path, number,
        absl::StrCat("ROLE is '", fields[2], "', not user or admin"));
  }
  if (!IsHex(fields[3], 2 * SHA256_DIGEST_LENGTH)) {
    return BadLine(path, number, "SHA256 is no hash");
  }
  token.sha256 = absl::HexStringToBytes(fields[3]);
  int64_t created = 0, expires = 0;
  if (!absl::SimpleAtoi(fields[4], &created) ||
      !absl::SimpleAtoi(fields[5], &expires) || expires < 0) {
    return BadLine(path, number, "CREATED and EXPIRES are no times");
  }
  if (expires != 0) token.expires = absl::FromUnixSeconds(expires);
  return token;
}

// What the file's mode must not have. Root may give the file to the daemon's
// group, as Kubernetes does with secrets.
mode_t Forbidden(const struct stat& info) {
  const bool given =
      info.st_uid == 0 && geteuid() != 0 && info.st_gid == getegid();
  return given ? 037 : 077;
}

}  // namespace

absl::StatusOr<TokenFile> TokenFile::Read(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return CannotRead(path);
  struct stat info = {};
  std::string text;
  absl::Status status;
  if (fstat(fd, &info) != 0) {
    status = CannotRead(path);
  } else if (!S_ISREG(info.st_mode) || info.st_size > kMaxFileBytes) {
    status = absl::InvalidArgumentError(
        absl::StrCat("[token] the token file must be a file of at most ",
                     kMaxFileBytes, " bytes. Got ", path, "."));
  } else if ((info.st_mode & Forbidden(info)) != 0 ||
             (info.st_uid != geteuid() && info.st_uid != 0)) {
    status = absl::PermissionDeniedError(absl::StrFormat(
        "[token] nobody but the daemon's user (uid %d) may read or write the "
        "token file. Got %s of uid %d with mode %04o; chown it and chmod 600 "
        "it.",
        geteuid(), path, info.st_uid, info.st_mode & 07777));
  }
  while (status.ok()) {
    char piece[64 << 10];
    const ssize_t n = read(fd, piece, sizeof(piece));
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = CannotRead(path);
    } else {
      text.append(piece, n);
    }
  }
  close(fd);
  if (!status.ok()) return status;
  return Parse(text, path);
}

absl::StatusOr<TokenFile> TokenFile::Parse(absl::string_view text,
                                           const std::string& path) {
  TokenFile file;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    absl::StatusOr<Token> token = ParseLine(line, number, path);
    if (!token.ok()) return token.status();
    if (file.FindById(token->id) != nullptr) {
      return BadLine(path, number, absl::StrCat("ID ", token->id, " is twice"));
    }
    file.tokens_.push_back(*std::move(token));
  }
  return file;
}

const Token* TokenFile::Find(absl::string_view token) const {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         hash);
  const Token* found = nullptr;
  for (const Token& known : tokens_) {
    if (CRYPTO_memcmp(known.sha256.data(), hash, sizeof(hash)) == 0) {
      found = &known;
    }
  }
  return found;
}

const Token* TokenFile::FindById(absl::string_view id) const {
  for (const Token& token : tokens_) {
    if (token.id == id) return &token;
  }
  return nullptr;
}

bool TokenFile::HasUser(absl::string_view user, absl::Time now) const {
  for (const Token& token : tokens_) {
    if (token.user.name == user && token.expires > now) return true;
  }
  return false;
}

}  // namespace holdfast
