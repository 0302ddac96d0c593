// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// resample2d and its adjoint, one kernel with other tables. Rows are resampled
// along w as they are needed and kept for as long as a window along h reaches
// them; the sums along h run over whole rows.
#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/resample_axis.h"

namespace holdfast::cpu {
namespace {

// One row along w.
template <typename T>
struct ResampleRowBody {
  template <int kTaps>
  static HOLDFAST_INLINE void Fixed(const int32_t* __restrict first,
                                    const T* __restrict weight,
                                    const T* __restrict in, int64_t n,
                                    T* __restrict out) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = weight[j * kTaps] * in[first[j]];
      for (int k = 1; k < kTaps; ++k) {
        sum += weight[j * kTaps + k] * in[first[j] + k];
      }
      out[j] = sum;
    }
  }

  static HOLDFAST_INLINE int Run(const ResampleAxis<T>* axis, const T* in,
                                 T* out) {
    for (const ResampleRun& run : axis->runs) {
      const int32_t* first = axis->first.data() + run.begin;
      const T* weight = axis->weight.data() + axis->offset[run.begin];
      T* to = out + run.begin;
      const int64_t n = run.end - run.begin;
      switch (run.taps) {
        case 1:
          Fixed<1>(first, weight, in, n, to);
          break;
        case 2:
          Fixed<2>(first, weight, in, n, to);
          break;
        case 4:
          Fixed<4>(first, weight, in, n, to);
          break;
        default:
          for (int64_t j = 0; j < n; ++j, weight += run.taps) {
            T sum = 0;
            const T* from = in + first[j];
            for (int64_t k = 0; k < run.taps; ++k) sum += weight[k] * from[k];
            to[j] = sum;
          }
      }
    }
    return 0;
  }
};

// The sum of `taps` weighted rows; row(k) is the k-th.
template <typename T>
struct SumRowsBody {
  static HOLDFAST_INLINE int Run(const T* const* rows, const T* weight,
                                 int64_t taps, int64_t n, T* __restrict out) {
    if (taps == 2) {
      const T* __restrict a = rows[0], * __restrict b = rows[1];
      const T x = weight[0], y = weight[1];
      for (int64_t j = 0; j < n; ++j) out[j] = x * a[j] + y * b[j];
      return 0;
    }
    if (taps == 4) {
      const T* __restrict a = rows[0], * __restrict b = rows[1], * __restrict c = rows[2], * __restrict d = rows[3];
      const T x = weight[0], y = weight[1], z = weight[2], w = weight[3];
      for (int64_t j = 0; j < n; ++j) {
        out[j] = x * a[j] + y * b[j] + z * c[j] + w * d[j];
      }
      return 0;
    }
    // In blocks, which stay in the nearest cache.
    constexpr int64_t kBlock = 512;
    for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
      const int64_t end = std::min(n, j0 + kBlock);
      for (int64_t j = j0; j < end; ++j) out[j] = 0;
      for (int64_t k = 0; k < taps; ++k) {
        const T* __restrict from = rows[k];
        const T w = weight[k];
        for (int64_t j = j0; j < end; ++j) out[j] += w * from[j];
      }
    }
    return 0;
  }
};

// What one thread keeps: the last rows resampled along w, in a ring.
template <typename T>
class Plane {
 public:
  Plane(const ResampleAxis<T>& h, const ResampleAxis<T>& w, int64_t in_width,
        T* ring, const T** rows)
      : h_(h), w_(w), in_width_(in_width), ring_(ring), rows_(rows) {}

  // Output rows [begin, end) of the plane at `in`.
  void Run(const T* in, int64_t begin, int64_t end, T* out) {
    const int64_t width = w_.size();
    int64_t done = 0;  // rows resampled
    for (int64_t i = begin; i < end; ++i, out += width) {
      if (h_.identity > 0) {
        Straight(in + i * in_width_, out);
        continue;
      }
      const int64_t first = h_.first[i], taps = h_.taps(i);
      const T* weight = h_.weight.data() + h_.offset[i];
      if (taps == 1 && weight[0] == T{1}) {
        const bool again = i > begin && h_.first[i - 1] == first &&
                           h_.taps(i - 1) == 1 && weight[-1] == T{1};
        if (again) {
          std::memcpy(out, out - width, width * sizeof(T));
        } else {
          Straight(in + first * in_width_, out);
        }
        continue;
      }
      for (int64_t k = 0; k < taps; ++k) rows_[k] = Row(in, first + k, &done);
      const T* const* rows = rows_;
      Vectorised<SumRowsBody<T>>(rows, weight, taps, width, out);
    }
  }

 private:
  // A row of the input becomes one of the output.
  void Straight(const T* from, T* out) {
    if (w_.identity > 0) {
      std::memcpy(out, from, w_.size() * sizeof(T));
    } else {
      const ResampleAxis<T>* w = &w_;
      Vectorised<ResampleRowBody<T>>(w, from, out);
    }
  }
  const T* Row(const T* in, int64_t r, int64_t* done) {
    const T* from = in + r * in_width_;
    if (w_.identity > 0) return from;
    T* row = ring_ + r % h_.max_taps * w_.size();
    if (r >= *done) {
      const ResampleAxis<T>* w = &w_;
      Vectorised<ResampleRowBody<T>>(w, from, row);
      *done = r + 1;
    }
    return row;
  }

  const ResampleAxis<T>& h_;
  const ResampleAxis<T>& w_;
  const int64_t in_width_;
  T* const ring_;
  const T** const rows_;
};

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("no scratch memory for resampling.");
}

// Tables are small beside the tensor, unless it is one long row.
bool HasRoomForTables(KernelContext& context, int64_t in, int64_t out) {
  const int64_t bytes = 192 * (in + out);
  return bytes < (int64_t{1} << 24) || context.Scratch(bytes) != nullptr;
}

template <typename T>
absl::Status Resample(KernelContext& context, const ResampleAxis<T>& h,
                      const ResampleAxis<T>& w, int64_t planes, int64_t in_h,
                      int64_t in_w, const T* in, T* out) {
  const int threads = context.num_threads;
  const bool keeps_rows = w.identity == 0;
  int64_t ring = 0, bytes = 0;
  if (__builtin_mul_overflow(h.max_taps, keeps_rows ? w.size() : 0, &ring) ||
      __builtin_mul_overflow(ring, static_cast<int64_t>(sizeof(T)) * threads,
                             &bytes)) {
    return NoMemory();
  }
  T* rings = static_cast<T*>(context.Scratch(std::max<int64_t>(bytes, 64)));
  const T** rows = static_cast<const T**>(
      context.Scratch((h.max_taps + 1) * sizeof(T*) * threads));
  if (rings == nullptr || rows == nullptr) return NoMemory();
  const int64_t height = h.size();
  const int64_t work = std::max(w.size(), in_w * in_h / height);
  ParallelFor(context, planes * height, std::max<int64_t>(1, 8192 / work),
              [&](int64_t begin, int64_t end) {
                const int slot = omp_get_thread_num() % threads;
                Plane<T> plane(h, w, in_w, rings + slot * ring,
                               rows + slot * (h.max_taps + 1));
                while (begin < end) {
                  const int64_t p = begin / height, row = begin % height;
                  const int64_t n = std::min(height - row, end - begin);
                  plane.Run(in + p * in_h * in_w, row, row + n,
                            out + begin * w.size());
                  begin += n;
                }
              });
  return absl::OkStatus();
}

// `from` and `to`: the sizes of resample2d's input and output, whichever way
// the kernel goes.
absl::Status RunResample(KernelContext& context, const Attrs& attrs,
                         const TensorView& input, const TensorView& output,
                         bool adjoint) {
  const Dims &in = input.spec->shape, &out = output.spec->shape;
  if (output.spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView view;
  absl::Status s =
      MakeContiguous(context, input, output.spec->dtype, &spec, &view);
  if (!s.ok()) return s;
  const size_t d = in.size() - 2;
  int64_t planes = 1;
  for (size_t i = 0; i < d; ++i) planes *= in[i];
  return DispatchFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ResampleAxis<T> axes[2];
    for (int i = 0; i < 2; ++i) {
      const int64_t from = in[d + i], to = out[d + i];
      if (from != to && !HasRoomForTables(context, from, to)) {
        return NoMemory();
      }
      axes[i] = ResampleAxisOf<T>(attrs, i, from, to, adjoint);
    }
    return Resample<T>(context, axes[0], axes[1], planes, in[d], in[d + 1],
                       view.as<T>(), output.as<T>());
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(resample2d) {
  return RunResample(context, attrs, inputs[0], outputs[0], /*adjoint=*/false);
}

HOLDFAST_CPU_KERNEL(resample2d_backward) {
  return RunResample(context, attrs, inputs[0], outputs[0], /*adjoint=*/true);
}

}  // namespace holdfast::cpu
