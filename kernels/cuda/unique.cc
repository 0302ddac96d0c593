// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// unique: the different elements, in order or as neighbours. Elements are
// brought in order and cut into runs; the first step tells how many there are
// and carries what it found over to the second.
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/sort_keys.h"

namespace holdfast::cuda {
namespace {

// What the first step leaves in scratch memory: three lists of n.
struct Groups {
  int64_t* order;  // places of the elements, equal ones side by side
  int64_t* start;  // 1 where a group begins
  int64_t* group;  // groups that begin before
};

Groups GroupsAt(void* scratch, int64_t n) {
  int64_t* const lists = static_cast<int64_t*>(scratch);
  return {lists, lists + n, lists + 2 * n};
}

template <typename T>
struct MakeKeys {
  Operand in;
  int64_t stride;
  uint64_t* keys;
  int64_t* order;

  HOLDFAST_HD void operator()(int64_t i) const {
    keys[i] = SortKeyOf(in.Load<T>(i * stride));
    order[i] = i;
  }
};

// NaN differ from each other, as elsewhere.
struct MarkStarts {
  const uint64_t* keys;
  bool floats;
  int64_t* start;

  HOLDFAST_HD void operator()(int64_t i) const {
    const bool nan = floats && keys[i] == ~uint64_t{0};
    start[i] = i == 0 || keys[i] != keys[i - 1] || nan;
  }
};

// Fills in `groups` for n > 0 elements. Waits.
template <typename T>
absl::StatusOr<int64_t> FindGroups(KernelContext& context,
                                   const TensorView& view, bool sorted,
                                   const Groups& groups) {
  const int64_t n = view.spec->numel();
  uint64_t* keys = ScratchOf<uint64_t>(context, n);
  uint64_t* const sorted_keys = ScratchOf<uint64_t>(context, n);
  // Where the order goes before it is sorted.
  int64_t* const places = sorted ? groups.start : groups.order;
  if (keys == nullptr || sorted_keys == nullptr) return NoScratch();
  absl::Status s =
      ForEach(context, n,
              MakeKeys<T>{Operand(view), view.spec->strides[0], keys, places});
  if (s.ok() && sorted) {
    s = SortRows(context, 1, n, keys, sorted_keys, places, groups.order);
    keys = sorted_keys;
  }
  if (s.ok()) {
    s = ForEach(context, n,
                MarkStarts{keys, std::is_floating_point_v<T>, groups.start});
  }
  if (s.ok()) s = ExclusiveSum(context, groups.start, groups.group, n);
  if (!s.ok()) return s;
  absl::StatusOr<int64_t> before = ReadElement(context, groups.group + (n - 1));
  if (!before.ok()) return before.status();
  absl::StatusOr<int64_t> last = ReadElement(context, groups.start + (n - 1));
  if (!last.ok()) return last.status();
  return *before + *last;
}

template <typename T>
struct WriteGroups {
  Groups groups;
  Operand in, values;
  int64_t stride;
  int64_t *inverse, *counts;  // null: not asked for

  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t at = groups.order[i];
    const int64_t group = groups.group[i] + groups.start[i] - 1;
    if (groups.start[i] != 0) values.Store(group, in.Load<T>(at * stride));
    if (inverse != nullptr) inverse[at] = group;
    if (counts != nullptr) AtomicAdd(counts + group, int64_t{1});
  }
};

}  // namespace

HOLDFAST_CUDA_SIZES(unique) {
  const TensorView& in = inputs[0];
  const int64_t n = in.spec->numel();
  int64_t count = 0;
  if (n > 0) {
    context.carried = ScratchOf<int64_t>(context, 3 * n);
    if (context.carried == nullptr) return NoScratch();
    const Groups groups = GroupsAt(context.carried, n);
    absl::Status s = DispatchDType(
        ComputeType(in.spec->dtype), [&](auto tag) -> absl::Status {
          absl::StatusOr<int64_t> found =
              FindGroups<typename decltype(tag)::type>(
                  context, in, attrs.Bool("sorted"), groups);
          if (found.ok()) count = *found;
          return found.status();
        });
    if (!s.ok()) return s;
  }
  for (int64_t& size : sizes) size = count;
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(unique) {
  const TensorView& in = inputs[0];
  const int64_t n = in.spec->numel();
  if (n == 0) return absl::OkStatus();
  const Groups groups = GroupsAt(context.carried, n);
  int64_t* const inverse =
      attrs.Bool("inverse") ? outputs[1].as<int64_t>() : nullptr;
  int64_t* const counts =
      attrs.Bool("counts") ? outputs[2].as<int64_t>() : nullptr;
  if (counts != nullptr) {
    absl::Status s =
        Cuda(context).FillBytes(counts, 0, outputs[2].spec->nbytes());
    if (!s.ok()) return s;
  }
  return DispatchDType(
      ComputeType(in.spec->dtype), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        return ForEach(context, n,
                       WriteGroups<T>{groups, Operand(in), Operand(outputs[0]),
                                      in.spec->strides[0], inverse, counts});
      });
}

}  // namespace holdfast::cuda
