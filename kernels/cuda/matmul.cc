// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul and linear: cuBLASLt for floats and complex numbers (blas_product.cc),
// an own loop for integers, and for everything on the host. float32 products
// are float32 (no TF32), PyTorch's default.
#include "kernels/cuda/blas_product.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/products.h"

namespace holdfast {
namespace {

// The type in which elements stored as S are multiplied and summed up.
template <typename S>
struct ProductType {
  using type = ComputeOf<S>;
};

template <typename S>
absl::Status Naive(KernelContext& context, const Products& p, const S* a,
                   const S* b, const S* bias, int64_t bias_step, S* out) {
  using T = typename ProductType<S>::type;
  const Dims batch = p.batch;
  const Offsets<2> offsets = MakeOffsets<2>(batch, {p.a_batch, p.b_batch});
  const int64_t m = p.m, n = p.n, k = p.k;
  const int64_t a_row = p.a_row, a_col = p.a_col;
  const int64_t b_row = p.b_row, b_col = p.b_col;
  return ForEach(context, p.count() * m * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i / (m * n), at);
    const int64_t row = i / n % m, column = i % n;
    const S* const x = a + at[0] + row * a_row;
    const S* const y = b + at[1] + column * b_col;
    T sum = bias == nullptr ? T(0) : Convert<T>(bias[column * bias_step]);
    for (int64_t j = 0; j < k; ++j) {
      const T u = Convert<T>(x[j * a_col]), v = Convert<T>(y[j * b_row]);
      if constexpr (kIsComplex<T>) {
        sum = sum + u * v;
      } else {
        sum = elementwise::Add(sum, elementwise::Multiply(u, v));
      }
    }
    out[i] = Convert<S>(sum);
  });
}

absl::Status Multiply(KernelContext& context, const Products& p,
                      const TensorView& a, const TensorView& b,
                      const TensorView& bias, const TensorView& out) {
  if (out.spec->numel() == 0) return absl::OkStatus();
  const int64_t bias_step = bias.present() ? bias.spec->strides[0] : 0;
#if defined(__CUDACC__)
  const bool blas = !IsIntegral(out.spec->dtype) && p.k > 0;
#else
  const bool blas = false;
#endif
  if (blas) {
    // A library takes the sum's first term from the result's own memory.
    if (bias.present()) {
      absl::Status s = CudaCopy(context, bias, out);
      if (!s.ok()) return s;
    }
    return BlasProducts(context, p, a, b, bias.present(), out);
  }
  return DispatchStored(out.spec->dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    if constexpr (std::is_same_v<S, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return Naive<S>(context, p, a.as<S>(), b.as<S>(), bias.as<S>(), bias_step,
                      out.as<S>());
    }
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(matmul) {
  return Multiply(
      context,
      MatmulProducts(*inputs[0].spec, *inputs[1].spec, *outputs[0].spec),
      inputs[0], inputs[1], {}, outputs[0]);
}

HOLDFAST_CUDA_KERNEL(linear) {
  return Multiply(context, LinearProducts(*inputs[0].spec, *inputs[1].spec),
                  inputs[0], inputs[1], inputs[2], outputs[0]);
}

}  // namespace holdfast
