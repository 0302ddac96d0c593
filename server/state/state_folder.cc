// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/state/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/state/state_file.h"
#include "server/state/write_steps.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr char kEnding[] = ".tensors";

// The process that wrote its number into the lock file.
std::string LockOwner(int fd) {
  char text[32] = {};
  const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
  return n > 0
             ? absl::StrCat(" (process ", absl::StripAsciiWhitespace(text), ")")
             : "";
}

absl::StatusOr<int> Lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return DiskError("made", path, errno);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    absl::Status status = DiskError("locked", path, error);
    if (error == EWOULDBLOCK) {
      status = absl::FailedPreconditionError(absl::StrCat(
          "[state] another holdfastd", LockOwner(fd), " uses ", folder,
          ". Give each daemon a --state_dir of its own, or end that one"));
    }
    close(fd);
    return status;
  }
  const std::string text = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) !=
                                   static_cast<ssize_t>(text.size())) {
    const int error = errno;
    close(fd);
    return DiskError("written", path, error);
  }
  return fd;
}

}  // namespace

uint64_t StateFolder::File::bytes() const {
  uint64_t sum = 0;
  for (const state::Blob& blob : header.blobs()) sum += blob.bytes();
  return sum;
}

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(
    const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) return DiskError("made", path, error.value());
  // Others' weights are nobody else's to read.
  if (made) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all,
                                 error);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return DiskError("read", path, errno);
  absl::StatusOr<int> lock = Lock(path);
  if (!lock.ok()) {
    close(fd);
    return lock.status();
  }
  return std::unique_ptr<StateFolder>(new StateFolder(path, fd, *lock));
}

StateFolder::~StateFolder() {
  close(fd_);
  close(lock_fd_);
}

absl::StatusOr<std::vector<StateFolder::File>> StateFolder::Scan() {
  std::vector<File> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(path_, error);
  if (error) return DiskError("read", path_, error.value());
  std::vector<std::string> paths;
  for (const auto& entry : entries) paths.push_back(entry.path().string());
  for (const std::string& path : paths) {
    if (absl::EndsWith(path, ".tmp")) {
      spdlog::warn("state: {} was not finished; it is removed", path);
      unlink(path.c_str());
      continue;
    }
    File file;
    absl::string_view stem = path;
    stem.remove_prefix(path_.size() + 1);
    if (!absl::ConsumeSuffix(&stem, kEnding) ||
        !absl::SimpleAtoi(stem, &file.number)) {
      continue;  // the lock, what people put there
    }
    next_number_ = std::max<uint64_t>(next_number_, file.number + 1);
    absl::StatusOr<StateFileReader> reader = StateFileReader::Open(path);
    if (!reader.ok()) {
      if (!absl::IsDataLoss(reader.status())) return reader.status();
      SetAside(path, reader.status());
      continue;
    }
    file.path = path;
    file.header = reader->header();
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.number < b.number; });
  return files;
}

std::string StateFolder::NewPath() {
  return absl::StrFormat("%s/%08d%s", path_, next_number_++, kEnding);
}

absl::Status StateFolder::Sync() {
  WriteStep("sync the folder");
  return fsync(fd_) == 0 ? absl::OkStatus()
                         : DiskError("written", path_, errno);
}

absl::Status StateFolder::Commit(const std::string& path) {
  WriteStep("rename");
  if (rename(Temporary(path).c_str(), path.c_str()) != 0) {
    return DiskError("made", path, errno);
  }
  return Sync();
}

absl::Status StateFolder::Remove(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    WriteStep("remove");
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return DiskError("removed", path, errno);
    }
  }
  return paths.empty() ? absl::OkStatus() : Sync();
}

void StateFolder::SetAside(const std::string& path, const absl::Status& why) {
  spdlog::error(
      "{}. It is kept as {}.damaged; check the disk, and publish or save again "
      "what no version before is served of",
      std::string(why.message()), path);
  if (rename(path.c_str(), (path + ".damaged").c_str()) != 0) {
    spdlog::error("state: {} cannot be renamed: {}", path,
                  std::string(DiskError("renamed", path, errno).message()));
  }
}

}  // namespace holdfast
