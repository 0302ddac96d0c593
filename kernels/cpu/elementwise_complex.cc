// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise_complex.h"

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/vectorised.h"
#include "ops/complex.h"

namespace holdfast::cpu {
namespace {

template <typename T>
struct MagnitudeLoop {
  static HOLDFAST_INLINE void Run(const void* in, void* out, int64_t n) {
    const auto* a = static_cast<const Complex<T>*>(in);
    T* to = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = Magnitude(a[i]);
  }
};

template <typename T>
struct ConjugateLoop {
  static HOLDFAST_INLINE void Run(const void* in, void* out, int64_t n) {
    const auto* a = static_cast<const Complex<T>*>(in);
    auto* to = static_cast<Complex<T>*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = Conjugate(a[i]);
  }
};

// A loop over one operand, whose result may be of another type.
template <template <typename> class Loop>
void Map(const KernelContext& context, const TensorView& in,
         const TensorView& out) {
  const StridedLoop walk({out, in});
  const DType from = in.spec->dtype, to = out.spec->dtype;
  ParallelFor(
      context, walk.numel(), kElementwiseGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, n; i < end; i += n) {
          BlockBuffer loaded, stored;
          n = walk.BlockSize(i, end);
          const void* a = walk.Load(1, from, i, n, &loaded);
          void* target = walk.Target(0, to, i, &stored);
          if (from == DType::kComplex64) {
            Vectorised<Loop<float>>(a, target, n);
          } else {
            Vectorised<Loop<double>>(a, target, n);
          }
          walk.Store(0, to, i, n, target);
        }
      },
      kBlock);
}

}  // namespace

void RunComplexAbs(const KernelContext& context, const TensorView& in,
                   const TensorView& out) {
  Map<MagnitudeLoop>(context, in, out);
}

TensorView PartsOf(const TensorView& view, TensorSpec* spec) {
  *spec = *view.spec;
  spec->dtype = RealType(spec->dtype);
  spec->offset *= 2;
  for (int64_t& stride : spec->strides) stride *= 2;
  spec->shape.push_back(2);
  spec->strides.push_back(1);
  return {view.data, spec};
}

HOLDFAST_CPU_KERNEL(conj) {
  if (!IsComplex(inputs[0].spec->dtype)) {
    CopyStrided(context, inputs[0], outputs[0]);
  } else {
    Map<ConjugateLoop>(context, inputs[0], outputs[0]);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
