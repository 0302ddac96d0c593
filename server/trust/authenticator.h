// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Authenticator: decides who a peer is. The kernel vouches for local peers; a
// token or a certificate does for those that come over the network. Within this
// machine a peer without either is the user whose process it is, where neither
// tokens nor certificates are asked for.
// Thread-safety: all methods from any thread; none waits for the network.
#ifndef HOLDFAST_SERVER_TRUST_AUTHENTICATOR_H_
#define HOLDFAST_SERVER_TRUST_AUTHENTICATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/trust/guess_back_off.h"
#include "server/trust/token_file.h"
#include "server/trust/user.h"

namespace holdfast {

class Authenticator {
 public:
  struct Options {
    std::string token_file;            // "": no tokens
    bool client_certificates = false;  // TLS asks for them
    // Peers from other machines that show nothing are let in.
    bool allow_anonymous = false;
    bool allow_plaintext_tokens = false;
  };
  // An error of the token file is the caller's.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Create(Options options);
  // Lets in whoever reaches the daemon from this machine.
  Authenticator() = default;

  // A call over the network, as the transport sees it.
  struct Call {
    std::string peer;           // gRPC's spelling: "ipv4:10.0.0.7:40312"
    std::string listen;         // the daemon's own host:port
    bool encrypted = false;     // TLS
    std::string certificate;    // verified client certificate's common name
    std::string authorization;  // the metadata's value, "Bearer hf_..."
  };
  // UNAUTHENTICATED: nothing that lets the peer in; UNAVAILABLE: too many
  // mistakes, it has to wait.
  absl::StatusOr<Peer> Remote(const Call& call);
  absl::StatusOr<Peer> Local(int socket);

  // Who reads the daemon's pages. Nobody has to show anything: nullopt is a
  // reader of whom nothing is known. Within this machine the process's user
  // counts as over the Unix socket, unless the daemon asks for credentials or
  // the request is `forwarded` (a proxy says so): then a token alone does.
  absl::StatusOr<std::optional<Peer>> Reader(const Call& call, bool forwarded);

  // Whether what a peer showed is still worth anything; the error is for its
  // user.
  absl::Status CheckStill(const std::string& user,
                          const std::string& credential);
  // Any other token for the user?
  bool HasToken(const std::string& user);

  // Reads the token file again if it has changed since, or with `force`. On
  // error the former tokens stay.
  absl::Status Reload(bool force);

  const Options& options() const { return options_; }
  bool asks_for_credentials() const {
    return !options_.token_file.empty() || options_.client_certificates;
  }

  // Users that the configuration makes admins.
  void set_admins(std::function<bool(const std::string&)> is_admin);

  // Credentials that were refused.
  uint64_t refused() const { return refused_.load(); }

 private:
  // What tells one version of the file from the next.
  struct FileStamp {
    int64_t seconds = 0, nanoseconds = 0;
    uint64_t inode = 0, bytes = 0;
    bool operator==(const FileStamp& o) const {
      return seconds == o.seconds && nanoseconds == o.nanoseconds &&
             inode == o.inode && bytes == o.bytes;
    }
  };
  explicit Authenticator(Options options);
  static FileStamp Stamp(const std::string& path);
  absl::StatusOr<Peer> WithToken(const Call& call);
  absl::StatusOr<Peer> WithoutCredential(const Call& call);
  absl::Status Refuse(const std::string& origin, absl::string_view what);
  Peer Finish(Peer peer);
  std::shared_ptr<const TokenFile> tokens();

  const Options options_;
  GuessBackOff back_off_;
  std::atomic<uint64_t> refused_{0};
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const TokenFile> tokens_;
  FileStamp stamp_;
  std::function<bool(const std::string&)> is_admin_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRUST_AUTHENTICATOR_H_
