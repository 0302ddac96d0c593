// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// unique: the different elements, in order or as neighbours. Integers that lie
// close together are counted in a table; everything else is brought in order
// and cut into runs. The first step tells how many there are and carries what
// it found over to the second.
#include <algorithm>
#include <limits>
#include <new>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/count_bins.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/sort_rows.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// What the first step finds. In scratch memory; nothing in it needs destroying.
struct Groups {
  TensorSpec spec;    // of `input`
  TensorView input;   // contiguous, of a type that kernels compute in
  int64_t count = 0;  // different elements
  // Counted: how often each of low .. low + range - 1 occurs.
  int64_t* occurrences = nullptr;
  int64_t low = 0, range = 0;
  // Otherwise: SmallItem or LargeItem, equal keys side by side.
  void* items = nullptr;
};

absl::Status NoScratch() {
  return absl::ResourceExhaustedError("scratch memory for unique");
}

// Types whose elements a table may count.
template <typename T>
inline constexpr bool kCounted =
    std::is_integral_v<T> && !std::is_same_v<T, bool>;

// NaN differ from each other, as elsewhere.
template <typename T>
bool Starts(SortKey<T> key, SortKey<T> before) {
  const bool nan = std::is_floating_point_v<T> && key == ~SortKey<T>{0};
  return key != before || nan;
}

// Calls run(i, start) for each of n items; start: a group's first. False if the
// kernel is to stop.
template <typename T, typename Item, typename Run>
bool ForEachItem(const KernelContext& context, const Item* items, int64_t n,
                 const Run& run) {
  using K = SortKey<T>;
  constexpr int64_t kLook = int64_t{1} << 17;
  return SerialFor(context, n, kLook, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run(i, i == 0 || Starts<T>(static_cast<K>(items[i].key()),
                                 static_cast<K>(items[i - 1].key())));
    }
  });
}

struct Limits {
  int64_t low = std::numeric_limits<int64_t>::max();
  int64_t high = std::numeric_limits<int64_t>::min();
};

template <typename T>
Limits LimitsOf(KernelContext& context, const T* p, int64_t n) {
  constexpr int64_t kParts = 16;
  Limits parts[kParts];
  ParallelFor(context, kParts, std::max<int64_t>(1, 16384 * kParts / n),
              [&](int64_t b, int64_t e) {
                for (int64_t part = b; part < e; ++part) {
                  T low = std::numeric_limits<T>::max();
                  T high = std::numeric_limits<T>::lowest();
                  const int64_t end = n * (part + 1) / kParts;
                  for (int64_t i = n * part / kParts; i < end; ++i) {
                    const T x = p[i];
                    low = x < low ? x : low;
                    high = x > high ? x : high;
                  }
                  parts[part] = {low, high};
                }
              });
  Limits all;
  for (const Limits& part : parts) {
    all.low = std::min(all.low, part.low);
    all.high = std::max(all.high, part.high);
  }
  return all;
}

// Fills in the table; false if elements lie too far apart for one.
template <typename T>
absl::StatusOr<bool> Count(KernelContext& context, Groups* groups) {
  const int64_t n = groups->spec.numel();
  const T* p = groups->input.as<T>();
  const Limits limits = LimitsOf(context, p, n);
  const uint64_t range = static_cast<uint64_t>(limits.high) -
                         static_cast<uint64_t>(limits.low) + 1;
  if (range == 0 || range > 65536 || range > static_cast<uint64_t>(4 * n)) {
    return false;
  }
  groups->low = limits.low;
  groups->range = static_cast<int64_t>(range);
  groups->occurrences =
      static_cast<int64_t*>(context.Scratch(range * sizeof(int64_t)));
  if (groups->occurrences == nullptr) return NoScratch();
  absl::Status s = CountBins<int64_t>(context, p, n, groups->low, groups->range,
                                      groups->occurrences,
                                      [](int64_t& count, int64_t) { ++count; });
  if (!s.ok()) return s;
  if (context.Stopped()) return absl::AbortedError("stopped");
  groups->count = groups->range - std::count(groups->occurrences,
                                             groups->occurrences + range, 0);
  return true;
}

template <typename T>
absl::Status FindGroups(KernelContext& context, bool sorted, Groups* groups) {
  const int64_t n = groups->spec.numel();
  if constexpr (kCounted<T>) {
    if (sorted) {
      absl::StatusOr<bool> counted = Count<T>(context, groups);
      if (!counted.ok() || *counted) return counted.status();
    }
  }
  return DispatchItem<T>(n, [&](auto tag) -> absl::Status {
    using Item = typename decltype(tag)::type;
    auto* items = static_cast<Item*>(context.Scratch(2 * n * sizeof(Item)));
    if (items == nullptr) return NoScratch();
    const bool whole =
        EncodeItems(context, static_cast<const T*>(groups->input.as<T>()), 1, n,
                    0, items) &&
        (!sorted || SortItems(context, items, items + n, n)) &&
        ForEachItem<T>(context, items, n,
                       [&](int64_t, bool start) { groups->count += start; });
    // The kernel would follow positions that nobody wrote.
    if (!whole) return absl::AbortedError("stopped");
    groups->items = items;
    return absl::OkStatus();
  });
}

// Where the results go; null: not asked for.
template <typename T>
struct Results {
  T* values;
  int64_t* inverse;
  int64_t* counts;
};

template <typename T>
absl::Status FromTable(KernelContext& context, const Groups& groups,
                       const Results<T>& to) {
  auto* ranks =
      static_cast<int64_t*>(context.Scratch(groups.range * sizeof(int64_t)));
  if (ranks == nullptr) return NoScratch();
  int64_t rank = 0;
  for (int64_t i = 0; i < groups.range; ++i) {
    ranks[i] = rank;
    if (groups.occurrences[i] == 0) continue;
    to.values[rank] = static_cast<T>(groups.low + i);
    if (to.counts != nullptr) to.counts[rank] = groups.occurrences[i];
    ++rank;
  }
  if (to.inverse == nullptr) return absl::OkStatus();
  const T* p = groups.input.as<T>();
  ParallelFor(context, groups.spec.numel(), 16384, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const uint64_t at = static_cast<uint64_t>(LoadOnce(p + i)) -
                          static_cast<uint64_t>(groups.low);
      // An element may have changed since it was counted.
      const bool known = at < static_cast<uint64_t>(groups.range);
      to.inverse[i] = known ? std::min(ranks[at], groups.count - 1) : 0;
    }
  });
  return absl::OkStatus();
}

template <typename T, typename Item>
void FromItems(const KernelContext& context, const Groups& groups,
               const Results<T>& to) {
  using K = SortKey<T>;
  const auto* items = static_cast<const Item*>(groups.items);
  const T* p = groups.input.as<T>();
  int64_t group = -1;
  const auto take = [&](int64_t i, bool start) {
    const int64_t at = items[i].index();
    if (start) {
      ++group;
      to.values[group] = DecodeKey<T>(static_cast<K>(items[i].key()), p + at);
      if (to.counts != nullptr) to.counts[group] = 0;
    }
    if (to.counts != nullptr) ++to.counts[group];
    if (to.inverse != nullptr) to.inverse[at] = group;
  };
  ForEachItem<T>(context, items, groups.spec.numel(), take);
}

}  // namespace

HOLDFAST_CPU_SIZES(unique) {
  void* place = context.Scratch(sizeof(Groups));
  if (place == nullptr) return NoScratch();
  auto* groups = new (place) Groups;
  absl::Status s =
      MakeContiguous(context, inputs[0], ComputeType(inputs[0].spec->dtype),
                     &groups->spec, &groups->input);
  if (!s.ok()) return s;
  if (groups->input.data == inputs[0].data) {
    groups->spec = *inputs[0].spec;
    groups->input.spec = &groups->spec;
  }
  if (groups->spec.numel() > 0) {
    const bool sorted = attrs.Bool("sorted");
    s = DispatchDType(groups->spec.dtype, [&](auto tag) {
      return FindGroups<typename decltype(tag)::type>(context, sorted, groups);
    });
    if (!s.ok()) return s;
  }
  context.carried = groups;
  for (int64_t& size : sizes) size = groups->count;
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(unique) {
  const Groups& groups = *static_cast<const Groups*>(context.carried);
  if (groups.count == 0) return absl::OkStatus();
  return DispatchDType(groups.spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    TensorSpec spec = *outputs[0].spec;
    TensorView values = outputs[0];
    if (spec.dtype != groups.spec.dtype) {
      spec.dtype = groups.spec.dtype;
      values = {context.Scratch(spec.nbytes()), &spec};
      if (values.data == nullptr) return NoScratch();
    }
    const Results<T> to = {
        values.as<T>(),
        attrs.Bool("inverse") ? outputs[1].as<int64_t>() : nullptr,
        attrs.Bool("counts") ? outputs[2].as<int64_t>() : nullptr};
    absl::Status s;
    if (groups.occurrences != nullptr) {
      if constexpr (kCounted<T>) s = FromTable<T>(context, groups, to);
    } else {
      DispatchItem<T>(groups.spec.numel(), [&](auto item) {
        FromItems<T, typename decltype(item)::type>(context, groups, to);
      });
    }
    if (values.data != outputs[0].data)
      CopyStrided(context, values, outputs[0]);
    return s;
  });
}

}  // namespace holdfast::cpu
