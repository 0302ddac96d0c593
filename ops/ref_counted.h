// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RefCounted and RefPtr: intrusive, atomic reference counting. Tensors,
// storages and tape nodes die the moment their last reference goes, on the
// thread that drops it.
// Thread-safety: the count is atomic; the object is as safe as its class.
#ifndef HOLDFAST_OPS_REF_COUNTED_H_
#define HOLDFAST_OPS_REF_COUNTED_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace holdfast {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() const {
    // A sole owner skips the locked instruction.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<RefCounted*>(this)->Destroy();
    }
  }
  bool unique() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~RefCounted() = default;
  // Called when the last reference goes. Overridden where plain `delete` would
  // recurse along a long chain.
  virtual void Destroy() { delete this; }

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// Shared ownership of a RefCounted. Null by default.
template <typename T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}  // NOLINT: null literal reads as "no tensor"
  explicit RefPtr(T* object) : object_(object) {
    if (object_ != nullptr) object_->Ref();
  }
  RefPtr(const RefPtr& other) : RefPtr(other.object_) {}
  RefPtr(RefPtr&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  RefPtr(const RefPtr<U>& other) : RefPtr(other.get()) {}  // NOLINT: upcast
  ~RefPtr() { reset(); }

  RefPtr& operator=(RefPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  void reset() {
    if (T* object = std::exchange(object_, nullptr)) object->Unref();
  }
  // Takes over a reference that the caller has; the inverse of release().
  static RefPtr Adopt(T* object) {
    RefPtr adopted;
    adopted.object_ = object;
    return adopted;
  }
  // Gives up ownership without dropping the reference.
  T* release() { return std::exchange(object_, nullptr); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const RefPtr& a, const RefPtr& b) {
    return a.object_ == b.object_;
  }
  friend bool operator!=(const RefPtr& a, const RefPtr& b) {
    return a.object_ != b.object_;
  }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
RefPtr<T> MakeRef(Args&&... args) {
  return RefPtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace holdfast

#endif  // HOLDFAST_OPS_REF_COUNTED_H_
