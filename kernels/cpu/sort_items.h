// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What sorting works on: an element as an unsigned key whose order is the
// element's, together with its position. Items are all different, so that
// every way to sort or select them is stable and gives one answer.
//
// The order is PyTorch's: NaN is above everything, and equal to NaN; -0 equals
// 0. Descending order complements the key: equal elements keep their order.
// Thread-safety: pure functions on their arguments.
#ifndef HOLDFAST_KERNELS_CPU_SORT_ITEMS_H_
#define HOLDFAST_KERNELS_CPU_SORT_ITEMS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/base/optimization.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

template <typename T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename K>
inline constexpr K kSignBit = K{1} << (sizeof(K) * 8 - 1);

template <typename T>
HOLDFAST_INLINE SortKey<T> EncodeKey(const T* p) {
  using K = SortKey<T>;
  const T x = LoadElement(p);
  if constexpr (std::is_floating_point_v<T>) {
    K bits;
    std::memcpy(&bits, &x, sizeof(K));
    const K sign = K{0} - (bits >> (sizeof(K) * 8 - 1));
    K key = bits ^ (sign | kSignBit<K>);
    key = x == 0 ? kSignBit<K> : key;
    return x != x ? ~K{0} : key;
  } else if constexpr (sizeof(T) == 1) {
    return static_cast<uint8_t>(x);
  } else {
    return static_cast<K>(x) ^ kSignBit<K>;
  }
}

// The element that `key` came from, which is *p for keys that stand for
// several. `p` is always readable.
template <typename T>
HOLDFAST_INLINE T DecodeKey(SortKey<T> key, const T* p) {
  using K = SortKey<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (key == kSignBit<K> || key == ~K{0}) return *p;
    const K sign = (key >> (sizeof(K) * 8 - 1)) - K{1};
    const K bits = key ^ (sign | kSignBit<K>);
    T x;
    std::memcpy(&x, &bits, sizeof(K));
    return x;
  } else if constexpr (sizeof(T) == 1) {
    return static_cast<T>(key);
  } else {
    return static_cast<T>(key ^ kSignBit<K>);
  }
}

// Key and position in one word.
struct SmallItem {
  static constexpr int kKeyBits = 32;
  uint64_t bits;

  static HOLDFAST_INLINE SmallItem Make(uint32_t key, int64_t index) {
    return {uint64_t{key} << 32 | static_cast<uint64_t>(index)};
  }
  uint32_t key() const { return static_cast<uint32_t>(bits >> 32); }
  int64_t index() const { return static_cast<uint32_t>(bits); }
  friend bool operator<(SmallItem a, SmallItem b) { return a.bits < b.bits; }
};

struct LargeItem {
  static constexpr int kKeyBits = 64;
  uint64_t bits;
  int64_t position;

  static HOLDFAST_INLINE LargeItem Make(uint64_t key, int64_t index) {
    return {key, index};
  }
  uint64_t key() const { return bits; }
  int64_t index() const { return position; }
  friend bool operator<(const LargeItem& a, const LargeItem& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.position < b.position;
  }
};

inline constexpr int64_t kMaxSmallItems = int64_t{1} << 32;

// Calls fn(TypeTag<Item>) with the item that fits keys of T and positions
// below n.
template <typename T, typename F>
inline auto DispatchItem(int64_t n, F&& fn) {
  if (sizeof(T) == 8 || n > kMaxSmallItems) return fn(TypeTag<LargeItem>{});
  if constexpr (sizeof(T) < 8) return fn(TypeTag<SmallItem>{});
}

// Counts the steps of what cannot be cut into ranges, such as the comparisons
// of std::sort, and looks now and then whether the kernel is to stop. If so it
// throws, as far as UntilStopped.
// Thread-safety: none, it is one thread's.
class StepCounter {
 public:
  struct Stop {};

  explicit StepCounter(const KernelContext& context) : context_(context) {}
  HOLDFAST_INLINE void Count(int64_t steps = 1) {
    left_ -= steps;
    if (ABSL_PREDICT_FALSE(left_ < 0)) Look();
  }

 private:
  static constexpr int64_t kSteps = int64_t{1} << 17;

  void Look() {
    if (context_.Stopped()) throw Stop();
    left_ = kSteps;
  }

  const KernelContext& context_;
  int64_t left_ = kSteps;
};

// Calls fn(steps), which counts its steps; false if it was stopped.
template <typename F>
bool UntilStopped(const KernelContext& context, F&& fn) {
  StepCounter steps(context);
  try {
    fn(steps);
  } catch (const StepCounter::Stop&) {
    return false;
  }
  return true;
}

// The first k of n items, and the k-th after them, as std::nth_element.
template <typename Item>
bool PartItems(const KernelContext& context, Item* items, int64_t k,
               int64_t n) {
  return UntilStopped(context, [&](StepCounter& steps) {
    std::nth_element(items, items + k, items + n,
                     [&](const Item& a, const Item& b) {
                       steps.Count();
                       return a < b;
                     });
  });
}

// Sorts `items`, which are in the order of their positions, on the context's
// threads. `temp` has room for n more. Here and below: false if the kernel is
// to stop. The items are then any, and so are their positions.
bool SortItems(const KernelContext& context, SmallItem* items, SmallItem* temp,
               int64_t n);
bool SortItems(const KernelContext& context, LargeItem* items, LargeItem* temp,
               int64_t n);

// *selected = the k-th smallest (from 0) of items in the order of their
// positions, some of which may be overwritten. REQUIRES: 0 <= k < n.
bool SelectItem(const KernelContext& context, SmallItem* items, int64_t n,
                int64_t k, SmallItem* selected);
bool SelectItem(const KernelContext& context, LargeItem* items, int64_t n,
                int64_t k, LargeItem* selected);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_SORT_ITEMS_H_
