// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SocketFile: a listening Unix socket at a path. Its mode says who can connect;
// what a dead daemon left behind is replaced; a living daemon is respected.
// Thread-safety: none. Owns the descriptor, and the file until destruction.
#ifndef HOLDFAST_SERVER_TRANSPORT_SOCKET_FILE_H_
#define HOLDFAST_SERVER_TRANSPORT_SOCKET_FILE_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class SocketFile {
 public:
  // Makes missing folders, which those may enter who may connect. AlreadyExists
  // when a daemon listens there; PermissionDenied when another user could swap
  // the socket.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Listen(
      const std::string& path, mode_t mode = 0600);
  // Removes the file if it is still ours.
  ~SocketFile();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  SocketFile() = default;

  std::string path_;
  UniqueFd fd_;
  dev_t device_ = 0;  // the file we made
  ino_t inode_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_SOCKET_FILE_H_
