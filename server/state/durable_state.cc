// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DurableState: taking the folder, and writing. Loading is in load_state.cc.
#include "server/state/durable_state.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/convert.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/exec/worker.h"
#include "server/limits/room_for_others.h"
#include "server/session/session_registry.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr char kEnding[] = "[publish] the daemon is ending";

// Numbers storages as the file's blobs.
class BlobTable {
 public:
  uint32_t Add(const Storage* storage) {
    const auto [it, is_new] = numbers_.try_emplace(storage, blobs_.size());
    if (is_new) blobs_.push_back(storage);
    return it->second;
  }
  const std::vector<const Storage*>& blobs() const { return blobs_; }

 private:
  absl::flat_hash_map<const Storage*, uint32_t> numbers_;
  std::vector<const Storage*> blobs_;
};

void Describe(const std::string& key, const TensorSpec& spec,
              bool requires_grad, uint32_t blob, state::SavedTensor* saved) {
  saved->set_key(key);
  SpecToProto(spec, saved->mutable_spec());
  saved->set_requires_grad(requires_grad);
  saved->set_blob(blob);
}

// OK if the user, whose files on that disk are `own`, may write `more` bytes:
// each may have nine tenths of what the others leave (RoomForOthers). What does
// not fit at all is OK as well: the write tells more of it.
absl::Status CheckDiskShare(const std::string& folder, const std::string& user,
                            const std::vector<std::string>& own,
                            uint64_t more) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0) return absl::OkStatus();
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (more > free) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const std::string& path : own) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) bytes += info.st_size;
  }
  // Others' files are neither free nor the user's.
  if (RoomForOthers(bytes + more, bytes + more, bytes + free)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "[state] %s has %.1f MB of durable state, and %.1f MB of the disk of "
      "--state_dir are free: with %.1f MB more the rest, which is for others, "
      "would be too small. Delete some names, or give --state_dir a larger "
      "disk",
      user, static_cast<double>(bytes) / 1e6, static_cast<double>(free) / 1e6,
      static_cast<double>(more) / 1e6));
}

}  // namespace

DurableState::Key DurableState::KeyOf(const state::Header& header) {
  if (header.has_session()) {
    return {kSession, header.session().user(), header.session().name()};
  }
  return {kName, header.name().published().owner(),
          header.name().published().name()};
}

absl::StatusOr<std::unique_ptr<DurableState>> DurableState::Open(
    const std::string& folder) {
  absl::StatusOr<std::unique_ptr<StateFolder>> opened =
      StateFolder::Open(folder);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<DurableState> state(new DurableState(*std::move(opened)));
  absl::StatusOr<std::vector<StateFolder::File>> files = state->folder_->Scan();
  if (!files.ok()) return files.status();
  std::map<Key, Load> loads;
  for (auto file = files->rbegin(); file != files->rend(); ++file) {
    const Key key = KeyOf(file->header);
    Load& load = loads[key];
    load.key = key;
    if (load.files.empty()) state->bytes_found_ += file->bytes();
    state->files_[key].push_back(file->path);
    load.files.push_back(std::move(*file));
  }
  for (auto& [key, load] : loads) {
    state->to_load_.push_back(std::move(load));
  }
  std::sort(state->to_load_.begin(), state->to_load_.end(),
            [](const Load& a, const Load& b) {
              return a.files[0].bytes() < b.files[0].bytes();
            });
  state->loads_ = state->to_load_.size();
  return state;
}

DurableState::~DurableState() { Stop(); }

void DurableState::Stop() {
  stop_loading_.store(true);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (loader_.joinable()) loader_.join();
  if (writer_.joinable()) writer_.join();
}

// ---- jobs

bool DurableState::Enqueue(std::function<void()> job) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return false;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return true;
}

void DurableState::WriteLoop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void DurableState::Save(PublishedPtr version, Done done) {
  const bool taken = Enqueue([this, version, done]() mutable {
    const SteadyTime start = SteadyNow();
    const absl::Status status = WriteName(*version);
    if (status.ok()) {
      spdlog::info("state: '{}' version {} saved: {} bytes in {:.3f} s",
                   version->name, version->number, version->bytes,
                   absl::ToDoubleSeconds(SteadyNow() - start));
    } else {
      spdlog::error("{}", std::string(status.message()));
    }
    // The version goes with it: its storages are the worker's to free.
    worker_->Post([version = std::move(version), done = std::move(done),
                   status] { done(status); });
  });
  if (!taken) done(absl::UnavailableError(kEnding));
}

void DurableState::Remove(const std::string& owner, const std::string& name,
                          Done done) {
  const bool taken = Enqueue([this, key = Key(kName, owner, name), done] {
    const absl::Status status = RemoveFiles(key);
    worker_->Post([done, status] { done(status); });
  });
  if (!taken) done(absl::UnavailableError(kEnding));
}

void DurableState::RemoveSession(const std::string& user,
                                 const std::string& name) {
  const Key key(kSession, user, name);
  {
    std::lock_guard<std::mutex> lock(files_mutex_);
    if (files_.count(key) == 0) return;
  }
  Enqueue([this, key] {
    const absl::Status status = RemoveFiles(key);
    if (!status.ok()) spdlog::error("{}", std::string(status.message()));
  });
}

// ---- writing

absl::Status DurableState::WriteName(const PublishedVersion& version) {
  state::Header header;
  v1::Published* published = header.mutable_name()->mutable_published();
  published->set_owner(version.owner);
  published->set_name(version.name);
  published->set_version(version.number);
  published->set_durable(true);
  published->set_structure(version.structure);
  published->set_time(version.time);
  published->mutable_readers()->set_all(version.readable_by_all);
  for (const std::string& user : version.readers) {
    published->mutable_readers()->add_users(user);
  }
  BlobTable blobs;
  for (const PublishedVersion::Item& item : version.items) {
    Describe(item.key, item.spec, item.requires_grad,
             blobs.Add(item.storage.get()),
             header.mutable_name()->add_tensors());
  }
  // Sessions have no share: they are saved when there is nobody to be told.
  absl::Status share = CheckDiskShare(folder_->path(), version.owner,
                                      FilesOf(version.owner), version.bytes);
  if (!share.ok()) return share;
  return Replace({kName, version.owner, version.name}, std::move(header),
                 blobs.blobs());
}

absl::Status DurableState::SaveSession(const KeptTensors& kept) {
  state::Header header;
  state::SavedSession* session = header.mutable_session();
  session->set_name(kept.session);
  session->set_user(kept.user);
  session->set_client(kept.client);
  session->mutable_random()->set_seed(kept.random.seed);
  session->mutable_random()->set_offset(kept.random.offset);
  session->set_next_handle(kept.next_handle);
  BlobTable blobs;
  for (const KeptTensors::Item& item : kept.items) {
    Describe(item.name, item.spec, item.requires_grad,
             blobs.Add(item.storage.get()), session->add_kept());
  }
  return Replace({kSession, kept.user, kept.session}, std::move(header),
                 blobs.blobs());
}

absl::Status DurableState::CopyOut(const Storage& storage, uint64_t offset,
                                   size_t size, std::vector<char>* piece,
                                   const char** data) {
  if (device_->host_memory()) {
    *data = storage.data() + offset;
    return absl::OkStatus();
  }
  piece->resize(size);
  *data = piece->data();
  absl::Status status;
  worker_->Run([&] {
    status = device_->CopyToHost(storage.block().stream, piece->data(),
                                 storage.data() + offset, size);
  });
  return status;
}

absl::Status DurableState::Replace(const Key& key, state::Header header,
                                   const std::vector<const Storage*>& blobs) {
  std::lock_guard<std::mutex> disk(disk_mutex_);
  header.set_server(kServerName);
  header.set_time(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  const std::string path = folder_->NewPath();
  const std::string temporary = StateFolder::Temporary(path);
  auto remove = absl::MakeCleanup([&] { std::remove(temporary.c_str()); });
  absl::StatusOr<StateFileWriter> file = StateFileWriter::Create(temporary);
  if (!file.ok()) return file.status();
  absl::Status status;
  std::vector<char> piece;
  for (const Storage* storage : blobs) {
    status =
        file->AddBlob(storage->block().bytes,
                      [&](uint64_t offset, size_t size, const char** data) {
                        return CopyOut(*storage, offset, size, &piece, data);
                      });
    if (!status.ok()) return status;
  }
  status = file->Finish(std::move(header));
  if (status.ok()) status = folder_->Commit(path);
  if (!status.ok()) return status;
  std::vector<std::string> older = {path};
  {
    std::lock_guard<std::mutex> lock(files_mutex_);
    older.swap(files_[key]);
  }
  // The new file counts, whether or not the older ones can be removed.
  absl::Status removed = folder_->Remove(older);
  if (!removed.ok()) spdlog::warn("{}", std::string(removed.message()));
  return absl::OkStatus();
}

std::vector<std::string> DurableState::FilesOf(const std::string& user) {
  std::vector<std::string> all;
  std::lock_guard<std::mutex> lock(files_mutex_);
  for (const auto& [key, paths] : files_) {
    if (std::get<1>(key) != user) continue;
    all.insert(all.end(), paths.begin(), paths.end());
  }
  return all;
}

absl::Status DurableState::RemoveFiles(const Key& key) {
  std::lock_guard<std::mutex> disk(disk_mutex_);
  std::vector<std::string> paths;
  {
    std::lock_guard<std::mutex> lock(files_mutex_);
    const auto it = files_.find(key);
    if (it == files_.end()) return absl::OkStatus();
    // Oldest first: what a cut leaves is the newest.
    paths.assign(it->second.rbegin(), it->second.rend());
  }
  absl::Status status = folder_->Remove(paths);
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(files_mutex_);
  files_.erase(key);
  return status;
}

}  // namespace holdfast
