// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HttpConnections: the library's server with a thread per connection, of which
// nobody has all: where there are too many, the oldest of whoever has most is
// closed. Nor does one last for long, however slowly its peer writes or reads.
// Thread-safety: as the library's; Finish from the thread that stops it.
#ifndef HOLDFAST_SERVER_HTTP_HTTP_CONNECTIONS_H_
#define HOLDFAST_SERVER_HTTP_HTTP_CONNECTIONS_H_

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>

#include "httplib.h"

namespace holdfast {

class HttpConnections final : public httplib::Server {
 public:
  HttpConnections();
  ~HttpConnections() override;  // Finish()

  // "host:port" that is listened on. REQUIRES: it was bound, nobody is served.
  void set_address(const std::string& address);
  // Waits for answers that are under way. REQUIRES: stop() was called.
  void Finish();

 private:
  // By a thread of its own, which closes it.
  bool process_and_close_socket(socket_t socket) override;
  void Serve(int socket);
  void MakeRoom(const std::string& origin);  // REQUIRES: mutex_ held

  const uint64_t most_;
  std::string address_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable done_;
  uint64_t threads_ = 0;
  uint64_t open_ = 0;                              // those below
  std::map<std::string, std::list<int>> sockets_;  // by origin, oldest first
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HTTP_HTTP_CONNECTIONS_H_
