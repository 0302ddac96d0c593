// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul and linear, and the products of other ops: cuBLASLt for floats and
// complex numbers (blas_product.cc), an own loop for integers, and for
// everything on the host. float32 products are float32, without TF32
// (kernels/numerics.h).
#include "kernels/cuda/blas_product.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/run_products.h"

namespace holdfast::cuda {
namespace {

template <typename S>
absl::Status Naive(KernelContext& context, const Products& p, const S* a,
                   const S* b, bool add, S* out) {
  using T = ComputeOf<S>;
  const Offsets<2> offsets = MakeOffsets<2>(p.batch, {p.a_batch, p.b_batch});
  const int64_t m = p.m, n = p.n, k = p.k;
  const int64_t a_row = p.a_row, a_col = p.a_col;
  const int64_t b_row = p.b_row, b_col = p.b_col;
  return ForEach(context, p.count() * m * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i / (m * n), at);
    const S* const x = a + at[0] + i / n % m * a_row;
    const S* const y = b + at[1] + i % n * b_col;
    T sum = add ? Convert<T>(out[i]) : T(0);
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

#if defined(__CUDACC__)
// The library adds biases of these types as it writes the product.
bool CanAddOnTheWay(const Products& p, const TensorView& bias,
                    const TensorView& out) {
  const DType dtype = out.spec->dtype;
  return (dtype == DType::kFloat32 || dtype == DType::kFloat16 ||
          dtype == DType::kBFloat16) &&
         p.count() == 1 && p.m * p.n * p.k > 0 && bias.spec->dtype == dtype &&
         bias.spec->contiguous();
}
#endif

}  // namespace

absl::Status RunProducts(KernelContext& context, const Products& p,
                         const TensorView& a, const TensorView& b, bool add,
                         const TensorView& out) {
  if (p.count() * p.m * p.n == 0) return absl::OkStatus();
#if defined(__CUDACC__)
  if (!IsIntegral(out.spec->dtype) && p.k > 0) {
    return BlasProducts(context, p, a, b, add, out);
  }
#endif
  return DispatchStored(out.spec->dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    if constexpr (std::is_same_v<S, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return Naive<S>(context, p, a.as<S>(), b.as<S>(), add, out.as<S>());
    }
  });
}

HOLDFAST_CUDA_KERNEL(matmul) {
  return RunProducts(
      context,
      MatmulProducts(*inputs[0].spec, *inputs[1].spec, *outputs[0].spec),
      inputs[0], inputs[1], /*add=*/false, outputs[0]);
}

absl::Status Linear(KernelContext& context, const TensorView& input,
                    const TensorView& weight, const TensorView& bias,
                    const TensorView& output) {
  const Products p = LinearProducts(*input.spec, *weight.spec);
  if (!bias.present()) {
    return RunProducts(context, p, input, weight, false, output);
  }
#if defined(__CUDACC__)
  if (CanAddOnTheWay(p, bias, output)) {
    absl::Status s =
        BlasProductWithBias(context, p, input, weight, bias, output);
    if (!absl::IsUnimplemented(s)) return s;
  }
#endif
  absl::Status s = CudaCopy(context, bias, output);
  if (!s.ok()) return s;
  return RunProducts(context, p, input, weight, true, output);
}

HOLDFAST_CUDA_KERNEL(linear) {
  return Linear(context, inputs[0], inputs[1], inputs[2], outputs[0]);
}

}  // namespace holdfast::cuda
