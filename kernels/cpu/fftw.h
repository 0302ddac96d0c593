// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FFTW 3, opened at first use. FFTW is under the GPL: Holdfast neither links
// nor distributes it, and transforms fail where the machine has none.
// Thread-safety: everything here may be called from several threads.
#ifndef HOLDFAST_KERNELS_CPU_FFTW_H_
#define HOLDFAST_KERNELS_CPU_FFTW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/fft.h"

namespace holdfast::cpu {

// One dimension of a transform or of a loop over transforms: its size and
// element strides (fftw_iodim64).
struct FftwDim {
  ptrdiff_t n, in_stride, out_stride;
};

// A batch of one-dimensional transforms for element type T (float or double),
// which runs on any memory whose alignment the plan was made for.
template <typename T>
class FftwPlan {
 public:
  // The transforms of `in` to `out` (equal or disjoint), `count` times along
  // `loop`. Plans are kept for further calls; making one takes microseconds.
  // Unimplemented, naming the Debian package, where FFTW is missing.
  static absl::StatusOr<FftwPlan> Make(FftKind kind, FftwDim transform,
                                       FftwDim loop, const void* in,
                                       const void* out);
  // What FFTW's vector code asks of memory.
  static int Alignment(const void* p) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(p) & 15);
  }
  // REQUIRES: `in` and `out` are aligned, and equal or different, as those that
  // the plan was made for.
  void Run(void* in, void* out) const;

 private:
  FftwPlan(FftKind kind, std::shared_ptr<void> plan)
      : kind_(kind), plan_(std::move(plan)) {}
  FftKind kind_;
  std::shared_ptr<void> plan_;
};

// Opens the libraries now, where it may take long, and not at the first
// transform. Any thread.
void OpenFftw();

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_FFTW_H_
