// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/published_tensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/limits/room_for_others.h"

namespace holdfast {

bool PublishedVersion::ReadableBy(const std::string& user) const {
  return user == owner || readable_by_all ||
         std::find(readers.begin(), readers.end(), user) != readers.end();
}

PublishedTensors::PublishedTensors(Device* device,
                                   std::shared_ptr<SharedStorages> shared,
                                   AccountOf account_of, MostOf most_of)
    : device_(device),
      stream_(device->CreateStream(0).value_or(0)),
      shared_(std::move(shared)),
      account_of_(std::move(account_of)),
      most_of_(std::move(most_of)) {}

PublishedTensors::~PublishedTensors() {
  names_.clear();
  device_->DestroyStream(stream_);
}

std::shared_ptr<CachingAllocator> PublishedTensors::Memory(
    const std::string& user) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<CachingAllocator>& memory = memory_[user];
  if (memory == nullptr) {
    memory = std::make_shared<CachingAllocator>(
        device_->CreateMemory(/*shared=*/false), /*limit_bytes=*/0, stream_,
        account_of_ == nullptr ? nullptr : account_of_(user));
  }
  return memory;
}

// ---- publishing

absl::Status PublishedTensors::CheckRoom(
    const PublishedVersion& version) const {
  uint64_t own = 0;
  for (auto it = names_.lower_bound({version.owner, ""});
       it != names_.end() && it->first.first == version.owner; ++it) {
    ++own;
  }
  const uint64_t most = most_of_ == nullptr ? 0 : most_of_(version.owner);
  if (most != 0 && own >= most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[publish] ", version.owner, " may have at most ", most,
        " names. Got one more: '", version.name,
        "'. Unpublish some, or ask an admin for more (holdfast limits)"));
  }
  if (!RoomForOthers(own, names_.size(), kMaxNames)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[publish] the daemon keeps at most ", kMaxNames,
        " names, the last of them for users with few. Got one more of ",
        version.owner, "'s ", own, ": '", version.name, "'. Unpublish some."));
  }
  return absl::OkStatus();
}

void PublishedTensors::Charge(PublishedVersion* version) const {
  if (account_of_ == nullptr) return;
  constexpr uint64_t kName = 512;  // its places in the tables
  uint64_t bytes = kName + sizeof(PublishedVersion) +
                   version->structure.capacity() + version->name.capacity();
  for (const PublishedVersion::Item& item : version->items) {
    constexpr uint64_t kShared = 256;  // its entry and token
    bytes += sizeof(item) + item.key.capacity() + kShared;
  }
  for (const std::string& reader : version->readers) {
    bytes += sizeof(reader) + reader.capacity();
  }
  version->description =
      std::make_shared<MemoryCharge>(account_of_(version->owner));
  version->description->AddAnyway(bytes);
}

void PublishedTensors::Publish(
    PublishedPtr version,
    const std::vector<std::shared_ptr<CachingAllocator>>& allocators,
    Done done) {
  const Key key(version->owner, version->name);
  if (names_.count(key) == 0) {
    absl::Status room = CheckRoom(*version);
    if (!room.ok()) return done(std::move(room));
  }
  Charge(version.get());
  if (!version->durable) {
    Entry& entry = names_[key];
    version->number = ++entry.last_number;
    Install(version, allocators);
    return done(version);
  }
  if (durable_ == nullptr) {
    return done(absl::FailedPreconditionError(absl::StrCat(
        "[publish] '", version->name,
        "' cannot be durable: the daemon keeps nothing on disk. Start it with "
        "--state_dir=FOLDER, or publish without durable")));
  }
  // Visible when it is on disk, so that nobody reads what a crash takes back.
  version->number = ++names_[key].last_number;
  durable_->Save(version, [this, version, allocators, key,
                           done = std::move(done)](absl::Status status) {
    if (status.ok()) {
      version->saved = true;
      Install(version, allocators);
      return done(version);
    }
    const auto it = names_.find(key);
    if (it != names_.end() && it->second.latest == nullptr) names_.erase(it);
    done(status);
  });
}

void PublishedTensors::Install(
    const PublishedPtr& version,
    const std::vector<std::shared_ptr<CachingAllocator>>& allocators) {
  for (size_t i = 0; i < version->items.size(); ++i) {
    PublishedVersion::Item& item = version->items[i];
    item.token =
        shared_->Share(item.storage.get(), allocators[i], version->owner);
    if (version->writable) continue;
    item.storage->set_published_as(version->name);
    std::shared_ptr<VersionHolders>& holders = item.storage->sharing()->holders;
    if (holders == nullptr && account_of_ != nullptr) {
      holders = std::make_shared<VersionHolders>(item.storage->bytes(),
                                                 account_of_(version->owner));
    }
  }
  Entry& entry = names_[{version->owner, version->name}];
  entry.last_number = std::max(entry.last_number, version->number);
  // Saves of two versions may end in any order.
  if (entry.latest != nullptr && entry.latest->number > version->number) {
    Retire(entry, version);
    return;
  }
  const PublishedPtr old = std::move(entry.latest);
  entry.latest = version;
  if (old != nullptr && !entry.loading) Retire(entry, old);
  if (entry.loading) {
    // What was to come from the disk is out of date: who waits gets this.
    entry.loading = false;
    auto waiting = std::move(entry.waiting);
    entry.waiting.clear();
    for (auto& [number, waiter] : waiting) waiter(Find(entry, number));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  num_names_ = names_.size();
}

void PublishedTensors::LetGo(const PublishedVersion& version) {
  for (const PublishedVersion::Item& item : version.items) {
    const StorageSharing* const sharing =
        item.storage ? item.storage->sharing() : nullptr;
    if (sharing != nullptr && sharing->holders != nullptr) {
      sharing->holders->Retire();
    }
  }
}

void PublishedTensors::Retire(Entry& entry, const PublishedPtr& version) {
  LetGo(*version);
  for (PublishedVersion::Item& item : version->items) item.storage.reset();
  entry.older.push_back(version);
  DropGone(entry);
}

void PublishedTensors::DropGone(Entry& entry) {
  entry.older.erase(std::remove_if(entry.older.begin(), entry.older.end(),
                                   [&](const PublishedPtr& version) {
                                     return version->items.empty() ||
                                            std::any_of(version->items.begin(),
                                                        version->items.end(),
                                                        [&](const auto& item) {
                                                          return !shared_->Find(
                                                              item.token,
                                                              version->owner);
                                                        });
                                   }),
                    entry.older.end());
}

void PublishedTensors::Unpublish(const std::string& owner,
                                 const std::string& name, Done done) {
  const auto it = names_.find({owner, name});
  if (it == names_.end() || it->second.latest == nullptr) {
    return done(NotThere(owner, name, owner));
  }
  const auto remove = [this, key = it->first] {
    const auto found = names_.find(key);
    if (found == names_.end()) return;
    auto waiting = std::move(found->second.waiting);
    if (found->second.latest != nullptr) LetGo(*found->second.latest);
    names_.erase(found);
    for (auto& [number, waiter] : waiting) {
      waiter(NotThere(key.first, key.second, key.first));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    num_names_ = names_.size();
  };
  if (durable_ == nullptr) {
    remove();
    return done(PublishedPtr());
  }
  // An earlier version may be on disk even where the latest is not durable.
  durable_->Remove(owner, name,
                   [remove, done = std::move(done)](absl::Status status) {
                     if (!status.ok()) return done(status);
                     remove();
                     done(PublishedPtr());
                   });
}

// ---- finding

void PublishedTensors::Lookup(const std::string& owner, const std::string& name,
                              uint64_t number, const std::string& user,
                              Done done) {
  const auto it = names_.find({owner, name});
  if (it == names_.end() || it->second.latest == nullptr ||
      !it->second.latest->ReadableBy(user)) {
    return done(NotThere(owner, name, user));
  }
  Entry& entry = it->second;
  if (entry.loading) {
    entry.waiting.emplace_back(number, std::move(done));
    if (durable_ != nullptr) durable_->Hurry(owner, name);
    return;
  }
  done(Find(entry, number));
}

absl::StatusOr<PublishedPtr> PublishedTensors::Find(const Entry& entry,
                                                    uint64_t number) const {
  const PublishedVersion& latest = *entry.latest;
  if (number == 0 || number == latest.number) return entry.latest;
  for (const PublishedPtr& version : entry.older) {
    if (version->number != number) continue;
    auto found = std::make_shared<PublishedVersion>(*version);
    for (PublishedVersion::Item& item : found->items) {
      item.storage = shared_->Find(item.token, latest.owner);
      if (!item.storage) found = nullptr;
      if (found == nullptr) break;
    }
    if (found != nullptr) return found;
  }
  return absl::NotFoundError(absl::StrCat(
      "[lookup] '", latest.name, "' has no version ", number,
      number > latest.number ? " yet" : " any more: nobody holds its tensors",
      ". The latest is ", latest.number));
}

absl::Status PublishedTensors::NotThere(const std::string& owner,
                                        const std::string& name,
                                        const std::string& user) const {
  bool more = false;
  std::vector<std::string> known;
  for (const PublishedPtr& version : List(user, "", "", 5, &more)) {
    known.push_back(
        version->owner == user
            ? absl::StrCat("'", version->name, "'")
            : absl::StrCat("'", version->name, "' of ", version->owner));
  }
  return absl::NotFoundError(absl::StrCat(
      "[lookup] nothing that you may read is published as '", name, "'",
      owner == user ? "" : absl::StrCat(" by ", owner),
      ". There is: ", known.empty() ? "nothing" : absl::StrJoin(known, ", "),
      more ? ", and more (published() lists them)" : ""));
}

std::vector<PublishedPtr> PublishedTensors::List(const std::string& user,
                                                 const std::string& after_owner,
                                                 const std::string& after_name,
                                                 size_t limit,
                                                 bool* more) const {
  std::vector<PublishedPtr> found;
  *more = false;
  for (auto it = names_.upper_bound({after_owner, after_name});
       it != names_.end(); ++it) {
    const PublishedPtr& latest = it->second.latest;
    if (latest == nullptr || !latest->ReadableBy(user)) continue;
    if (found.size() == limit) {
      *more = true;
      break;
    }
    found.push_back(latest);
  }
  return found;
}

// ---- loading

void PublishedTensors::AddLoading(PublishedPtr version) {
  const Key key(version->owner, version->name);
  Entry& entry = names_[key];
  if (entry.latest != nullptr) return;
  Charge(version.get());
  entry.last_number = std::max(entry.last_number, version->number);
  entry.latest = std::move(version);
  entry.loading = true;
  std::lock_guard<std::mutex> lock(mutex_);
  num_names_ = names_.size();
}

void PublishedTensors::FinishLoading(
    const PublishedPtr& version, const absl::Status& status,
    const std::shared_ptr<CachingAllocator>& allocator) {
  const auto it = names_.find({version->owner, version->name});
  // Replaced or unpublished meanwhile?
  if (it == names_.end() || it->second.latest != version) return;
  if (status.ok()) {
    return Install(version, std::vector<std::shared_ptr<CachingAllocator>>(
                                version->items.size(), allocator));
  }
  auto waiting = std::move(it->second.waiting);
  names_.erase(it);
  for (auto& [number, waiter] : waiting) waiter(status);
  std::lock_guard<std::mutex> lock(mutex_);
  num_names_ = names_.size();
}

// ---- memory

void PublishedTensors::Sweep() {
  for (auto& [key, entry] : names_) {
    if (!entry.older.empty()) DropGone(entry);
  }
  std::vector<std::shared_ptr<CachingAllocator>> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [user, memory] : memory_) all.push_back(memory);
  }
  for (const auto& memory : all) {
    if (memory->stats().cached > 0) memory->ReleaseCached();
  }
}

PublishedTensors::Statistics PublishedTensors::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Statistics statistics;
  statistics.names = num_names_;
  for (const auto& [user, memory] : memory_) {
    statistics.bytes += memory->stats().in_use;
  }
  return statistics;
}

}  // namespace holdfast
