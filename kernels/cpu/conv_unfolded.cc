// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Output positions are taken a block at a time: their windows become the
// columns of a matrix [taps, positions], and a convolution is a product with
// it.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"

namespace holdfast::cpu {
namespace {

// Positions per block: the columns of a common layer stay in L2.
constexpr int64_t kPositions = 256;

// Calls run(column, input, step, length) for every run of window elements of
// positions [first, first + count) that lie in one row of the input: columns
// `column`, + 1, ... hold the elements at `input`, + step, ...; input < 0:
// outside. The tap's row of the column matrix is handled as a whole by one
// thread.
template <typename Run>
void ForEachRun(const KernelContext& context, const ConvShape& s, int64_t first,
                int64_t count, Run run) {
  const auto row_of_tap = [&](int64_t tap, int64_t c, int64_t kz, int64_t ky,
                              int64_t kx) {
    const int64_t x_first = s.w.FirstWindow(kx);
    const int64_t x_end = std::max(x_first, s.w.EndWindow(kx));
    int64_t column = tap * count;
    for (int64_t done = 0; done < count;) {
      const int64_t row = (first + done) / s.w.out;
      const int64_t begin = (first + done) % s.w.out;
      const int64_t end = std::min(s.w.out, begin + count - done);
      const int64_t z = s.d.Start(row / s.h.out) + kz * s.d.dilation;
      const int64_t y = s.h.Start(row % s.h.out) + ky * s.h.dilation;
      const bool inside = z >= 0 && z < s.d.size && y >= 0 && y < s.h.size;
      const int64_t low = inside ? std::clamp(x_first, begin, end) : end;
      const int64_t high = inside ? std::clamp(x_end, low, end) : end;
      if (low > begin) run(column, int64_t{-1}, s.w.stride, low - begin);
      if (high > low) {
        run(column + low - begin,
            c * s.in_plane() + (z * s.h.size + y) * s.w.size + s.w.Start(low) +
                kx * s.w.dilation,
            s.w.stride, high - low);
      }
      if (end > high) {
        run(column + high - begin, int64_t{-1}, s.w.stride, end - high);
      }
      column += end - begin;
      done += end - begin;
    }
  };
  ParallelFor(context, s.group_in(),
              std::max<int64_t>(1, 8192 / (s.kernel() * count)),
              [&](int64_t c_begin, int64_t c_end) {
                int64_t tap = c_begin * s.kernel();
                for (int64_t c = c_begin; c < c_end; ++c) {
                  for (int64_t kz = 0; kz < s.d.kernel; ++kz) {
                    for (int64_t ky = 0; ky < s.h.kernel; ++ky) {
                      for (int64_t kx = 0; kx < s.w.kernel; ++kx) {
                        row_of_tap(tap++, c, kz, ky, kx);
                      }
                    }
                  }
                }
              });
}

template <typename T>
void Unfold(const KernelContext& context, const ConvShape& s, const T* input,
            int64_t first, int64_t count, T* columns) {
  ForEachRun(context, s, first, count,
             [&](int64_t column, int64_t at, int64_t step, int64_t length) {
               T* to = columns + column;
               if (at < 0) {
                 std::fill(to, to + length, T{0});
               } else if (step == 1) {
                 std::copy(input + at, input + at + length, to);
               } else {
                 for (int64_t i = 0; i < length; ++i)
                   to[i] = input[at + i * step];
               }
             });
}

template <typename T>
void FoldAdd(const KernelContext& context, const ConvShape& s, const T* columns,
             int64_t first, int64_t count, T* input) {
  ForEachRun(context, s, first, count,
             [&](int64_t column, int64_t at, int64_t step, int64_t length) {
               if (at < 0) return;
               const T* from = columns + column;
               for (int64_t i = 0; i < length; ++i)
                 input[at + i * step] += from[i];
             });
}

absl::Status NoScratch(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", bytes, " bytes of scratch memory for a convolution"));
}

// Scratch memory for the columns and for the product.
template <typename T>
absl::Status Workspace(KernelContext& context, const ConvShape& s,
                       size_t gemm_bytes, T** columns, void** gemm) {
  const int64_t count = std::min(kPositions, s.out_plane());
  const size_t bytes = sizeof(T) * s.taps() * count;
  *columns = static_cast<T*>(context.Scratch(bytes));
  *gemm = context.Scratch(gemm_bytes);
  return *columns == nullptr || *gemm == nullptr ? NoScratch(bytes)
                                                 : absl::OkStatus();
}

// Calls fn(image, group, first position, count) for every block.
template <typename F>
void ForEachBlock(const KernelContext& context, const ConvShape& s, F fn) {
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t g = 0; g < s.groups; ++g) {
      for (int64_t first = 0; first < s.out_plane(); first += kPositions) {
        if (context.Stopped()) return;
        fn(n, g, first, std::min(kPositions, s.out_plane() - first));
      }
    }
  }
}

template <typename T>
const T* GroupOfInput(const ConvShape& s, const T* input, int64_t n,
                      int64_t g) {
  return input + (n * s.in_channels + g * s.group_in()) * s.in_plane();
}

template <typename T>
T* GroupOfOutput(const ConvShape& s, T* output, int64_t n, int64_t g,
                 int64_t first) {
  return output + (n * s.out_channels + g * s.group_out()) * s.out_plane() +
         first;
}

}  // namespace

template <typename T>
absl::Status UnfoldedConv(KernelContext& context, const ConvShape& s,
                          const T* input, const T* weight, const T* bias,
                          T* output) {
  T* columns;
  void* gemm;
  absl::Status status = Workspace(
      context, s, GemmWorkspaceBytes<T>(kPositions, s.taps()), &columns, &gemm);
  if (!status.ok()) return status;
  ForEachBlock(
      context, s, [&](int64_t n, int64_t g, int64_t first, int64_t count) {
        Unfold(context, s, GroupOfInput(s, input, n, g), first, count, columns);
        GemmCall<T> call;
        call.m = s.group_out();
        call.n = count;
        call.k = s.taps();
        call.a = weight + g * s.group_out() * s.taps();
        call.a_row = s.taps();
        call.a_col = 1;
        call.b = columns;
        call.b_row = count;
        call.b_col = 1;
        call.c = GroupOfOutput(s, output, n, g, first);
        call.c_row = s.out_plane();
        Gemm(context, call, gemm);
        for (int64_t o = 0; bias != nullptr && o < call.m; ++o) {
          const T add = bias[g * s.group_out() + o];
          for (int64_t i = 0; i < count; ++i) call.c[o * call.c_row + i] += add;
        }
      });
  return absl::OkStatus();
}

template <typename T>
absl::Status UnfoldedConvBackwardInput(KernelContext& context,
                                       const ConvShape& s, const T* grad,
                                       const T* weight, T* grad_input) {
  T* columns;
  void* gemm;
  absl::Status status =
      Workspace(context, s, GemmWorkspaceBytes<T>(kPositions, s.group_out()),
                &columns, &gemm);
  if (!status.ok()) return status;
  std::memset(grad_input, 0, sizeof(T) * s.n * s.in_channels * s.in_plane());
  ForEachBlock(context, s,
               [&](int64_t n, int64_t g, int64_t first, int64_t count) {
                 GemmCall<T> call;
                 call.m = s.taps();
                 call.n = count;
                 call.k = s.group_out();
                 call.a = weight + g * s.group_out() * s.taps();
                 call.a_row = 1;
                 call.a_col = s.taps();
                 call.b = GroupOfOutput(s, grad, n, g, first);
                 call.b_row = s.out_plane();
                 call.b_col = 1;
                 call.c = columns;
                 call.c_row = count;
                 Gemm(context, call, gemm);
                 FoldAdd(context, s, columns, first, count,
                         const_cast<T*>(GroupOfInput<T>(s, grad_input, n, g)));
               });
  return absl::OkStatus();
}

template <typename T>
absl::Status UnfoldedConvBackwardWeight(KernelContext& context,
                                        const ConvShape& s, const T* grad,
                                        const T* input, T* grad_weight) {
  T* columns;
  void* gemm;
  absl::Status status = Workspace(
      context, s, GemmWorkspaceBytes<T>(s.taps(), kPositions), &columns, &gemm);
  if (!status.ok()) return status;
  std::memset(grad_weight, 0, sizeof(T) * s.out_channels * s.taps());
  ForEachBlock(
      context, s, [&](int64_t n, int64_t g, int64_t first, int64_t count) {
        Unfold(context, s, GroupOfInput(s, input, n, g), first, count, columns);
        GemmCall<T> call;
        call.m = s.group_out();
        call.n = s.taps();
        call.k = count;
        call.a = GroupOfOutput(s, grad, n, g, first);
        call.a_row = s.out_plane();
        call.a_col = 1;
        call.b = columns;
        call.b_row = 1;
        call.b_col = count;
        call.c = grad_weight + g * s.group_out() * s.taps();
        call.c_row = s.taps();
        call.accumulate = true;
        Gemm(context, call, gemm);
      });
  return absl::OkStatus();
}

#define HOLDFAST_UNFOLDED(T)                                            \
  template absl::Status UnfoldedConv(KernelContext&, const ConvShape&,  \
                                     const T*, const T*, const T*, T*); \
  template absl::Status UnfoldedConvBackwardInput(                      \
      KernelContext&, const ConvShape&, const T*, const T*, T*);        \
  template absl::Status UnfoldedConvBackwardWeight(                     \
      KernelContext&, const ConvShape&, const T*, const T*, T*)
HOLDFAST_UNFOLDED(float);
HOLDFAST_UNFOLDED(double);
#undef HOLDFAST_UNFOLDED

}  // namespace holdfast::cpu
