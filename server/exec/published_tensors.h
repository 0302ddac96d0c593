// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PublishedTensors: tensors that sessions of this daemon find by a name. A name
// belongs to a user and has versions. The latest is held here; an older one
// lives while some session holds its tensors. Readers get the storages
// themselves: one copy serves all of them.
// Thread-safety: worker thread only, but for Memory and Stats.
#ifndef HOLDFAST_SERVER_EXEC_PUBLISHED_TENSORS_H_
#define HOLDFAST_SERVER_EXEC_PUBLISHED_TENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "ops/tensor_spec.h"
#include "server/exec/shared_storages.h"
#include "server/exec/tensor.h"
#include "server/memory/caching_allocator.h"
#include "server/memory/memory_ledger.h"

namespace holdfast {

// One version of a name. Not changed once it is in place, but for `saved`.
struct PublishedVersion {
  struct Item {
    std::string key;
    TensorSpec spec;
    bool requires_grad = false;
    RefPtr<Storage> storage;  // null: not loaded yet, or held by readers alone
    std::string token;        // of an older version: finds what readers hold
  };
  std::string owner;  // user
  std::string name;
  uint64_t number = 0;
  bool durable = false;
  bool writable = false;
  bool readable_by_all = false;
  std::vector<std::string> readers;
  std::string structure;  // the client's
  double time = 0;        // seconds since 1970
  uint64_t bytes = 0;     // of distinct storages
  bool saved = false;
  std::vector<Item> items;
  // All of this but the storages, on the owner's account.
  std::shared_ptr<MemoryCharge> description;

  bool ReadableBy(const std::string& user) const;
};
using PublishedPtr = std::shared_ptr<PublishedVersion>;

// Where durable versions are written (server/state). Calls come from the worker
// thread; `done` runs there too, later.
class DurableNames {
 public:
  using Done = std::function<void(absl::Status)>;
  virtual ~DurableNames() = default;
  // OK: `version` is on disk and will be there after a power cut; what was
  // saved under its name before is gone. An error: as if nothing had been
  // asked.
  virtual void Save(PublishedPtr version, Done done) = 0;
  virtual void Remove(const std::string& owner, const std::string& name,
                      Done done) = 0;
  // Somebody waits for this name: load it next.
  virtual void Hurry(const std::string& owner, const std::string& name) = 0;
};

class PublishedTensors {
 public:
  using Done = std::function<void(absl::StatusOr<PublishedPtr>)>;
  static constexpr size_t kMaxNames = 1 << 16;
  static constexpr size_t kMaxNameBytes = 256;

  // Whose memory a user's names take; from any thread.
  using AccountOf =
      std::function<std::shared_ptr<MemoryAccount>(const std::string& user)>;
  // How many names a user may have; 0: as many as there may be.
  using MostOf = std::function<uint64_t(const std::string& user)>;
  // `account_of` null: nobody's; `most_of` null: no limit. `device` outlives
  // it.
  PublishedTensors(Device* device, std::shared_ptr<SharedStorages> shared,
                   AccountOf account_of, MostOf most_of = nullptr);
  ~PublishedTensors();

  // Null: publishing with `durable` is refused.
  void set_durable(DurableNames* durable) { durable_ = durable; }

  // Any thread: what copies for a user's names are allocated from, on stream().
  std::shared_ptr<CachingAllocator> Memory(const std::string& user);
  StreamId stream() const { return stream_; }
  Device* device() const { return device_; }

  // Makes `version` the next one of its name; a durable one when it is on disk.
  // Items have storages; `allocators` are where those are from. `done` may run
  // before the call returns.
  void Publish(PublishedPtr version,
               const std::vector<std::shared_ptr<CachingAllocator>>& allocators,
               Done done);
  // Version `number` (0: the latest) of a name as `user` may see it; a version
  // whose load is under way is waited for. Its items have storages.
  void Lookup(const std::string& owner, const std::string& name,
              uint64_t number, const std::string& user, Done done);
  // OK with a null version: the name is gone.
  void Unpublish(const std::string& owner, const std::string& name, Done done);
  // Latest versions that `user` may look up, behind (owner, name); at most
  // `limit`. `*more`: there are others.
  std::vector<PublishedPtr> List(const std::string& user,
                                 const std::string& after_owner,
                                 const std::string& after_name, size_t limit,
                                 bool* more) const;

  // ---- what a start found on disk
  // The name is known; its tensors follow. Ignored if the name is there.
  void AddLoading(PublishedPtr version);
  // They are here, or cannot be read (then the name goes, and who waits is
  // told).
  void FinishLoading(const PublishedPtr& version, const absl::Status& status,
                     const std::shared_ptr<CachingAllocator>& allocator);

  // Gives memory of versions that are gone back to the device. About once a
  // second.
  void Sweep();

  struct Statistics {
    uint64_t names = 0;
    uint64_t bytes = 0;
  };
  Statistics Stats() const;  // any thread

 private:
  using Key = std::pair<std::string, std::string>;  // owner, name
  struct Entry {
    PublishedPtr latest;
    bool loading = false;
    std::vector<std::pair<uint64_t, Done>> waiting;  // for the load
    std::vector<PublishedPtr> older;                 // without storages
    uint64_t last_number = 0;                        // given out
  };

  void Install(
      const PublishedPtr& version,
      const std::vector<std::shared_ptr<CachingAllocator>>& allocators);
  // No name stands for its storages any more: who holds them pays for them.
  static void LetGo(const PublishedVersion& version);
  // Turns `version` into one that only readers keep alive.
  void Retire(Entry& entry, const PublishedPtr& version);
  void DropGone(Entry& entry);
  absl::StatusOr<PublishedPtr> Find(const Entry& entry, uint64_t number) const;
  // OK when `version`'s owner may have one more name.
  absl::Status CheckRoom(const PublishedVersion& version) const;
  void Charge(PublishedVersion* version) const;
  absl::Status NotThere(const std::string& owner, const std::string& name,
                        const std::string& user) const;

  Device* const device_;
  const StreamId stream_;
  const std::shared_ptr<SharedStorages> shared_;
  const AccountOf account_of_;
  const MostOf most_of_;
  DurableNames* durable_ = nullptr;
  std::map<Key, Entry> names_;

  mutable std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<std::string, std::shared_ptr<CachingAllocator>> memory_;
  uint64_t num_names_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_PUBLISHED_TENSORS_H_
