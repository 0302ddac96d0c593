// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/copy.h"

#include <cstring>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/tiles.h"
#include "kernels/cuda/typed_map.h"

namespace holdfast::cuda {
namespace {

// The walk of a copy or a fill: `to` first.
Offsets<2> CopyOffsets(const TensorView& to, const TensorView& from) {
  const TensorSpec* const specs[2] = {to.spec, from.spec};
  return BroadcastOffsets<2>(specs);
}

template <typename Bits>
struct MovedBits {
  struct Loaded {
    Bits bits;
    int64_t to;
  };
  Offsets<2> offsets;
  const Bits* from;
  Bits* to;

  HOLDFAST_HD Loaded Load(int64_t i) const {
    int64_t at[2];
    offsets.At(i, at);
    return {from[at[1]], at[0]};
  }
  HOLDFAST_HD void Store(int64_t, const Loaded& loaded) const {
    to[loaded.to] = loaded.bits;
  }
};

struct Unchanged {
  template <typename T>
  HOLDFAST_HD T operator()(T x) const {
    return x;
  }
};

// The conversions that models make, to and from 32 bits.
template <typename From, typename To>
bool TryConvert(KernelContext& context, const TensorView& from,
                const TensorView& to, absl::Status* status) {
  if (IsNumber(from) || !HasTypedMap<To, From>(to, from)) return false;
  *status = RunTypedMap<float, To, From>(context, Unchanged(), to, from);
  return true;
}
bool TryConvertTyped(KernelContext& context, const TensorView& from,
                     const TensorView& to, absl::Status* status) {
  return TryConvert<float, BFloat16>(context, from, to, status) ||
         TryConvert<BFloat16, float>(context, from, to, status) ||
         TryConvert<float, Float16>(context, from, to, status) ||
         TryConvert<Float16, float>(context, from, to, status) ||
         TryConvert<bool, float>(context, from, to, status) ||
         TryConvert<uint8_t, float>(context, from, to, status) ||
         TryConvert<int64_t, float>(context, from, to, status);
}

// T: the type that `to`'s elements are computed in.
template <typename T>
absl::Status Convert2(KernelContext& context, const Offsets<2>& offsets,
                      const Operand& from, const Operand& to) {
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    to.Store(at[0], from.Load<T>(at[1]));
  });
}

template <typename Bits>
absl::Status FillBits(KernelContext& context, const TensorSpec& spec,
                      Bits value, Bits* to) {
  const TensorSpec* const specs[1] = {&spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at;
    offsets.At(i, &at);
    to[at] = value;
  });
}

}  // namespace

absl::Status CudaCopy(KernelContext& context, const TensorView& from,
                      const TensorView& to) {
  const TensorSpec& spec = *to.spec;
  if (spec.numel() == 0 || (from.data == to.data && *from.spec == spec)) {
    return absl::OkStatus();
  }
  const Offsets<2> offsets = CopyOffsets(to, from);
  if (from.spec->dtype == spec.dtype && !IsNumber(from)) {
    if (offsets.linear()) {
      return Cuda(context).CopyOnDevice(to.data, from.data, spec.nbytes());
    }
    return DispatchBits(spec.dtype, [&](auto tag) -> absl::Status {
      using Bits = typename decltype(tag)::type;
      return ForEachTile(
          context, offsets.numel,
          MovedBits<Bits>{offsets, from.as<Bits>(), to.as<Bits>()});
    });
  }
  absl::Status status;
  if (TryConvertTyped(context, from, to, &status)) return status;
  return DispatchWithComplex(
      ComputeType(spec.dtype), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        return Convert2<T>(context, offsets, Operand(from), Operand(to));
      });
}

absl::Status CudaFill(KernelContext& context, const AttrValue& value,
                      const TensorView& to) {
  if (to.spec->numel() == 0) return absl::OkStatus();
  alignas(16) char element[16] = {};
  const DType dtype = to.spec->dtype;
  const auto set = [&](auto number) { StoreAs(dtype, element, 0, number); };
  if (const bool* b = std::get_if<bool>(&value)) {
    set(*b);
  } else if (const int64_t* i = std::get_if<int64_t>(&value)) {
    set(*i);
  } else {
    set(std::get<double>(value));
  }
  return DispatchBits(dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    Bits bits;
    std::memcpy(&bits, element, sizeof(bits));
    return FillBits<Bits>(context, *to.spec, bits, to.as<Bits>());
  });
}

absl::Status MakeContiguous(KernelContext& context, const TensorView& view,
                            DType dtype, TensorSpec* spec, TensorView* out) {
  if (view.spec->dtype == dtype && view.spec->contiguous() && !IsNumber(view)) {
    *out = view;
    return absl::OkStatus();
  }
  *spec = ContiguousSpec(dtype, view.spec->shape);
  *out = {ScratchOf<char>(context, spec->nbytes()), spec};
  if (out->data == nullptr) return NoScratch();
  return CudaCopy(context, view, *out);
}

HOLDFAST_CUDA_KERNEL(to) { return CudaCopy(context, inputs[0], outputs[0]); }
HOLDFAST_CUDA_KERNEL(clone) { return CudaCopy(context, inputs[0], outputs[0]); }
HOLDFAST_CUDA_KERNEL(to_device) {
  return CudaCopy(context, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(copy) { return CudaCopy(context, inputs[1], inputs[0]); }
HOLDFAST_CUDA_KERNEL(fill) {
  return CudaFill(context, attrs.Get(0), inputs[0]);
}

}  // namespace holdfast::cuda
