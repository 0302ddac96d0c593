// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/listen_failure.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/transport/unique_fd.h"

namespace holdfast {
namespace {

// 0: it can be had now.
int Try(const addrinfo& address) {
  UniqueFd fd(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC,
                     address.ai_protocol));
  if (!fd.ok()) return errno;
  // Else a port would be taken by connections that are long over.
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool free = bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                    listen(fd.get(), 1) == 0;
  return free ? 0 : errno;
}

std::string Advice(int error, absl::string_view flag) {
  switch (error) {
    case 0:  // it was taken a moment ago
    case EADDRINUSE:
      return absl::StrCat(
          "another program has the port (ss -ltnp lists who): end that one, "
          "or give --",
          flag, " another port.");
    case EADDRNOTAVAIL:
      return absl::StrCat(
          "the host is none of this machine's addresses (ip address lists "
          "them); give --",
          flag, " one that is, or 0.0.0.0 for all.");
    case EACCES:
    case EPERM:
      return absl::StrCat("the daemon's user may not; give --", flag,
                          " a port from 1024 on.");
    default:
      return absl::StrCat(strerror(error), ".");
  }
}

}  // namespace

absl::Status ListenFailure(absl::string_view flag, const std::string& address) {
  const std::string begin =
      absl::StrCat("[", flag, "] cannot listen on ", address, ": ");
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(begin, "no host:port."));
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown =
      getaddrinfo(std::string(host).c_str(), address.substr(colon + 1).c_str(),
                  &hints, &found);
  if (unknown != 0) {
    return absl::UnavailableError(absl::StrCat(begin, "the host is not known (",
                                               gai_strerror(unknown), ")."));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found,
                                                               freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && error == 0;
       one = one->ai_next) {
    error = Try(*one);
  }
  return absl::UnavailableError(absl::StrCat(begin, Advice(error, flag)));
}

}  // namespace holdfast
