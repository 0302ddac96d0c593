// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// sort, topk, kthvalue, median, mode.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/sort_rows.h"

namespace holdfast::cpu {

absl::Status MakeRowLayout(const TensorSpec& input, int64_t dim,
                           const TensorSpec& output, RowLayout* layout) {
  absl::StatusOr<int> along = NormalizeDim(dim, input.rank());
  if (!along.ok()) return along.status();
  if (input.rank() == 0) return absl::OkStatus();
  layout->n = input.shape[*along];
  layout->stride = input.strides[*along];
  const bool same_rank = output.rank() == input.rank();
  if (same_rank) layout->out_stride = output.strides[*along];
  for (int d = 0; d < input.rank(); ++d) {
    if (d == *along) continue;
    layout->rows *= input.shape[d];
    layout->shape.push_back(input.shape[d]);
    layout->strides.push_back(input.strides[d]);
    const int out = same_rank || d < *along ? d : d - 1;
    layout->out_strides.push_back(output.strides[out]);
  }
  return absl::OkStatus();
}

namespace {

constexpr uint64_t kDescending = ~uint64_t{0};

// The first `k` items of a row as values and indices.
template <typename T, typename Item>
void DecodeItems(const KernelContext& context, const Item* items, int64_t k,
                 uint64_t flip, const T* p, int64_t stride, T* values,
                 int64_t* indices, int64_t out_stride) {
  using K = SortKey<T>;
  const K mask = static_cast<K>(flip);
  const auto decode = [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t index = items[i].index();
      values[i * out_stride] = DecodeKey<T>(
          static_cast<K>(items[i].key()) ^ mask, p + index * stride);
      indices[i * out_stride] = index;
    }
  };
  ParallelFor(context, k, 16384, decode);
}

// Sorts whole rows and keeps the first k of each.
template <typename T, typename Item>
absl::Status SortRows(KernelContext& context, const RowLayout& layout,
                      int64_t k, uint64_t flip, const T* in, T* values,
                      int64_t* indices) {
  const int64_t n = layout.n;
  return ForEachRow(
      context, layout, 2 * n * sizeof(Item),
      [&](const KernelContext& threads, int64_t from, int64_t to,
          char* scratch) {
        Item* items = reinterpret_cast<Item*>(scratch);
        const T* p = in + from;
        // Items that no loop has written have indices that lead anywhere.
        if (!EncodeItems(threads, p, layout.stride, n, flip, items) ||
            !SortItems(threads, items, items + n, n)) {
          return;
        }
        DecodeItems(threads, items, k, flip, p, layout.stride, values + to,
                    indices + to, layout.out_stride);
      });
}

// Keys of a block, and the smallest.
template <typename T>
struct EncodeBlockBody {
  using K = SortKey<T>;
  static HOLDFAST_INLINE K Run(const T* p, int64_t stride, int64_t n, K mask,
                               K* keys) {
    K least = ~K{0};
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) keys[i] = EncodeKey(p + i) ^ mask;
    } else {
      for (int64_t i = 0; i < n; ++i)
        keys[i] = EncodeKey(p + i * stride) ^ mask;
    }
    for (int64_t i = 0; i < n; ++i) least = keys[i] < least ? keys[i] : least;
    return least;
  }
};

// The k least of the positions [begin, end), in any order, at the front of
// `items`, which has room for `capacity` > k. Elements are let in when they
// beat the k-th of those seen, and thrown out again when the room is used up.
// Their number; 0 if the kernel is to stop.
template <typename T, typename Item>
int64_t LeastItems(const KernelContext& context, const T* p, int64_t stride,
                   int64_t begin, int64_t end, int64_t k, uint64_t flip,
                   Item* items, int64_t capacity) {
  using K = SortKey<T>;
  constexpr int64_t kBlock = 128, kLook = int64_t{1} << 20;
  K keys[kBlock];
  int64_t count = 0;
  bool full = false;
  K limit = ~K{0};
  const auto shrink = [&] {
    if (!PartItems(context, items, k - 1, count)) return false;
    count = k;
    limit = static_cast<K>(items[k - 1].key());
    full = true;
    return true;
  };
  for (int64_t i = begin; i < end; i += kBlock) {
    if ((i - begin) % kLook == kLook - kBlock && context.Stopped()) return 0;
    const int64_t n = std::min(kBlock, end - i);
    const K least = Vectorised<EncodeBlockBody<T>>(
        p + i * stride, stride, n, static_cast<K>(flip), static_cast<K*>(keys));
    if (full && least >= limit) continue;
    for (int64_t j = 0; j < n; ++j) {
      // An equal key at a later position does not beat.
      if (full && keys[j] >= limit) continue;
      items[count++] = Item::Make(keys[j], i + j);
      if (count == capacity && !shrink()) return 0;
    }
  }
  if (count > k && !shrink()) return 0;
  return count;
}

// Sorts items that are in any order; false if the kernel is to stop.
template <typename Item>
bool SortFew(const KernelContext& context, Item* items, int64_t n) {
  return UntilStopped(context, [&](StepCounter& steps) {
    std::sort(items, items + n, [&](const Item& a, const Item& b) {
      steps.Count();
      return a < b;
    });
  });
}

template <typename T, typename Item>
absl::Status TopRows(KernelContext& context, const RowLayout& layout, int64_t k,
                     uint64_t flip, bool sorted, const T* in, T* values,
                     int64_t* indices) {
  const int64_t n = layout.n;
  const int64_t parts =
      OneRowAtATime(context, layout) ? std::min(context.num_threads, 64) : 1;
  const int64_t capacity = k + std::max<int64_t>(k, 48);
  return ForEachRow(
      context, layout, parts * capacity * sizeof(Item),
      [&](const KernelContext& threads, int64_t from, int64_t to,
          char* scratch) {
        Item* items = reinterpret_cast<Item*>(scratch);
        const T* p = in + from;
        if (threads.num_threads == 1 || parts == 1) {
          if (LeastItems(threads, p, layout.stride, 0, n, k, flip, items,
                         capacity) == 0) {
            return;
          }
        } else {
          int64_t counts[64];
          ParallelFor(threads, parts, 1, [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              counts[i] = LeastItems(threads, p, layout.stride, n * i / parts,
                                     n * (i + 1) / parts, k, flip,
                                     items + i * capacity, capacity);
            }
          });
          if (threads.Stopped()) return;
          int64_t count = counts[0];
          for (int64_t i = 1; i < parts; ++i) {
            std::memmove(static_cast<void*>(items + count),
                         items + i * capacity, counts[i] * sizeof(Item));
            count += counts[i];
          }
          if (!PartItems(threads, items, k - 1, count)) return;
        }
        if (sorted && !SortFew(threads, items, k)) return;
        DecodeItems<T, Item>(threads, items, k, flip, p, layout.stride,
                             values + to, indices + to, layout.out_stride);
      });
}

// Picks one item per row: pick(context, items, n, &item), which is false if the
// kernel is to stop.
template <typename T, typename Item, typename Pick>
absl::Status SelectRows(KernelContext& context, const RowLayout& layout,
                        const T* in, T* values, int64_t* indices,
                        const Pick& pick) {
  const int64_t n = layout.n;
  return ForEachRow(
      context, layout, n * sizeof(Item),
      [&](const KernelContext& threads, int64_t from, int64_t to,
          char* scratch) {
        Item* items = reinterpret_cast<Item*>(scratch);
        Item item;
        if (!EncodeItems(threads, in + from, layout.stride, n, 0, items) ||
            !pick(threads, items, n, &item)) {
          return;
        }
        values[to] = DecodeKey<T>(static_cast<SortKey<T>>(item.key()),
                                  in + from + item.index() * layout.stride);
        indices[to] = item.index();
      });
}

// The median's item: the lower one of two. NaN are the greatest keys; unless
// they are ignored, the first one is the median.
template <typename T, typename Item>
bool MedianItem(const KernelContext& context, Item* items, int64_t n,
                bool ignore_nan, Item* median) {
  constexpr int64_t kLook = int64_t{1} << 20;
  int64_t numbers = n;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr SortKey<T> kNan = ~SortKey<T>{0};
    const auto count = [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) numbers -= items[i].key() == kNan;
    };
    if (!SerialFor(context, n, kLook, count)) return false;
    if (numbers < n && !ignore_nan) {
      int64_t i = 0;
      while (items[i].key() != kNan) ++i;
      *median = items[i];
      return true;
    }
    if (numbers == 0) {
      *median = items[0];
      return true;
    }
  }
  (void)ignore_nan;
  return SelectItem(context, items, n, (numbers - 1) / 2, median);
}

// The last item of the longest run of equal keys, the first of several such.
template <typename Item>
Item ModeItem(const Item* sorted, int64_t n) {
  int64_t longest = 0, end = 0;
  for (int64_t i = 0, start = 0; i < n; ++i) {
    if (sorted[i].key() != sorted[start].key()) start = i;
    if (i - start + 1 > longest) {
      longest = i - start + 1;
      end = i;
    }
  }
  return sorted[end];
}

}  // namespace

HOLDFAST_CPU_KERNEL(sort) {
  RowLayout layout;
  absl::Status s = MakeRowLayout(*inputs[0].spec, attrs.Int("dim"),
                                 *outputs[0].spec, &layout);
  if (!s.ok()) return s;
  if (layout.rows == 0 || layout.n == 0) return absl::OkStatus();
  const uint64_t flip = attrs.Bool("descending") ? kDescending : 0;
  return DispatchDType(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchItem<T>(layout.n, [&](auto item) -> absl::Status {
      return SortRows<T, typename decltype(item)::type>(
          context, layout, layout.n, flip, inputs[0].as<T>(),
          outputs[0].as<T>(), outputs[1].as<int64_t>());
    });
  });
}

HOLDFAST_CPU_KERNEL(topk) {
  RowLayout layout;
  absl::Status s = MakeRowLayout(*inputs[0].spec, attrs.Int("dim"),
                                 *outputs[0].spec, &layout);
  if (!s.ok()) return s;
  const int64_t k = attrs.Int("k");
  if (layout.rows == 0 || k == 0) return absl::OkStatus();
  const uint64_t flip = attrs.Bool("largest") ? kDescending : 0;
  const bool sorted = attrs.Bool("sorted");
  return DispatchDType(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchItem<T>(layout.n, [&](auto item_tag) -> absl::Status {
      using Item = typename decltype(item_tag)::type;
      const T* in = inputs[0].as<T>();
      T* values = outputs[0].as<T>();
      int64_t* indices = outputs[1].as<int64_t>();
      // Many of few: sorting all of them is as fast as telling them apart.
      if (k > layout.n / 8 && k > 16) {
        return SortRows<T, Item>(context, layout, k, flip, in, values, indices);
      }
      return TopRows<T, Item>(context, layout, k, flip, sorted, in, values,
                              indices);
    });
  });
}

HOLDFAST_CPU_KERNEL(kthvalue) {
  RowLayout layout;
  absl::Status s = MakeRowLayout(*inputs[0].spec, attrs.Int("dim"),
                                 *outputs[0].spec, &layout);
  if (!s.ok()) return s;
  if (layout.rows == 0 || layout.n == 0) return absl::OkStatus();
  const int64_t k = attrs.Int("k") - 1;
  return DispatchDType(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchItem<T>(layout.n, [&](auto item_tag) -> absl::Status {
      using Item = typename decltype(item_tag)::type;
      return SelectRows<T, Item>(
          context, layout, inputs[0].as<T>(), outputs[0].as<T>(),
          outputs[1].as<int64_t>(),
          [k](const KernelContext& threads, Item* items, int64_t n,
              Item* item) { return SelectItem(threads, items, n, k, item); });
    });
  });
}

HOLDFAST_CPU_KERNEL(median) {
  RowLayout layout;
  absl::Status s = MakeRowLayout(*inputs[0].spec, attrs.Int("dim"),
                                 *outputs[0].spec, &layout);
  if (!s.ok()) return s;
  if (layout.rows == 0 || layout.n == 0) return absl::OkStatus();
  const bool ignore_nan = attrs.Bool("ignore_nan");
  return DispatchDType(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchItem<T>(layout.n, [&](auto item_tag) -> absl::Status {
      using Item = typename decltype(item_tag)::type;
      return SelectRows<T, Item>(
          context, layout, inputs[0].as<T>(), outputs[0].as<T>(),
          outputs[1].as<int64_t>(),
          [ignore_nan](const KernelContext& threads, Item* items, int64_t n,
                       Item* item) {
            return MedianItem<T>(threads, items, n, ignore_nan, item);
          });
    });
  });
}

HOLDFAST_CPU_KERNEL(mode) {
  RowLayout layout;
  absl::Status s = MakeRowLayout(*inputs[0].spec, attrs.Int("dim"),
                                 *outputs[0].spec, &layout);
  if (!s.ok()) return s;
  if (layout.rows == 0 || layout.n == 0) return absl::OkStatus();
  return DispatchDType(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchItem<T>(layout.n, [&](auto item_tag) -> absl::Status {
      using Item = typename decltype(item_tag)::type;
      const int64_t n = layout.n;
      const T* in = inputs[0].as<T>();
      return ForEachRow(
          context, layout, 2 * n * sizeof(Item),
          [&](const KernelContext& threads, int64_t from, int64_t to,
              char* scratch) {
            Item* items = reinterpret_cast<Item*>(scratch);
            if (!EncodeItems(threads, in + from, layout.stride, n, 0, items) ||
                !SortItems(threads, items, items + n, n)) {
              return;
            }
            const Item item = ModeItem(items, n);
            outputs[0].as<T>()[to] =
                DecodeKey<T>(static_cast<SortKey<T>>(item.key()),
                             in + from + item.index() * layout.stride);
            outputs[1].as<int64_t>()[to] = item.index();
          });
    });
  });
}

}  // namespace holdfast::cpu
