// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: element i is what kernels/philox.h says, as on the CPU. Each
// thread makes its own counter's words, whichever of them it needs.
#include <cmath>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/packs.h"
#include "kernels/cuda/random_draws.h"
#include "kernels/cuda/sort.h"
#include "kernels/philox.h"
#include "kernels/poisson.h"
#include "ops/infer.h"

namespace holdfast::cuda {
namespace {

HOLDFAST_HD uint32_t WordOf(PhiloxState philox, int64_t i) {
  return Philox(philox.seed, philox.offset + i / 4).w[i % 4];
}
HOLDFAST_HD uint64_t PairOf(PhiloxState philox, int64_t i) {
  const PhiloxWords x = Philox(philox.seed, philox.offset + i / 2);
  const int at = 2 * static_cast<int>(i % 2);
  return JoinWords(x.w[at], x.w[at + 1]);
}

template <typename T>
HOLDFAST_HD T Uniform(PhiloxState philox, int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    return UniformFloat(WordOf(philox, i));
  } else {
    return UniformDouble(PairOf(philox, i));
  }
}

// Box-Muller: elements 2j and 2j + 1 are cosine and sine of one angle.
template <typename T>
HOLDFAST_HD T Normal(PhiloxState philox, int64_t i) {
  constexpr T kTwoPi = T(6.283185307179586476925);
  const int64_t j = i / 2;
  T radius, angle;
  if constexpr (std::is_same_v<T, float>) {
    const PhiloxWords x = Philox(philox.seed, philox.offset + j / 2);
    const int at = 2 * static_cast<int>(j % 2);
    radius = std::sqrt(-2.0f * std::log(PositiveFloat(x.w[at])));
    angle = kTwoPi * UniformFloat(x.w[at + 1]);
  } else {
    const PhiloxWords x = Philox(philox.seed, philox.offset + j);
    radius =
        std::sqrt(-2.0 * std::log(PositiveDouble(JoinWords(x.w[0], x.w[1]))));
    angle = kTwoPi * UniformDouble(JoinWords(x.w[2], x.w[3]));
  }
  return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

struct UniformNumber {
  template <typename T>
  static HOLDFAST_HD T Of(PhiloxState philox, int64_t i, T low, T high) {
    const T x = low + Uniform<T>(philox, i) * (high - low);
    return x < high ? x : low;  // rounding can reach the open end
  }
};
struct NormalNumber {
  template <typename T>
  static HOLDFAST_HD T Of(PhiloxState philox, int64_t i, T mean, T std) {
    return mean + Normal<T>(philox, i) * std;
  }
};

// Element i of a floating point view, in logical order.
template <typename Number, typename T>
absl::Status FillAs(KernelContext& context, const TensorView& output, double a,
                    double b) {
  const TensorSpec* const specs[1] = {output.spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  const RandomDraws draws(context);
  const T first = static_cast<T>(a), second = static_cast<T>(b);
  T* const out = output.as<T>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at;
    offsets.At(i, &at);
    out[at] = Number::template Of<T>(draws.state(), i, first, second);
  });
}

template <typename Number>
absl::Status FillRandom(KernelContext& context, const TensorView& output,
                        double a, double b) {
  return DispatchFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
    return FillAs<Number, typename decltype(tag)::type>(context, output, a, b);
  });
}

template <typename T>
absl::Status BernoulliAs(KernelContext& context, const Attrs& attrs,
                         const TensorView& input, const TensorView& output) {
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const RandomDraws draws(context);
  const T* const in = input.as<T>();
  T* const out = output.as<T>();
  absl::StatusOr<int64_t> fault =
      FirstFault(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
        int64_t at[2];
        offsets.At(i, at);
        const T chance = in[at[1]];
        out[at[0]] = Uniform<T>(draws.state(), i) < chance ? T(1) : T(0);
        return !(chance >= T(0) && chance <= T(1));
      });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  return OpError(attrs, {&input.spec, 1},
                 "probabilities must be between 0 and 1");
}

template <typename T>
absl::Status PoissonAs(KernelContext& context, const Attrs& attrs,
                       const TensorView& input, const TensorView& output) {
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const RandomDraws draws(context);
  const T* const in = input.as<T>();
  T* const out = output.as<T>();
  absl::StatusOr<int64_t> fault =
      FirstFault(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
        int64_t at[2];
        offsets.At(i, at);
        const double rate = in[at[1]];
        const bool good = rate >= 0 && elementwise::IsFinite(rate);
        const PhiloxState philox = draws.state();
        out[at[0]] = good ? static_cast<T>(PoissonNumber(
                                philox.seed, philox.offset + i, rate))
                          : T(0);
        return !good;
      });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  return OpError(attrs, {&input.spec, 1},
                 "invalid Poisson rate, expected rates to be non-negative "
                 "and finite");
}

inline constexpr int kPhiloxWords = 4;  // of a counter, one for each element

template <typename S>
struct DropoutCall {
  RandomDraws draws;
  uint64_t bound;  // of words that keep
  ComputeOf<S> scale;
  int64_t numel;
  const S* in;
  S* out;
  bool* mask;

  HOLDFAST_HD void Write(int64_t i, const S* from, uint32_t word) const {
    using T = ComputeOf<S>;
    mask[i] = word < bound;
    out[i] = Convert<S>(word < bound ? Convert<T>(*from) * scale : T(0));
  }
};

// The elements of one counter, in memory without gaps that packs fit.
template <typename S>
struct DropoutPack {
  DropoutCall<S> call;

  HOLDFAST_HD void operator()(int64_t pack) const {
    const PhiloxState philox = call.draws.state();
    const PhiloxWords words = Philox(philox.seed, philox.offset + pack);
    const int64_t first = pack * kPhiloxWords;
    if (first + kPhiloxWords > call.numel) {
      HOLDFAST_UNROLL
      for (int k = 0; k < kPhiloxWords; ++k) {
        const int64_t i = first + k;
        if (i < call.numel) call.Write(i, call.in + i, words.w[k]);
      }
      return;
    }
    ComputeOf<S> x[kPhiloxWords];
    bool keep[kPhiloxWords];
    LoadPack<kPhiloxWords>(call.in + first, x);
    HOLDFAST_UNROLL
    for (int k = 0; k < kPhiloxWords; ++k) {
      keep[k] = words.w[k] < call.bound;
      x[k] = keep[k] ? x[k] * call.scale : ComputeOf<S>(0);
    }
    StorePack<kPhiloxWords>(call.out + first, x);
    StorePack<kPhiloxWords>(call.mask + first, keep);
  }
};

// One element, of memory of any strides.
template <typename S>
struct DropoutElement {
  DropoutCall<S> call;
  Offsets<1> places;

  HOLDFAST_HD void operator()(int64_t i) const {
    int64_t at;
    places.At(i, &at);
    call.Write(i, call.in + at, WordOf(call.draws.state(), i));
  }
};

template <typename S>
absl::Status DropoutAs(KernelContext& context, double p,
                       const TensorView& input,
                       absl::Span<const TensorView> outputs) {
  using T = ComputeOf<S>;
  const TensorSpec* const specs[1] = {input.spec};
  const Offsets<1> places = BroadcastOffsets<1>(specs);
  const DropoutCall<S> call = {RandomDraws(context),
                               DropoutKeepBound(p),
                               p < 1 ? static_cast<T>(1 / (1 - p)) : T(0),
                               places.numel,
                               input.as<S>(),
                               outputs[0].as<S>(),
                               outputs[1].as<bool>()};
  const bool packed =
      places.linear() &&
      PacksFit<S>(kPhiloxWords, kPhiloxWords, {call.in, call.out}) &&
      PacksFit<bool>(kPhiloxWords, kPhiloxWords, {call.mask});
  if (!packed) {
    return ForEach(context, call.numel, DropoutElement<S>{call, places});
  }
  return ForEach(context, (call.numel + kPhiloxWords - 1) / kPhiloxWords,
                 DropoutPack<S>{call});
}

absl::Status RandInt(KernelContext& context, int64_t low, uint64_t range,
                     const TensorView& output) {
  const Operand out(output);
  const RandomDraws draws(context);
  return ForEach(context, output.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const uint64_t x = UniformInteger(PairOf(draws.state(), i), range);
    out.Store(i, static_cast<int64_t>(x + static_cast<uint64_t>(low)));
  });
}

// Orders 0 .. n-1 by a random key each: key and number share 64 bits.
absl::Status RandPerm(KernelContext& context, int64_t n,
                      const TensorView& output) {
  if (n == 0) return absl::OkStatus();
  int bits = 0;
  while ((int64_t{1} << bits) < n) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t* const keys = ScratchOf<uint64_t>(context, n);
  uint64_t* const sorted = ScratchOf<uint64_t>(context, n);
  if (keys == nullptr || sorted == nullptr) return NoScratch();
  const RandomDraws draws(context);
  absl::Status s = ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    keys[i] = (PairOf(draws.state(), i) & ~mask) | static_cast<uint64_t>(i);
  });
  if (s.ok()) s = SortKeys(context, keys, sorted, n);
  if (!s.ok()) return s;
  const Operand out(output);
  return ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    out.Store(i, static_cast<int64_t>(sorted[i] & mask));
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(rand) {
  return FillRandom<UniformNumber>(context, outputs[0], 0, 1);
}
HOLDFAST_CUDA_KERNEL(randn) {
  return FillRandom<NormalNumber>(context, outputs[0], 0, 1);
}
HOLDFAST_CUDA_KERNEL(uniform) {
  return FillRandom<UniformNumber>(context, inputs[0], attrs.Float("low"),
                                   attrs.Float("high"));
}
HOLDFAST_CUDA_KERNEL(normal) {
  return FillRandom<NormalNumber>(context, inputs[0], attrs.Float("mean"),
                                  attrs.Float("std"));
}
HOLDFAST_CUDA_KERNEL(randint) {
  const int64_t low = attrs.Int("low");
  return RandInt(
      context, low,
      static_cast<uint64_t>(attrs.Int("high")) - static_cast<uint64_t>(low),
      outputs[0]);
}
HOLDFAST_CUDA_KERNEL(randperm) {
  return RandPerm(context, outputs[0].spec->numel(), outputs[0]);
}
HOLDFAST_CUDA_KERNEL(bernoulli) {
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    return BernoulliAs<typename decltype(tag)::type>(context, attrs, inputs[0],
                                                     outputs[0]);
  });
}
HOLDFAST_CUDA_KERNEL(poisson) {
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    return PoissonAs<typename decltype(tag)::type>(context, attrs, inputs[0],
                                                   outputs[0]);
  });
}
HOLDFAST_CUDA_KERNEL(random_state) {
  const uint64_t state[] = {context.philox.seed, context.philox.offset};
  return Cuda(context).CopyToDevice(outputs[0].data, state, sizeof(state));
}
HOLDFAST_CUDA_KERNEL(dropout) {
  return DispatchStoredFloat(
      outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return DropoutAs<typename decltype(tag)::type>(
            context, attrs.Float("p"), inputs[0], outputs);
      });
}

}  // namespace holdfast::cuda
