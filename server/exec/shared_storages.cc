// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/shared_storages.h"

#include <sys/random.h>

#include <algorithm>

#include "server/exec/tensor.h"

namespace holdfast {

std::string NewSecret() {
  std::string bytes(SharedStorages::kTokenBytes, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = getrandom(&bytes[done], bytes.size() - done, 0);
    if (n > 0) done += n;
  }
  return bytes;
}

const std::string& SharedStorages::Share(
    Storage* storage, const std::shared_ptr<CachingAllocator>& allocator,
    const std::string& user) {
  if (storage->sharing() == nullptr) {
    auto sharing = std::make_unique<StorageSharing>();
    sharing->token = NewSecret();
    sharing->table = shared_from_this();
    sharing->allocator = allocator;
    sharing->streams.push_back(storage->block().stream);
    entries_[sharing->token].storage = storage;
    entries_[sharing->token].user = user;
    storage->set_sharing(std::move(sharing));
  }
  return storage->sharing()->token;
}

RefPtr<Storage> SharedStorages::Find(const std::string& token,
                                     const std::string& user) const {
  const auto found = entries_.find(token);
  if (found == entries_.end() || found->second.user != user) {
    return RefPtr<Storage>();
  }
  return RefPtr<Storage>(found->second.storage);
}

void SharedStorages::Hold(const std::string& token, const void* holder) {
  Entry& entry = entries_.at(token);
  entry.holds.emplace_back(holder, entry.storage);
}

void SharedStorages::Release(const std::string& token) {
  const auto found = entries_.find(token);
  if (found == entries_.end() || found->second.holds.empty()) return;
  // Dropped last: the storage may die with it, and its entry.
  const RefPtr<Storage> held = std::move(found->second.holds.back().second);
  found->second.holds.pop_back();
}

void SharedStorages::ReleaseAll(const void* holder) {
  std::vector<RefPtr<Storage>> held;  // likewise
  for (auto& [token, entry] : entries_) {
    auto& holds = entry.holds;
    const auto kept =
        std::partition(holds.begin(), holds.end(),
                       [&](const auto& hold) { return hold.first != holder; });
    for (auto it = kept; it != holds.end(); ++it) {
      held.push_back(std::move(it->second));
    }
    holds.erase(kept, holds.end());
  }
}

}  // namespace holdfast
