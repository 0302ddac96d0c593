// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// StateFolder: the state files of one daemon. A file is written under a
// temporary name, synced, renamed, and the folder synced: whatever cuts that
// off, the file is there whole or not at all, and what it replaces goes only
// then. The headers say what files are; their names only count.
// Thread-safety: NewPath from any thread, else one thread at a time. Calls
// block on the disk.
#ifndef HOLDFAST_SERVER_STATE_STATE_FOLDER_H_
#define HOLDFAST_SERVER_STATE_STATE_FOLDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/state.pb.h"

namespace holdfast {

class StateFolder {
 public:
  struct File {
    std::string path;
    uint64_t number = 0;  // larger: written later
    state::Header header;
    uint64_t bytes() const;  // of its blobs
  };

  // Makes the folder if need be. FailedPrecondition: another daemon has it, or
  // nobody may write there.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(
      const std::string& path);
  ~StateFolder();  // lets others have it

  const std::string& path() const { return path_; }
  // What is there, oldest first. Leftovers of writes that were cut off are
  // removed; damaged files are renamed to *.damaged, and logged.
  absl::StatusOr<std::vector<File>> Scan();
  // Where the next file is to lie. Write Temporary(it), then Commit(it).
  std::string NewPath();
  static std::string Temporary(const std::string& path) {
    return path + ".tmp";
  }
  absl::Status Commit(const std::string& path);
  absl::Status Remove(const std::vector<std::string>& paths);
  // Leaves the file to people.
  void SetAside(const std::string& path, const absl::Status& why);

 private:
  StateFolder(std::string path, int fd, int lock_fd)
      : path_(std::move(path)), fd_(fd), lock_fd_(lock_fd) {}
  absl::Status Sync();

  const std::string path_;
  const int fd_;
  const int lock_fd_;
  std::atomic<uint64_t> next_number_{1};
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_STATE_STATE_FOLDER_H_
