// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Users of this machine, as the kernel names them.
// Thread-safety: all functions from any thread.
#ifndef HOLDFAST_SERVER_TRUST_LOCAL_USERS_H_
#define HOLDFAST_SERVER_TRUST_LOCAL_USERS_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/trust/user.h"

namespace holdfast {

// The name of the system's user, or "uid:1234" where it has none. May read
// files and ask a directory service; answers are kept for a minute.
std::string UserName(uid_t uid);

// A process of that user on this machine, beyond doubt. Root and the user that
// runs the daemon are admins.
Peer PeerOfUser(uid_t uid);

// Whoever connected the Unix socket `fd`.
absl::StatusOr<Peer> PeerOfSocket(int fd);

// The user whose process holds the other end of a TCP connection within this
// machine; nullopt where the kernel does not say. `peer`: as gRPC writes it,
// "ipv4:127.0.0.1:5000" or "ipv6:%5B::1%5D:5000"; `listen`: the daemon's
// host:port.
std::optional<uid_t> UserOfLoopback(absl::string_view peer,
                                    absl::string_view listen);

// Parts of an address as gRPC writes it: the host without brackets, and whether
// it is this machine's own.
struct PeerAddress {
  std::string host;
  uint16_t port = 0;
  bool loopback = false;
};
std::optional<PeerAddress> ParsePeer(absl::string_view peer);

// Whom to hold a connection of nobody known against. Users of this machine
// share its address, and must not lock each other out; an IPv6 host has a whole
// /64. Arguments: as UserOfLoopback's.
std::string OriginOf(absl::string_view peer, absl::string_view listen);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRUST_LOCAL_USERS_H_
