// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DurableState: what survives the daemon: durable names, and sessions that wait
// for somebody to attach. One thread writes, another loads what a start found;
// ops go on meanwhile.
// Thread-safety: see the groups. Storages are let go of on the worker thread.
#ifndef HOLDFAST_SERVER_STATE_DURABLE_STATE_H_
#define HOLDFAST_SERVER_STATE_DURABLE_STATE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/exec/kept_tensors.h"
#include "server/exec/published_tensors.h"
#include "server/session/session_registry.h"
#include "server/state/state_file.h"
#include "server/state/state_folder.h"

namespace holdfast {

class Worker;

class DurableState final : public DurableNames, public SessionArchive {
 public:
  // Takes the folder and looks what is there. Blocks.
  static absl::StatusOr<std::unique_ptr<DurableState>> Open(
      const std::string& folder);
  ~DurableState() override;  // Stop()

  // Makes known what was found, and begins to load it, small things first. All
  // must outlive Stop. Call once, before clients come.
  void Start(Device* device, Worker* worker, SessionRegistry* registry);
  // Finishes what is to be saved; leaves the rest of the loading to the next
  // start. The worker must run.
  void Stop();

  // ---- worker thread
  void Save(PublishedPtr version, Done done) override;
  void Remove(const std::string& owner, const std::string& name,
              Done done) override;
  void Hurry(const std::string& owner, const std::string& name) override;

  // ---- any thread
  // Replaces what is saved of the session. Blocks on the disk.
  absl::Status SaveSession(const KeptTensors& kept);
  // The session has ended: it will not come back. Waits for nothing.
  void RemoveSession(const std::string& user, const std::string& name) override;
  void HurrySession(const std::string& user, const std::string& name) override;
  uint64_t bytes_found() const override { return bytes_found_.load(); }
  uint64_t bytes_loaded() const override { return bytes_loaded_.load(); }

 private:
  enum Kind { kName, kSession };
  using Key = std::tuple<Kind, std::string, std::string>;  // user, name
  struct Load {
    Key key;
    std::vector<StateFolder::File> files;  // of the key, newest first
    PublishedPtr version;                  // of a name
  };

  explicit DurableState(std::unique_ptr<StateFolder> folder)
      : folder_(std::move(folder)) {}
  static Key KeyOf(const state::Header& header);
  void LoadNext(const Key& key);  // any thread

  // ---- the writing thread
  void WriteLoop();
  // False: it is stopping.
  bool Enqueue(std::function<void()> job);
  absl::Status WriteName(const PublishedVersion& version);
  // Writes a file and removes those that were there under the key.
  absl::Status Replace(const Key& key, state::Header header,
                       const std::vector<const Storage*>& blobs);
  absl::Status RemoveFiles(const Key& key);
  // Of all that is saved of the user's.
  std::vector<std::string> FilesOf(const std::string& user);
  // The bytes of device memory, which only the worker may copy.
  absl::Status CopyOut(const Storage& storage, uint64_t offset, size_t size,
                       std::vector<char>* piece, const char** data);

  // ---- the loading thread
  void LoadLoop();
  void LoadOne(Load load);
  // Storages of all blobs, from `allocator`, on `stream`.
  absl::StatusOr<std::vector<RefPtr<Storage>>> LoadBlobs(
      const StateFileReader& file, CachingAllocator* allocator,
      StreamId stream);
  void LoadName(const Load& load);
  void LoadSession(const Load& load);
  void ShowProgress(bool last);

  const std::unique_ptr<StateFolder> folder_;
  Device* device_ = nullptr;
  Worker* worker_ = nullptr;
  SessionRegistry* registry_ = nullptr;
  std::atomic<uint64_t> bytes_found_{0}, bytes_loaded_{0};
  std::atomic<bool> stop_loading_{false};
  size_t loads_ = 0, loads_done_ = 0;  // loading thread
  int64_t shown_ns_ = 0;               // likewise

  // One at a time writes and removes files. Held for as long as the disk and
  // the worker (CopyOut) take: the worker must never want it.
  std::mutex disk_mutex_;
  std::mutex files_mutex_;  // guards files_; for moments only
  std::map<Key, std::vector<std::string>> files_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::deque<Load> to_load_;
  bool stop_ = false;

  std::thread writer_, loader_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_STATE_DURABLE_STATE_H_
