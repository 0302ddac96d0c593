// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matrix_exp: scaling and squaring with Pade approximants (kernels/pade.h). All
// matrices of a batch have the approximant of the largest one, and each its own
// number of squarings.
// exp(A^T) = exp(A)^T, so that it does not matter which way a matrix lies.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/linalg_solve.h"
#include "kernels/cuda/matrix_batch.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"
#include "kernels/cuda/run_products.h"
#include "kernels/pade.h"

namespace holdfast::cuda {
namespace {

// Matrices of a batch, and products of them.
struct Batch {
  KernelContext& context;
  TensorSpec spec;  // [count, n, n]
  int64_t numel() const { return spec.numel(); }
  int64_t n() const { return spec.shape[1]; }

  // c = a b, or c + a b.
  absl::Status Multiply(void* a, void* b, bool add, void* c) const {
    return RunProducts(context, MatmulProducts(spec, spec, spec), {a, &spec},
                       {b, &spec}, add, {c, &spec});
  }
};

// The largest sum of a row's sizes, of each matrix. Waits.
template <typename T>
absl::StatusOr<std::vector<double>> Norms(const Batch& batch, const T* a) {
  const int64_t count = batch.spec.shape[0], n = batch.n();
  double* const sums = ScratchOf<double>(batch.context, count * n);
  double* const norms = ScratchOf<double>(batch.context, count);
  if (sums == nullptr || norms == nullptr) return NoScratch();
  absl::Status s = ReduceRows<AbsoluteSumOf<T>>(
      batch.context, count * n, n, /*columns=*/false,
      [=] HOLDFAST_LAMBDA(int64_t row, int64_t i) {
        return AbsoluteSumOf<T>::One(a[row * n + i]);
      },
      [=] HOLDFAST_LAMBDA(int64_t row, double sum) { sums[row] = sum; });
  if (!s.ok()) return s;
  s = ReduceRows<ExtremeOf<double, /*kMax=*/true>>(
      batch.context, count, n, /*columns=*/false,
      [=] HOLDFAST_LAMBDA(int64_t matrix, int64_t row) {
        return sums[matrix * n + row];
      },
      [=] HOLDFAST_LAMBDA(int64_t matrix, double most) {
        norms[matrix] = most;
      });
  if (!s.ok()) return s;
  std::vector<double> read(count);
  s = Cuda(batch.context)
          .CopyToHost(read.data(), norms, count * sizeof(double));
  if (!s.ok()) return s;
  return read;
}

// The approximant, and how often each matrix is squared: a number less than 0
// for one whose norm is no number, and whose result is none.
struct Plan {
  const PadeApproximant* use;
  std::vector<int32_t> squarings;
};
template <typename T>
Plan PlanOf(const std::vector<double>& norms) {
  const auto good = [](double norm) {
    return norm <= std::numeric_limits<T>::max();
  };
  double most = 0;
  for (double norm : norms) {
    if (good(norm)) most = std::max(most, norm);
  }
  Plan plan = {&PadeFor(most), {}};
  for (double norm : norms) {
    plan.squarings.push_back(good(norm) ? PadeSquarings(*plan.use, norm) : -1);
  }
  return plan;
}

// out = a / 2^squarings.
template <typename T>
absl::Status Halve(const Batch& batch, const T* a, const int32_t* squarings,
                   T* out) {
  const int64_t size = batch.n() * batch.n();
  return ForEach(batch.context, batch.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const int by = squarings[i / size];
    out[i] = by < 0 ? T(0) : static_cast<T>(std::ldexp(a[i], -by));
  });
}

// Even powers of the matrices: A^2, A^4, A^6, A^8, as far as they are needed.
template <typename T>
struct Powers {
  const T* of[4] = {};
};

// identity I + factor[0] A^2 + factor[1] A^4 + ..
struct Polynomial {
  double identity = 0;
  double factor[4] = {};
};

Polynomial LowTerms(const PadeApproximant& use, int first) {
  const int terms = use.degree == 13 ? 4 : (use.degree + 1) / 2;
  Polynomial p;
  p.identity = use.b[first];
  for (int term = 1; term < terms; ++term) {
    p.factor[term - 1] = use.b[first + 2 * term];
  }
  return p;
}
// Those that degree 13 has besides, over A^6.
Polynomial HighTerms(const PadeApproximant& use, int first) {
  Polynomial p;
  for (int term = 1; term <= 3; ++term) {
    p.factor[term - 1] = use.b[first + 2 * term + 6];
  }
  return p;
}

template <typename T>
absl::Status Evaluate(const Batch& batch, const Powers<T>& powers,
                      const Polynomial& p, T* out) {
  const int64_t n = batch.n();
  return ForEach(batch.context, batch.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    T sum = 0;
    for (int k = 0; k < 4; ++k) {
      if (p.factor[k] != 0) {
        sum += static_cast<T>(p.factor[k]) * powers.of[k][i];
      }
    }
    const bool diagonal = i / n % n == i % n;
    out[i] = diagonal ? sum + static_cast<T>(p.identity) : sum;
  });
}

// even, odd = even - odd, even + odd.
template <typename T>
absl::Status AddAndSubtract(const Batch& batch, T* even, T* odd) {
  return ForEach(batch.context, batch.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const T sum = even[i] + odd[i];
    even[i] -= odd[i];
    odd[i] = sum;
  });
}

// out = `squared` where the matrix is squared more than `step` times.
template <typename T>
absl::Status Advance(const Batch& batch, int step, const int32_t* squarings,
                     const T* squared, T* out) {
  const int64_t size = batch.n() * batch.n();
  return ForEach(batch.context, batch.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    if (squarings[i / size] > step) out[i] = squared[i];
  });
}

template <typename T>
absl::Status FillBad(const Batch& batch, const int32_t* squarings, T* out) {
  const int64_t size = batch.n() * batch.n();
  const T bad = std::numeric_limits<T>::quiet_NaN();
  return ForEach(batch.context, batch.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    if (squarings[i / size] < 0) out[i] = bad;
  });
}

// The terms of coefficient `first` and every second one after it, divided by
// A^first; `room` is lost.
template <typename T>
absl::Status HalfOf(const Batch& batch, const PadeApproximant& use, int first,
                    const Powers<T>& powers, T* sixth, T* room, T* out) {
  absl::Status s = Evaluate<T>(batch, powers, LowTerms(use, first), out);
  if (!s.ok() || use.degree < 13) return s;
  s = Evaluate<T>(batch, powers, HighTerms(use, first), room);
  return s.ok() ? batch.Multiply(sixth, room, /*add=*/true, out) : s;
}

// out = (V - U)^-1 (V + U), with the odd part U and the even part V of the
// approximant at x. `room` is for six batches.
template <typename T>
absl::Status Quotient(const Batch& batch, const PadeApproximant& use, T* x,
                      T* room, T* out) {
  const int64_t size = batch.numel();
  T* const power[4] = {room, room + size, room + 2 * size, room + 3 * size};
  T* const odd = room + 4 * size;
  T* const even = room + 5 * size;
  Powers<T> powers = {{power[0], power[1], power[2], power[3]}};
  absl::Status s = batch.Multiply(x, x, false, power[0]);
  if (s.ok()) s = batch.Multiply(power[0], power[0], false, power[1]);
  if (s.ok() && use.degree > 5) {
    s = batch.Multiply(power[1], power[0], false, power[2]);
  }
  if (s.ok() && use.degree == 9) {
    s = batch.Multiply(power[2], power[0], false, power[3]);
  }
  if (s.ok()) s = HalfOf<T>(batch, use, 1, powers, power[2], power[3], even);
  if (s.ok()) s = batch.Multiply(x, even, false, odd);
  if (s.ok()) s = HalfOf<T>(batch, use, 0, powers, power[2], power[3], even);
  if (s.ok()) s = AddAndSubtract<T>(batch, even, odd);
  if (!s.ok()) return s;
  return SolveSystems(batch.context, {even, &batch.spec}, {odd, &batch.spec},
                      /*checked=*/false, {out, &batch.spec});
}

template <typename T>
absl::Status Exponentials(const Batch& batch, const T* in, T* out) {
  absl::StatusOr<std::vector<double>> norms = Norms<T>(batch, in);
  if (!norms.ok()) return norms.status();
  const Plan plan = PlanOf<T>(*norms);
  const int64_t count = batch.spec.shape[0];
  int32_t* const squarings = ScratchOf<int32_t>(batch.context, count);
  T* const x = ScratchOf<T>(batch.context, 7 * batch.numel());
  if (squarings == nullptr || x == nullptr) return NoScratch();
  absl::Status s = Cuda(batch.context)
                       .CopyToDevice(squarings, plan.squarings.data(),
                                     count * sizeof(int32_t));
  if (s.ok()) s = Halve<T>(batch, in, squarings, x);
  if (s.ok()) s = Quotient<T>(batch, *plan.use, x, x + batch.numel(), out);
  const int most =
      *std::max_element(plan.squarings.begin(), plan.squarings.end());
  for (int step = 0; step < most && s.ok(); ++step) {
    s = batch.Multiply(out, out, false, x);
    if (s.ok()) s = Advance<T>(batch, step, squarings, x, out);
  }
  return s.ok() ? FillBad<T>(batch, squarings, out) : s;
}

}  // namespace

HOLDFAST_CUDA_KERNEL(linalg_matrix_exp) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const DType dtype = out.spec->dtype;
  TensorSpec spec;
  TensorView in;
  absl::Status s = MakeContiguous(context, inputs[0], dtype, &spec, &in);
  if (!s.ok()) return s;
  const int64_t n = MatrixRows(*out.spec);
  const Batch batch = {context,
                       ContiguousSpec(dtype, {BatchSize(*out.spec), n, n})};
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Exponentials<T>(batch, in.as<T>(), out.as<T>());
  });
}

}  // namespace holdfast::cuda
