// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// UniqueFd: a file descriptor with an owner, closed on destruction.
// Thread-safety: none; one owner.
#ifndef HOLDFAST_SERVER_TRANSPORT_UNIQUE_FD_H_
#define HOLDFAST_SERVER_TRANSPORT_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace holdfast {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_UNIQUE_FD_H_
