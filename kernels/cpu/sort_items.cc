// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Few items are compared; many are distributed by the digits of their keys,
// lowest first (LSD radix sort), which costs a few passes whatever the values.
#include "kernels/cpu/sort_items.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/parallel.h"

namespace holdfast::cpu {
namespace {

// Below this many items comparing is faster than clearing counters.
constexpr int64_t kCompared = 256;
// From here on wide digits: fewer passes over memory, more counters.
constexpr int64_t kWide = 16384;
// Between two looks: about a millisecond.
constexpr int64_t kLook = int64_t{1} << 17;

template <int kBits, typename Item>
HOLDFAST_INLINE uint32_t Digit(const Item& item, int pass) {
  return static_cast<uint32_t>(item.key() >> (pass * kBits)) &
         ((1u << kBits) - 1);
}

template <int kBits, typename Item>
bool RadixSort(const KernelContext& context, Item* items, Item* temp,
               int64_t n) {
  constexpr int kPasses = (Item::kKeyBits + kBits - 1) / kBits;
  constexpr int kDigits = 1 << kBits;
  // One thread's; rows are sorted one at a time.
  static thread_local int64_t counts[kPasses][kDigits];
  std::memset(counts, 0, sizeof(counts));
  const auto count_all = [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      for (int p = 0; p < kPasses; ++p) ++counts[p][Digit<kBits>(items[i], p)];
    }
  };
  if (!SerialFor(context, n, kLook, count_all)) return false;
  Item* from = items;
  Item* to = temp;
  for (int p = 0; p < kPasses; ++p) {
    int64_t* count = counts[p];
    if (count[Digit<kBits>(from[0], p)] == n) continue;  // all the same
    int64_t start = 0;
    for (int d = 0; d < kDigits; ++d) {
      const int64_t size = count[d];
      count[d] = start;
      start += size;
    }
    const auto distribute = [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        to[count[Digit<kBits>(from[i], p)]++] = from[i];
      }
    };
    if (!SerialFor(context, n, kLook, distribute)) return false;
    std::swap(from, to);
  }
  if (from != items) std::memcpy(items, from, n * sizeof(Item));
  return true;
}

template <typename Item>
bool Sort(const KernelContext& context, Item* items, Item* temp, int64_t n) {
  if (n < kCompared) {
    std::sort(items, items + n);
    return true;
  }
  return n < kWide ? RadixSort<8>(context, items, temp, n)
                   : RadixSort<11>(context, items, temp, n);
}

// The same with every pass cut into a part per thread. The result is that of
// one thread, since a sort of different items has only one.
template <typename Item>
bool SortParallel(const KernelContext& context, Item* items, Item* temp,
                  int64_t n) {
  constexpr int kBits = 11, kDigits = 1 << kBits;
  constexpr int kPasses = (Item::kKeyBits + kBits - 1) / kBits;
  constexpr int kMaxParts = 32;
  const int64_t parts = std::min(context.num_threads, kMaxParts);
  if (parts < 2 || n < 8 * kWide) {
    return Sort(context, items, temp, n);
  }
  std::vector<int64_t> counts(parts * kDigits);
  Item* from = items;
  Item* to = temp;
  for (int p = 0; p < kPasses; ++p) {
    ParallelFor(context, parts, 1, [&](int64_t b, int64_t e) {
      for (int64_t part = b; part < e; ++part) {
        int64_t* count = counts.data() + part * kDigits;
        std::fill(count, count + kDigits, 0);
        const Item* mine = from + n * part / parts;
        const int64_t size = n * (part + 1) / parts - n * part / parts;
        SerialFor(context, size, kLook, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            ++count[Digit<kBits>(mine[i], p)];
          }
        });
      }
    });
    if (context.Stopped()) return false;
    int64_t start = 0;
    bool same = false;
    for (int d = 0; d < kDigits; ++d) {
      const int64_t before = start;
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t size = counts[part * kDigits + d];
        counts[part * kDigits + d] = start;
        start += size;
      }
      same |= start - before == n;
    }
    if (same) continue;
    ParallelFor(context, parts, 1, [&](int64_t b, int64_t e) {
      for (int64_t part = b; part < e; ++part) {
        int64_t* count = counts.data() + part * kDigits;
        const Item* mine = from + n * part / parts;
        const int64_t size = n * (part + 1) / parts - n * part / parts;
        SerialFor(context, size, kLook, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            to[count[Digit<kBits>(mine[i], p)]++] = mine[i];
          }
        });
      }
    });
    std::swap(from, to);
  }
  if (from != items) {
    ParallelFor(context, n, kWide, [&](int64_t b, int64_t e) {
      std::memcpy(items + b, from + b, (e - b) * sizeof(Item));
    });
  }
  return !context.Stopped();
}

// Narrows the candidates by one digit after the other, highest first.
template <typename Item>
bool Select(const KernelContext& context, Item* items, int64_t n, int64_t k,
            Item* selected) {
  constexpr int kBits = 11, kDigits = 1 << kBits;
  int64_t counts[kDigits];
  int shift = Item::kKeyBits;
  while (n >= 2048 && shift > 0) {
    shift = std::max(shift - kBits, 0);
    const auto digit = [&](const Item& item) {
      return static_cast<uint32_t>(item.key() >> shift) & (kDigits - 1);
    };
    std::memset(counts, 0, sizeof(counts));
    const auto count = [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++counts[digit(items[i])];
    };
    if (!SerialFor(context, n, kLook, count)) return false;
    uint32_t chosen = 0;
    while (k >= counts[chosen]) k -= counts[chosen++];
    if (counts[chosen] == n) continue;
    int64_t kept = 0;
    const auto keep = [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const Item item = items[i];
        items[kept] = item;
        kept += digit(item) == chosen;
      }
    };
    if (!SerialFor(context, n, kLook, keep)) return false;
    n = kept;
  }
  // Else equal keys, in order.
  if (shift != 0) std::nth_element(items, items + k, items + n);
  *selected = items[k];
  return true;
}

}  // namespace

bool SortItems(const KernelContext& context, SmallItem* items, SmallItem* temp,
               int64_t n) {
  return SortParallel(context, items, temp, n);
}
bool SortItems(const KernelContext& context, LargeItem* items, LargeItem* temp,
               int64_t n) {
  return SortParallel(context, items, temp, n);
}

bool SelectItem(const KernelContext& context, SmallItem* items, int64_t n,
                int64_t k, SmallItem* selected) {
  return Select(context, items, n, k, selected);
}
bool SelectItem(const KernelContext& context, LargeItem* items, int64_t n,
                int64_t k, LargeItem* selected) {
  return Select(context, items, n, k, selected);
}

}  // namespace holdfast::cpu
