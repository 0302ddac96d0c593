// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/trust/local_users.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"

namespace holdfast {
namespace {

constexpr absl::Duration kNamesLast = absl::Minutes(1);
constexpr size_t kMaxNames = 4096;
// Unknown names and a machine's own notation must not meet: no name has it.
constexpr char kUnnamed[] = "uid:";

std::string ReadUserName(uid_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry = {};
  passwd* found = nullptr;
  const int error =
      getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (error != 0 || found == nullptr || found->pw_name[0] == '\0') {
    return absl::StrCat(kUnnamed, uid);
  }
  return found->pw_name;
}

// A kernel request for the one TCP socket that has these ends.
struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

bool Fill(const PeerAddress& own, const PeerAddress& other,
          Question* question) {
  *question = {};
  question->header.nlmsg_len = sizeof(*question);
  question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question->header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question->request;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = 1u << TCP_ESTABLISHED;
  inet_diag_sockid& id = request.id;
  id.idiag_sport = htons(own.port);
  id.idiag_dport = htons(other.port);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const bool v6 = absl::StrContains(own.host, ':');
  request.sdiag_family = v6 ? AF_INET6 : AF_INET;
  return inet_pton(request.sdiag_family, own.host.c_str(), id.idiag_src) == 1 &&
         inet_pton(request.sdiag_family, other.host.c_str(), id.idiag_dst) == 1;
}

std::optional<uid_t> OwnerOfSocket(const PeerAddress& own,
                                   const PeerAddress& other) {
  Question question;
  if (!Fill(own, other, &question)) return std::nullopt;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return std::nullopt;
  alignas(nlmsghdr) char answer[4096];
  ssize_t size = -1;
  // The kernel answers within the call: there is nothing to wait for.
  if (send(fd, &question, sizeof(question), 0) == sizeof(question)) {
    size = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
  }
  close(fd);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))) ||
      header->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
    return std::nullopt;
  }
  const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  // One that its process has closed already has no owner; the kernel says 0
  // then, which is root's number.
  if (found->idiag_state != TCP_ESTABLISHED || found->idiag_inode == 0) {
    return std::nullopt;
  }
  return found->idiag_uid;
}

}  // namespace

std::string UserName(uid_t uid) {
  struct Known {
    std::string name;
    SteadyTime until;
  };
  static std::mutex mutex;
  static auto* const names = new std::map<uid_t, Known>;
  const SteadyTime now = SteadyNow();
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = names->find(uid);
    if (found != names->end() && found->second.until > now) {
      return found->second.name;
    }
  }
  std::string name = ReadUserName(uid);
  std::lock_guard<std::mutex> lock(mutex);
  if (names->size() >= kMaxNames) names->clear();
  (*names)[uid] = {name, now + kNamesLast};
  return name;
}

Peer PeerOfUser(uid_t uid) {
  Peer peer;
  peer.user.name = UserName(uid);
  if (uid == geteuid() || uid == 0) peer.user.role = Role::kAdmin;
  peer.credential = absl::StrCat("uid ", uid);
  return peer;
}

absl::StatusOr<Peer> PeerOfSocket(int fd) {
  ucred credentials = {};
  socklen_t length = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return absl::ErrnoToStatus(errno, "[local] the peer cannot be identified");
  }
  return PeerOfUser(credentials.uid);
}

std::optional<PeerAddress> ParsePeer(absl::string_view peer) {
  // gRPC escapes the brackets, and percent signs of scopes.
  const std::string text =
      absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = text;
  const bool v6 = absl::StartsWith(rest, "ipv6:");
  if (!v6 && !absl::StartsWith(rest, "ipv4:")) return std::nullopt;
  rest.remove_prefix(5);
  const size_t colon = rest.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port > 65535) {
    return std::nullopt;
  }
  absl::string_view host = rest.substr(0, colon);
  if (v6 && absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  PeerAddress address;
  address.port = static_cast<uint16_t>(port);
  // A socket that listens on [::] sees IPv4 peers so.
  constexpr absl::string_view kMapped = "::ffff:";
  const bool mapped = absl::StartsWithIgnoreCase(host, kMapped);
  const absl::string_view plain = mapped ? host.substr(kMapped.size()) : host;
  address.loopback =
      host == "::1" || ((mapped || !v6) && absl::StartsWith(plain, "127."));
  address.host = std::string(host);
  return address;
}

std::optional<uid_t> UserOfLoopback(absl::string_view peer,
                                    absl::string_view listen) {
  const std::optional<PeerAddress> other = ParsePeer(peer);
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (!other.has_value() || !other->loopback ||
      colon == absl::string_view::npos ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port)) {
    return std::nullopt;
  }
  // gRPC does not tell our end of the connection: it is the address that we
  // listen on, or where that is all of them, the one that was dialled.
  PeerAddress own;
  own.port = static_cast<uint16_t>(port);
  const bool v6 = absl::StrContains(other->host, ':');
  for (const std::string& host :
       {std::string(listen.substr(0, colon)), other->host,
        std::string(v6 ? "::1" : "127.0.0.1")}) {
    own.host = absl::StrReplaceAll(host, {{"[", ""}, {"]", ""}});
    if (const std::optional<uid_t> uid = OwnerOfSocket(*other, own)) return uid;
  }
  return std::nullopt;
}

std::string OriginOf(absl::string_view peer, absl::string_view listen) {
  const std::optional<PeerAddress> address = ParsePeer(peer);
  if (!address.has_value()) return std::string(peer);
  if (address->loopback) {
    if (const auto uid = UserOfLoopback(peer, listen)) {
      return absl::StrCat("uid ", *uid);
    }
  }
  size_t end = 0;
  for (int part = 0; part < 4 && end != std::string::npos; ++part) {
    end = address->host.find(':', end + 1);
  }
  return end == std::string::npos
             ? address->host
             : absl::StrCat(address->host.substr(0, end), "::/64");
}

}  // namespace holdfast
