// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Storage and Tensor: device memory with its version counter, and a strided
// view of it that autograd can follow.
// Thread-safety: worker thread only (reference counts may drop elsewhere).
#ifndef HOLDFAST_SERVER_EXEC_TENSOR_H_
#define HOLDFAST_SERVER_EXEC_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "autograd/variable.h"
#include "kernels/kernel.h"
#include "ops/ref_counted.h"
#include "ops/tensor_spec.h"
#include "server/exec/integer_bounds.h"
#include "server/exec/shared_storages.h"
#include "server/exec/version_holders.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

// What a storage that other sessions may open has beside its block.
struct StorageSharing {
  std::string token;
  std::shared_ptr<SharedStorages> table;
  // The session that made it may end first.
  std::shared_ptr<CachingAllocator> allocator;
  // Nobody may write it: the name that it is published as. "": all may.
  std::string published_as;
  // Of a published one that is read-only.
  std::shared_ptr<VersionHolders> holders;
  // Of an asynchronous device: those that used it, since one waited for the
  // others.
  absl::InlinedVector<StreamId, 2> streams;
};

// Owns one block; frees it into its allocator, which must outlive it unless the
// storage is shared.
class Storage final : public RefCounted {
 public:
  Storage(CachingAllocator* allocator, MemoryBlock* block)
      : allocator_(allocator), block_(block) {}
  // The same block as another user's session holds it: `original` is read-only.
  Storage(const RefPtr<Storage>& original,
          std::shared_ptr<MemoryAccount> reader)
      : allocator_(original->allocator_),
        block_(original->block_),
        original_(original),
        hold_(std::make_unique<VersionHolders::Hold>(
            original->sharing()->holders, std::move(reader))) {}

  char* data() const { return static_cast<char*>(block_->data); }
  // What was asked for: behind it, up to the block's size, may be elements of
  // tensors that are gone.
  size_t bytes() const { return block_->requested; }
  const MemoryBlock& block() const { return *block_; }
  const CachingAllocator* allocator() const { return allocator_; }

  // Null: no other session can have it.
  const StorageSharing* sharing() const {
    return original_ ? original_->sharing() : sharing_.get();
  }
  StorageSharing* sharing() {
    return original_ ? original_->sharing() : sharing_.get();
  }
  // REQUIRES: it is no reader's.
  void set_sharing(std::unique_ptr<StorageSharing> sharing) {
    sharing_ = std::move(sharing);
  }

  // The published name whose memory this is, which no op may write; null: not
  // so.
  const std::string* read_only() const {
    const StorageSharing* const shared = sharing();
    return shared == nullptr || shared->published_as.empty()
               ? nullptr
               : &shared->published_as;
  }
  // REQUIRES: it is shared.
  void set_published_as(const std::string& name) {
    sharing_->published_as = name;
  }

  // A copy on that stream, not the one that the memory is for, may still read
  // it: whoever writes it next takes the stream and lets it go first.
  void NoteReader(StreamId stream) { owner()->reader_ = stream; }
  StreamId TakeReader() { return std::exchange(owner()->reader_, 0); }

  // What is known of all elements that lie in it, as integers of one type;
  // null: nothing. Only of memory that host code does not write.
  struct Integers {
    IntegerBounds bounds;
    DType dtype;
  };
  const Integers* integers() const { return integers_.get(); }
  void set_integers(std::unique_ptr<Integers> integers) {
    integers_ = std::move(integers);
  }

  // Writes after creation. `last_writer` is a static string such as "add_".
  uint32_t version = 0;
  const char* last_writer = "";

 protected:
  ~Storage() override {
    if (original_) return;  // whose block it is
    if (sharing_ != nullptr) {
      sharing_->table->Forget(sharing_->token);
      // Their work may still be on its way.
      for (const StreamId stream : sharing_->streams) {
        if (stream != block_->stream) allocator_->UseOnStream(block_, stream);
      }
    }
    allocator_->Free(block_);
  }

 private:
  Storage* owner() { return original_ ? original_.get() : this; }

  CachingAllocator* const allocator_;
  MemoryBlock* const block_;
  const RefPtr<Storage> original_;
  const std::unique_ptr<VersionHolders::Hold> hold_;  // ends before it
  std::unique_ptr<StorageSharing> sharing_;
  std::unique_ptr<Integers> integers_;
  StreamId reader_ = 0;
};

// How often a tensor was written, and by what.
struct VersionCounter final : public RefCounted {
  uint32_t version = 0;
  const char* last_writer = "";  // a static string such as "add_"

 protected:
  ~VersionCounter() override = default;
};

class Tensor final : public Variable {
 public:
  // REQUIRES: the spec fits the storage.
  // `versions`: null for the storage's own count. Tensor.data and its views
  // share one of theirs, since what they write is to stay unseen.
  Tensor(TensorSpec spec, RefPtr<Storage> storage,
         RefPtr<VersionCounter> versions = nullptr)
      : Variable(std::move(spec)),
        storage_(std::move(storage)),
        versions_(std::move(versions)) {}

  const RefPtr<Storage>& storage() const { return storage_; }
  void* data() const {
    return storage_->data() + spec_.offset * ItemSize(spec_.dtype);
  }
  TensorView view() const { return {data(), &spec_}; }

  const RefPtr<VersionCounter>& versions() const { return versions_; }

  uint32_t version() const override {
    return versions_ ? versions_->version : storage_->version;
  }
  const char* last_writer() const override {
    return versions_ ? versions_->last_writer : storage_->last_writer;
  }
  // Counts a write by the op `writer`, a static string.
  void CountWrite(const char* writer) {
    ++(versions_ ? versions_->version : storage_->version);
    (versions_ ? versions_->last_writer : storage_->last_writer) = writer;
  }

 private:
  RefPtr<Storage> storage_;
  RefPtr<VersionCounter> versions_;
};

// Values of the executor are always Tensors.
inline Tensor* AsTensor(const Value& value) {
  return static_cast<Tensor*>(value.get());
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_TENSOR_H_
