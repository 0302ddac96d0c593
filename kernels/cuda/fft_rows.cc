// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fft_rows.h"

#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/fft_plans.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

cufftType TypeOf(const FftRows& fft) {
  const bool wide = fft.real == DType::kFloat64;
  switch (fft.kind) {
    case FftKind::kRealToComplex:
      return wide ? CUFFT_D2Z : CUFFT_R2C;
    case FftKind::kComplexToReal:
      return wide ? CUFFT_Z2D : CUFFT_C2R;
    default:
      return wide ? CUFFT_Z2Z : CUFFT_C2C;
  }
}

cufftResult Execute(const FftLibrary& library, cufftHandle plan,
                    const FftRows& fft, void* in, void* out) {
  const int direction =
      fft.kind == FftKind::kForward ? CUFFT_FORWARD : CUFFT_INVERSE;
  switch (TypeOf(fft)) {
    case CUFFT_R2C:
      return library.cufftExecR2C(plan, static_cast<cufftReal*>(in),
                                  static_cast<cufftComplex*>(out));
    case CUFFT_D2Z:
      return library.cufftExecD2Z(plan, static_cast<cufftDoubleReal*>(in),
                                  static_cast<cufftDoubleComplex*>(out));
    case CUFFT_C2R:
      return library.cufftExecC2R(plan, static_cast<cufftComplex*>(in),
                                  static_cast<cufftReal*>(out));
    case CUFFT_Z2D:
      return library.cufftExecZ2D(plan, static_cast<cufftDoubleComplex*>(in),
                                  static_cast<cufftDoubleReal*>(out));
    case CUFFT_C2C:
      return library.cufftExecC2C(plan, static_cast<cufftComplex*>(in),
                                  static_cast<cufftComplex*>(out), direction);
    default:
      return library.cufftExecZ2Z(plan, static_cast<cufftDoubleComplex*>(in),
                                  static_cast<cufftDoubleComplex*>(out),
                                  direction);
  }
}

}  // namespace

absl::Status TransformRows(KernelContext& context, const FftRows& fft, void* in,
                           void* out) {
  absl::StatusOr<FftPlans*> plans = Cuda(context).libraries().ffts();
  if (!plans.ok()) return plans.status();
  const FftLibrary& library = (*plans)->library();
  absl::StatusOr<FftPlans::Plan> plan =
      (*plans)->Find(TypeOf(fft), fft.n, fft.rows);
  if (!plan.ok()) return plan.status();
  void* const work = ScratchOf<char>(context, plan->work_bytes);
  if (work == nullptr) return NoScratch();
  absl::Status s =
      FftStatus(library.cufftSetStream(plan->handle, StreamOf(context)),
                "cufftSetStream");
  if (s.ok()) {
    s = FftStatus(library.cufftSetWorkArea(plan->handle, work),
                  "cufftSetWorkArea");
  }
  if (!s.ok()) return s;
  return FftStatus(Execute(library, plan->handle, fft, in, out), "cuFFT");
}

}  // namespace holdfast::cuda
