// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/authenticator.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"
#include "server/trust/local_users.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// Users that no credential can name: user names have no spaces in them.
constexpr char kAnonymous[] = "(anonymous)";
constexpr char kTokenKind[] = "token ";

constexpr char kHowToGetOne[] =
    "Whoever runs the daemon makes one: holdfast token create USER; give it as "
    "connect(token=...) or in HOLDFAST_TOKEN or HOLDFAST_TOKEN_FILE.";

}  // namespace

Authenticator::Authenticator(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Create(
    Options options) {
  std::unique_ptr<Authenticator> result(new Authenticator(std::move(options)));
  absl::Status status = result->Reload(/*force=*/true);
  if (!status.ok()) return status;
  return result;
}

Authenticator::FileStamp Authenticator::Stamp(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ino,
          static_cast<uint64_t>(info.st_size)};
}

absl::Status Authenticator::Reload(bool force) {
  if (options_.token_file.empty()) return absl::OkStatus();
  const FileStamp now = Stamp(options_.token_file);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!force && now == stamp_) return absl::OkStatus();
    stamp_ = now;
  }
  absl::StatusOr<TokenFile> file = TokenFile::Read(options_.token_file);
  if (!file.ok()) return file.status();
  auto tokens = std::make_shared<const TokenFile>(*std::move(file));
  spdlog::info("token file read: {} tokens", tokens->tokens().size());
  std::lock_guard<std::mutex> lock(mutex_);
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

std::shared_ptr<const TokenFile> Authenticator::tokens() {
  std::lock_guard<std::mutex> lock(mutex_);
  return tokens_;
}

void Authenticator::set_admins(
    std::function<bool(const std::string&)> is_admin) {
  std::lock_guard<std::mutex> lock(mutex_);
  is_admin_ = std::move(is_admin);
}

Peer Authenticator::Finish(Peer peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_admin_ && is_admin_(peer.user.name)) peer.user.role = Role::kAdmin;
  return peer;
}

absl::StatusOr<Peer> Authenticator::Local(int socket) {
  absl::StatusOr<Peer> peer = PeerOfSocket(socket);
  if (!peer.ok()) return peer.status();
  return Finish(*std::move(peer));
}

absl::Status Authenticator::Refuse(const std::string& origin,
                                   absl::string_view what) {
  refused_.fetch_add(1);
  back_off_.Mistake(origin, SteadyNow());
  spdlog::warn("trust: refused {}: {}", origin, std::string(what));
  return absl::UnauthenticatedError(
      absl::StrCat("[trust] ", what, ". ", kHowToGetOne));
}

absl::StatusOr<Peer> Authenticator::Remote(const Call& call) {
  // The handshake has verified the certificate.
  if (!call.certificate.empty()) {
    Peer peer;
    peer.user.name = call.certificate;
    peer.credential = "certificate";
    return Finish(std::move(peer));
  }
  if (!call.authorization.empty() && !options_.token_file.empty()) {
    return WithToken(call);
  }
  return WithoutCredential(call);
}

absl::StatusOr<Peer> Authenticator::WithToken(const Call& call) {
  const std::string origin = OriginOf(call.peer, call.listen);
  if (const absl::Duration wait = back_off_.Wait(origin, SteadyNow());
      wait > absl::ZeroDuration()) {
    refused_.fetch_add(1);
    return absl::UnavailableError(absl::StrCat(
        "[trust] too many wrong tokens came from ", origin, ". Wait ",
        absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1))),
        ", then use the right one."));
  }
  const std::optional<PeerAddress> address = ParsePeer(call.peer);
  const bool loopback = address.has_value() && address->loopback;
  if (!call.encrypted && !loopback && !options_.allow_plaintext_tokens) {
    refused_.fetch_add(1);
    return absl::UnauthenticatedError(
        "[trust] a token must not travel in the clear, and this one just did: "
        "have it revoked. The daemon takes tokens over TLS (--tls_certificate, "
        "--tls_key; connect(ca=...)), or with --allow_plaintext_tokens.");
  }
  absl::string_view token = call.authorization;
  if (!absl::ConsumePrefix(&token, "Bearer ")) {
    return Refuse(origin, "the authorization must be 'Bearer TOKEN'");
  }
  const std::shared_ptr<const TokenFile> file = tokens();
  const Token* known = file == nullptr ? nullptr : file->Find(token);
  if (known == nullptr) {
    return Refuse(origin,
                  "the token is none of this daemon's: mistyped, or revoked");
  }
  if (known->expires <= absl::Now()) {
    return Refuse(
        origin, absl::StrCat("the token ", known->id, " of ", known->user.name,
                             " expired at ", absl::FormatTime(known->expires)));
  }
  return Finish({known->user, absl::StrCat(kTokenKind, known->id)});
}

absl::StatusOr<Peer> Authenticator::WithoutCredential(const Call& call) {
  if (asks_for_credentials()) {
    refused_.fetch_add(1);
    return absl::UnauthenticatedError(absl::StrCat(
        "[trust] this daemon asks for ",
        options_.token_file.empty() ? "a client certificate "
                                      "(connect(certificate=..., key=...))"
                                    : "a token. ",
        options_.token_file.empty() ? "." : kHowToGetOne));
  }
  const std::optional<PeerAddress> address = ParsePeer(call.peer);
  if (!address.has_value() || !address->loopback) {
    if (!options_.allow_anonymous) {
      refused_.fetch_add(1);
      return absl::UnauthenticatedError(
          "[trust] this daemon lets nobody in from another machine: it runs "
          "without --token_file, --tls_client_ca and --allow_anonymous.");
    }
  } else if (const auto uid = UserOfLoopback(call.peer, call.listen)) {
    // Never an admin, even root: it may be a proxy that others reach.
    return Peer{{UserName(*uid), Role::kUser}, absl::StrCat("uid ", *uid)};
  }
  return Peer{{kAnonymous, Role::kUser}, "none"};
}

absl::StatusOr<std::optional<Peer>> Authenticator::Reader(const Call& call,
                                                          bool forwarded) {
  if (!call.authorization.empty()) {
    if (options_.token_file.empty()) {
      return absl::UnauthenticatedError(
          "[trust] this daemon runs without --token_file and takes no tokens");
    }
    absl::StatusOr<Peer> peer = WithToken(call);
    if (!peer.ok()) return peer.status();
    return std::optional<Peer>(*std::move(peer));
  }
  if (forwarded || asks_for_credentials()) return std::nullopt;
  const auto uid = UserOfLoopback(call.peer, call.listen);
  if (!uid.has_value()) return std::nullopt;
  return std::optional<Peer>(Finish(PeerOfUser(*uid)));
}

absl::Status Authenticator::CheckStill(const std::string& user,
                                       const std::string& credential) {
  absl::string_view id = credential;
  if (!absl::ConsumePrefix(&id, kTokenKind)) return absl::OkStatus();
  const std::shared_ptr<const TokenFile> file = tokens();
  const Token* token = file == nullptr ? nullptr : file->FindById(id);
  // An id may be given anew, to somebody else.
  if (token == nullptr || token->user.name != user) {
    return absl::UnauthenticatedError(absl::StrCat(
        "[trust] the token ", id, " of ", user,
        " was revoked, and its sessions have ended. ", kHowToGetOne));
  }
  if (token->expires <= absl::Now()) {
    return absl::UnauthenticatedError(
        absl::StrCat("[trust] the token ", id, " of ", user, " expired at ",
                     absl::FormatTime(token->expires),
                     ", and its sessions have ended. ", kHowToGetOne));
  }
  return absl::OkStatus();
}

bool Authenticator::HasToken(const std::string& user) {
  const std::shared_ptr<const TokenFile> file = tokens();
  return file != nullptr && file->HasUser(user, absl::Now());
}

}  // namespace holdfast
