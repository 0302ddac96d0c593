// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// VersionHolders: who pays for one storage of a published version. Its owner,
// while a name stands for it; once it was replaced, the first of the other
// users who still hold it, above their limits if need be: no reader can fill
// the publisher's memory with what the publisher has given up. Thread-safety:
// worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_VERSION_HOLDERS_H_
#define HOLDFAST_SERVER_EXEC_VERSION_HOLDERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/memory/memory_ledger.h"

namespace holdfast {

class VersionHolders {
 public:
  // `bytes` are on the account of `owner`.
  VersionHolders(uint64_t bytes, std::shared_ptr<MemoryAccount> owner)
      : bytes_(bytes), owner_(std::move(owner)), payer_(owner_) {}

  // No name stands for it any more.
  void Retire() {
    retired_ = true;
    Settle();
  }

  // A reader's, as long as it lives.
  class Hold {
   public:
    Hold(std::shared_ptr<VersionHolders> holders,
         std::shared_ptr<MemoryAccount> reader)
        : holders_(std::move(holders)), reader_(std::move(reader)) {
      holders_->readers_.push_back(reader_.get());
      holders_->Settle();
    }
    ~Hold() {
      auto& readers = holders_->readers_;
      readers.erase(std::find(readers.begin(), readers.end(), reader_.get()));
      holders_->Settle();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const std::shared_ptr<VersionHolders> holders_;
    const std::shared_ptr<MemoryAccount> reader_;
  };

  const MemoryAccount* owner() const { return owner_.get(); }

 private:
  void Settle() {
    const std::shared_ptr<MemoryAccount> payer =
        retired_ && !readers_.empty() ? readers_.front()->shared_from_this()
                                      : owner_;
    if (payer == payer_) return;
    payer->Take(bytes_);
    payer_->Return(bytes_);
    payer_ = payer;
  }

  const uint64_t bytes_;
  const std::shared_ptr<MemoryAccount> owner_;
  std::shared_ptr<MemoryAccount> payer_;
  std::vector<MemoryAccount*> readers_;  // one for each Hold
  bool retired_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_VERSION_HOLDERS_H_
