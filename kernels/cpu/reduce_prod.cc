// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// prod: in double for float and complex results, modulo 2^64 for integers.
// Elements are first converted to the type that the product has.
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/cpu/reducers.h"
#include "ops/complex.h"

namespace holdfast::cpu {
namespace {

template <typename T>
struct ProdFloat {
  using In = T;
  using Acc = double;
  static constexpr int64_t kRows = 16;  // factors in a row in T
  static HOLDFAST_INLINE double Init() { return 1; }
  static HOLDFAST_INLINE double One(const T& x) { return SumDouble<T>::One(x); }
  static HOLDFAST_INLINE double Combine(double a, double b) { return a * b; }
  static HOLDFAST_INLINE double Row(const T* p, int64_t n) {
    // Blocks in T; doubles have no wider type to gain from.
    using Lanes = VectorLanes<T>;
    constexpr int kVectors = 4;
    constexpr int64_t kBlock = kRows * kVectors * Lanes::kCount;
    double product = 1;
    int64_t i = 0;
    while (n - i >= Lanes::kCount) {
      const int64_t size = std::min(n - i, kBlock);
      typename Lanes::Vector lanes[kVectors];
      for (auto& lane : lanes) lane = typename Lanes::Vector{} + T{1};
      Lanes::template TakeRow<Itself, MultiplyLanes, kVectors>(p + i, size,
                                                               lanes);
      // Those of a short row beyond the second are still empty.
      const int used = size < kVectors * Lanes::kCount ? 2 : kVectors;
      for (int j = 0; j < used; ++j) {
        product *= Lanes::template Fold<MultiplyLanes>(lanes[j]);
      }
      i += size;
    }
    for (; i < n; ++i) product *= p[i];
    return product;
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, double* acc) {
    constexpr int64_t kCols = 256 / sizeof(T);
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      const int64_t end = std::min(rows, r0 + kRows);
      int64_t j0 = 0;
      for (; j0 + kCols <= cols; j0 += kCols) {
        T lanes[kCols];
        for (int j = 0; j < kCols; ++j) lanes[j] = 1;
        for (int64_t r = r0; r < end; ++r) {
          const T* row = p + r * stride + j0;
          for (int j = 0; j < kCols; ++j) lanes[j] *= row[j];
        }
        for (int j = 0; j < kCols; ++j) acc[j0 + j] *= lanes[j];
      }
      for (int64_t r = r0; r < end && j0 < cols; ++r) {
        const T* row = p + r * stride;
        for (int64_t j = j0; j < cols; ++j) acc[j] *= row[j];
      }
    }
  }
};

template <typename T>
struct ProdInt {
  using In = T;
  using Acc = uint64_t;
  static HOLDFAST_INLINE uint64_t Init() { return 1; }
  static HOLDFAST_INLINE uint64_t One(const T& x) {
    return static_cast<uint64_t>(x);
  }
  static HOLDFAST_INLINE uint64_t Combine(uint64_t a, uint64_t b) {
    return a * b;
  }
  static HOLDFAST_INLINE uint64_t Row(const T* p, int64_t n) {
    return LanesRow<ProdInt, 32>(p, n);
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, uint64_t* acc) {
    PlainColumns<ProdInt>(p, rows, stride, cols, acc);
  }
};

template <typename T>
struct ProdComplex {
  using In = Complex<T>;
  using Acc = Complex<double>;
  static HOLDFAST_INLINE Acc Init() { return 1; }
  static HOLDFAST_INLINE Acc One(const In& x) {
    return {static_cast<double>(x.real), static_cast<double>(x.imag)};
  }
  static HOLDFAST_INLINE Acc Combine(Acc a, Acc b) { return a * b; }
  static HOLDFAST_INLINE Acc Row(const In* p, int64_t n) {
    Acc product = 1;
    for (int64_t i = 0; i < n; ++i) product = product * One(p[i]);
    return product;
  }
  static HOLDFAST_INLINE void Columns(const In* p, int64_t rows, int64_t stride,
                                      int64_t cols, Acc* acc) {
    PlainColumns<ProdComplex>(p, rows, stride, cols, acc);
  }
};

// A result as it is stored.
template <typename Out, typename Acc>
Out Stored(const Acc& acc) {
  if constexpr (kIsComplex<Out>) {
    using Part = decltype(Out::real);
    return {static_cast<Part>(acc.real), static_cast<Part>(acc.imag)};
  } else {
    return static_cast<Out>(acc);
  }
}

template <typename R, typename Out>
absl::Status Prod(KernelContext& context, const ReducePlan& plan,
                  const TensorView& input, const TensorView& output) {
  Out* out = output.as<Out>();
  if (plan.count == 0) {
    std::fill(out, out + plan.outputs, Stored<Out>(R::Init()));
    return absl::OkStatus();
  }
  return Reduce<R>(context, plan, input.as<typename R::In>(),
                   [&](int64_t offset, int64_t stride,
                       const typename R::Acc* acc, int64_t n) {
                     for (int64_t i = 0; i < n; ++i) {
                       out[offset + i * stride] = Stored<Out>(acc[i]);
                     }
                   });
}

// The type that elements of a product of type `to` are multiplied in.
DType FactorType(DType to) {
  if (IsFloat(to) || IsComplex(to) || to == DType::kBool) return to;
  return DType::kInt64;
}

}  // namespace

HOLDFAST_CPU_KERNEL(prod) {
  Dims dims;
  if (!attrs.None("dim")) dims.push_back(attrs.Int("dim"));
  const TensorView& out = outputs[0];
  const DType to = out.spec->dtype;
  const DType type = FactorType(to);
  TensorSpec spec;
  TensorView in = inputs[0];
  if (in.spec->dtype != type) {
    absl::Status s = MakeContiguous(context, inputs[0], type, &spec, &in);
    if (!s.ok()) return s;
  }
  ReducePlan plan;
  absl::Status s = MakeReducePlan(*in.spec, dims, &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  switch (to) {
    case DType::kFloat32:
      return Prod<ProdFloat<float>, float>(context, plan, in, out);
    case DType::kFloat64:
      return Prod<ProdFloat<double>, double>(context, plan, in, out);
    case DType::kInt64:
      return Prod<ProdInt<int64_t>, int64_t>(context, plan, in, out);
    case DType::kInt32:
      return Prod<ProdInt<int64_t>, int32_t>(context, plan, in, out);
    case DType::kUInt8:
      return Prod<ProdInt<int64_t>, uint8_t>(context, plan, in, out);
    case DType::kBool:
      return Prod<Truth<bool, true>, bool>(context, plan, in, out);
    case DType::kComplex64:
      return Prod<ProdComplex<float>, Complex<float>>(context, plan, in, out);
    case DType::kComplex128:
      return Prod<ProdComplex<double>, Complex<double>>(context, plan, in, out);
    default:
      return UnsupportedDType<absl::Status>();
  }
}

}  // namespace holdfast::cpu
