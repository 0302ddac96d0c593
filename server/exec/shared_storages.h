// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SharedStorages: storages that sessions of this daemon may open by a token
// nobody can guess. A token does not keep its storage alive: handles do, in
// whatever session, and holds, for a token that is on its way to another
// program. Named tensors will be names for such tokens.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_SHARED_STORAGES_H_
#define HOLDFAST_SERVER_EXEC_SHARED_STORAGES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ops/ref_counted.h"

namespace holdfast {

class CachingAllocator;
class Storage;

// 128 random bits. Blocks until the system has them, at boot.
std::string NewSecret();

class SharedStorages : public std::enable_shared_from_this<SharedStorages> {
 public:
  static constexpr size_t kTokenBytes = 16;

  // The storage's token, made when first asked for, for `user`'s sessions. From
  // then on the storage owns a share of `allocator`, which is where its block
  // is from: it may outlive the session that made it.
  const std::string& Share(Storage* storage,
                           const std::shared_ptr<CachingAllocator>& allocator,
                           const std::string& user = "");
  // Null: never shared, gone, or another user's.
  RefPtr<Storage> Find(const std::string& token,
                       const std::string& user = "") const;
  // The storage dies.
  void Forget(const std::string& token) { entries_.erase(token); }

  // Keeps the storage alive for `holder`; several times, if called so.
  void Hold(const std::string& token, const void* holder);
  // Ends one hold, whoever's: the token arrived.
  void Release(const std::string& token);
  // Ends all of a holder's.
  void ReleaseAll(const void* holder);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Storage* storage = nullptr;
    std::string user;
    std::vector<std::pair<const void*, RefPtr<Storage>>> holds;
  };
  absl::flat_hash_map<std::string, Entry> entries_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_SHARED_STORAGES_H_
