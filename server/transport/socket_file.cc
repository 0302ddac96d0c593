// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"

namespace holdfast {
namespace {

constexpr int kBacklog = 512;

absl::Status Errno(absl::string_view what, const std::string& path) {
  return absl::Status(
      absl::ErrnoToStatusCode(errno),
      absl::StrCat("[socket] ", what, " ", path, ": ", strerror(errno), "."));
}

// Each missing folder of the path, for those who may use the socket.
absl::Status MakeFolders(const std::string& folder, mode_t mode) {
  mode_t folder_mode = 0700;
  if ((mode & 0060) != 0) folder_mode |= 0010;
  if ((mode & 0006) != 0) folder_mode |= 0001;
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    if (mkdir(part.c_str(), folder_mode) != 0 && errno != EEXIST) {
      return Errno("cannot make the folder", part);
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

// In somebody else's folder, or in one that all may write, a stranger could
// put a socket of his own in the place of ours.
absl::StatusOr<UniqueFd> OpenFolder(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info;
  if (!fd.ok() || fstat(fd.get(), &info) != 0) {
    return Errno("cannot open the folder", folder);
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("[socket] the socket's folder must belong to uid ",
                     geteuid(), " or root. Got ", folder, " of uid ",
                     info.st_uid, "; choose another with --socket."));
  }
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "[socket] the socket's folder must not be writable by all. Got ",
        folder, "; choose another with --socket."));
  }
  return fd;
}

// Two daemons that start at once take turns; the lock goes with `folder`.
absl::Status Lock(const UniqueFd& folder, const std::string& path) {
  const SteadyTime deadline = SteadyNow() + absl::Seconds(5);
  while (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Errno("cannot lock the folder of", path);
    }
    if (SteadyNow() > deadline) {
      return absl::UnavailableError(absl::StrCat(
          "[socket] another process keeps the folder of ", path, " locked."));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::OkStatus();
}

// Takes a stale socket out of the way.
absl::Status RemoveStale(const sockaddr_un& address, const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Errno("cannot look at", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat("[socket] ", path,
                     " exists and is not a socket; choose another path "
                     "with --socket."));
  }
  UniqueFd probe(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.ok()) return Errno("cannot make a socket for", path);
  // EAGAIN is a daemon with a full backlog; only a refusal means that nobody
  // is there.
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 ||
      errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        absl::StrCat("[socket] another holdfastd listens on ", path,
                     "; stop it, or choose another path with --socket."));
  }
  if (unlink(path.c_str()) != 0) {
    return Errno("cannot remove the stale socket", path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Listen(
    const std::string& given, mode_t mode) {
  // Absolute, so that what we tell others holds wherever they are.
  std::string path = given;
  if (!path.empty() && path[0] != '/') {
    char* cwd = getcwd(nullptr, 0);
    if (cwd == nullptr) return Errno("cannot resolve", path);
    path = absl::StrCat(cwd, "/", path);
    free(cwd);
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("[socket] a socket's path must have 1 to ",
                     sizeof(address.sun_path) - 1, " bytes. Got '", path, "' (",
                     path.size(), "); choose another with --socket."));
  }
  path.copy(address.sun_path, path.size());

  const size_t slash = path.rfind('/');
  const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  absl::Status status = MakeFolders(parent, mode);
  if (!status.ok()) return status;
  absl::StatusOr<UniqueFd> folder = OpenFolder(parent);
  if (!folder.ok()) return folder.status();
  status = Lock(*folder, path);
  if (!status.ok()) return status;
  status = RemoveStale(address, path);
  if (!status.ok()) return status;

  auto file = std::unique_ptr<SocketFile>(new SocketFile);
  file->fd_ =
      UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file->fd_.ok()) return Errno("cannot make a socket for", path);
  // The file is born with this mode less the umask, and opened further below.
  fchmod(file->fd_.get(), mode);
  if (bind(file->fd_.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    return Errno("cannot bind", path);
  }
  struct stat info;
  if (chmod(path.c_str(), mode) != 0 ||
      listen(file->fd_.get(), kBacklog) != 0 ||
      lstat(path.c_str(), &info) != 0) {
    return Errno("cannot listen on", path);
  }
  file->path_ = path;
  file->device_ = info.st_dev;
  file->inode_ = info.st_ino;
  return file;
}

SocketFile::~SocketFile() {
  struct stat info;
  if (!path_.empty() && lstat(path_.c_str(), &info) == 0 &&
      info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

}  // namespace holdfast
