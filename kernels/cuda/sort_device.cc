// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort.h"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>
#endif

namespace holdfast::cuda {

#if defined(__CUDACC__)

namespace {

// Calls a CUB function twice: for the size of its scratch memory, and to run.
template <typename F>
absl::Status WithCubScratch(KernelContext& context, F run) {
  size_t bytes = 0;
  cudaError_t error = run(nullptr, bytes);
  if (error == cudaSuccess) {
    void* scratch = context.Scratch(std::max<size_t>(bytes, 1));
    if (scratch == nullptr) return NoScratch();
    error = run(scratch, bytes);
  }
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("CUB failed: ", cudaGetErrorString(error)));
}

}  // namespace

absl::Status SortKeys(KernelContext& context, const uint64_t* keys,
                      uint64_t* sorted, int64_t n) {
  const cudaStream_t stream = StreamOf(context);
  return WithCubScratch(context, [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, n, 0,
                                          64, stream);
  });
}

absl::Status SortRows(KernelContext& context, int64_t rows, int64_t n,
                      const uint64_t* keys, uint64_t* sorted_keys,
                      const int64_t* numbers, int64_t* sorted_numbers) {
  const cudaStream_t stream = StreamOf(context);
  if (rows == 1) {
    return WithCubScratch(context, [&](void* scratch, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys,
                                             numbers, sorted_numbers, n, 0, 64,
                                             stream);
    });
  }
  int64_t* const begins = ScratchOf<int64_t>(context, rows + 1);
  if (begins == nullptr) return NoScratch();
  absl::Status s = ForEach(
      context, rows + 1, [=] HOLDFAST_LAMBDA(int64_t i) { begins[i] = i * n; });
  if (!s.ok()) return s;
  return WithCubScratch(context, [&](void* scratch, size_t& bytes) {
    return cub::DeviceSegmentedSort::StableSortPairs(
        scratch, bytes, keys, sorted_keys, numbers, sorted_numbers, rows * n,
        rows, begins, begins + 1, stream);
  });
}

absl::Status ExclusiveSum(KernelContext& context, const int64_t* counts,
                          int64_t* sums, int64_t n) {
  const cudaStream_t stream = StreamOf(context);
  return WithCubScratch(context, [&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, sums, n,
                                         stream);
  });
}

#else

absl::Status SortKeys(KernelContext&, const uint64_t* keys, uint64_t* sorted,
                      int64_t n) {
  std::copy(keys, keys + n, sorted);
  std::sort(sorted, sorted + n);
  return absl::OkStatus();
}

absl::Status SortRows(KernelContext&, int64_t rows, int64_t n,
                      const uint64_t* keys, uint64_t* sorted_keys,
                      const int64_t* numbers, int64_t* sorted_numbers) {
  std::vector<int64_t> order(n);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * n;
    std::iota(order.begin(), order.end(), begin);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
    for (int64_t i = 0; i < n; ++i) {
      sorted_keys[begin + i] = keys[order[i]];
      sorted_numbers[begin + i] = numbers[order[i]];
    }
  }
  return absl::OkStatus();
}

absl::Status ExclusiveSum(KernelContext&, const int64_t* counts, int64_t* sums,
                          int64_t n) {
  std::exclusive_scan(counts, counts + n, sums, int64_t{0});
  return absl::OkStatus();
}

#endif

}  // namespace holdfast::cuda
