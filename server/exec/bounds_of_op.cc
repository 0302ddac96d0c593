// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/bounds_of_op.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/algorithm/container.h"
#include "ops/infer.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/tensor.h"

namespace holdfast {
namespace {

using Inputs = absl::Span<const Value>;

KnownBounds BoundsOfNumber(const AttrValue& value) {
  const int64_t* const number = std::get_if<int64_t>(&value);
  if (number != nullptr) return IntegerBounds::Of(*number, *number);
  const bool* const flag = std::get_if<bool>(&value);
  if (flag != nullptr) return IntegerBounds::Of(*flag, *flag);
  return std::nullopt;
}

// Indices into `size` elements.
KnownBounds Indices(int64_t size) {
  if (size <= 0) return std::nullopt;
  return IntegerBounds::Of(0, size - 1);
}

KnownBounds IndicesAlong(const Attrs& attrs, const TensorSpec& in,
                         const char* name) {
  if (in.rank() == 0) return Indices(1);
  const absl::StatusOr<int> dim = NormalizeDim(attrs.Int(name), in.rank());
  if (!dim.ok()) return std::nullopt;
  return Indices(in.shape[*dim]);
}

KnownBounds UnionOf(const KnownBounds& a, const KnownBounds& b) {
  if (!a || !b) return std::nullopt;
  return Union(*a, *b);
}

KnownBounds OfAllInputs(const Attrs& attrs, Inputs inputs, int first) {
  KnownBounds all = BoundsOfInput(attrs, inputs, first);
  for (size_t i = first + 1; i < inputs.size(); ++i) {
    all = UnionOf(all, BoundsOfInput(attrs, inputs, static_cast<int>(i)));
  }
  return all;
}

// The corners of an op that is monotonous in both operands.
template <typename Op>
KnownBounds Corners(const KnownBounds& a, const KnownBounds& b, Op op) {
  if (!a || !b) return std::nullopt;
  int64_t corner[4];
  if (op(a->least, b->least, &corner[0]) || op(a->least, b->most, &corner[1]) ||
      op(a->most, b->least, &corner[2]) || op(a->most, b->most, &corner[3])) {
    return std::nullopt;  // some would overflow
  }
  const auto ends = std::minmax_element(corner, corner + 4);
  return IntegerBounds::Of(*ends.first, *ends.second);
}

KnownBounds OfArithmetic(OpId op, const KnownBounds& a, const KnownBounds& b) {
  using Int = int64_t;
  switch (op) {
    case OpId::add:
      return Corners(a, b, [](Int x, Int y, Int* to) {
        return __builtin_add_overflow(x, y, to);
      });
    case OpId::sub:
      return Corners(a, b, [](Int x, Int y, Int* to) {
        return __builtin_sub_overflow(x, y, to);
      });
    case OpId::mul:
      return Corners(a, b, [](Int x, Int y, Int* to) {
        return __builtin_mul_overflow(x, y, to);
      });
    case OpId::remainder:
      // Whatever is divided: in [0, divisor).
      if (!b || b->least <= 0) return std::nullopt;
      return IntegerBounds::Of(0, b->most - 1);
    case OpId::floor_divide:
      // Towards zero at most, by a divisor of one sign.
      if (!a || !b || b->least <= 0 || a->least < 0) return std::nullopt;
      return IntegerBounds::Of(0, a->most);
    default:  // one of the two
      return UnionOf(a, b);
  }
}

KnownBounds OfClamp(const Attrs& attrs, const KnownBounds& in) {
  if (!in) return in;
  int64_t least = in->least, most = in->most;
  if (!attrs.None("min")) {
    const KnownBounds low = BoundsOfNumber(attrs.Get("min"));
    if (!low) return std::nullopt;
    least = std::max(least, low->least);
    most = std::max(most, low->least);
  }
  if (!attrs.None("max")) {
    const KnownBounds high = BoundsOfNumber(attrs.Get("max"));
    if (!high) return std::nullopt;
    least = std::min(least, high->least);
    most = std::min(most, high->least);
  }
  return IntegerBounds::Of(least, most);
}

KnownBounds OfArange(const Attrs& attrs, int64_t count) {
  const KnownBounds start = BoundsOfNumber(attrs.Get("start"));
  const KnownBounds step = BoundsOfNumber(attrs.Get("step"));
  int64_t length, last;
  if (!start || !step || count <= 0 ||
      __builtin_mul_overflow(step->least, count - 1, &length) ||
      __builtin_add_overflow(start->least, length, &last)) {
    return std::nullopt;
  }
  return IntegerBounds::Of(std::min(start->least, last),
                           std::max(start->least, last));
}

// A window may lie in the padding as a whole where taps are dilated.
KnownBounds OfPoolIndices(const Attrs& attrs, const TensorSpec& in) {
  if (attrs.schema().id == OpId::max_pool2d &&
      absl::c_any_of(attrs.Ints("dilation"),
                     [](int64_t d) { return d != 1; })) {
    return std::nullopt;
  }
  return Indices(in.shape[in.rank() - 2] * in.shape[in.rank() - 1]);
}

KnownBounds OfIndexOutput(const Attrs& attrs, const TensorSpec& in) {
  switch (attrs.schema().id) {
    case OpId::max_pool2d:
    case OpId::adaptive_max_pool2d:
      return OfPoolIndices(attrs, in);
    default:  // sort and its kind
      return IndicesAlong(attrs, in, "dim");
  }
}

KnownBounds Find(const Attrs& attrs, Inputs inputs, int index,
                 const TensorSpec& out) {
  const auto input = [&](int slot) {
    return BoundsOfInput(attrs, inputs, slot);
  };
  switch (attrs.schema().id) {
    // Elements of input 0, all or some.
    case OpId::clone:
    case OpId::to:
    case OpId::to_device:
    case OpId::flip:
    case OpId::gather:
    case OpId::index_select:
    case OpId::index_mask:
    case OpId::index:
    case OpId::amax:
    case OpId::amin:
      return input(0);
    case OpId::sort:
    case OpId::topk:
    case OpId::kthvalue:
    case OpId::median:
    case OpId::mode:
    case OpId::cummax:
    case OpId::cummin:
    case OpId::max_pool2d:
    case OpId::adaptive_max_pool2d:
      return index == 0 ? input(0) : OfIndexOutput(attrs, inputs[0]->spec());
    case OpId::argmax:
    case OpId::argmin:
      return attrs.None("dim") ? Indices(inputs[0]->spec().numel())
                               : IndicesAlong(attrs, inputs[0]->spec(), "dim");
    case OpId::cat:
      return OfAllInputs(attrs, inputs, 0);
    case OpId::copy:
      return input(1);
    case OpId::where:
      return UnionOf(input(1), input(2));
    case OpId::tril:
    case OpId::triu:
      return UnionOf(input(0), IntegerBounds::Of(0, 0));
    case OpId::constant_pad:
      return UnionOf(input(0), BoundsOfNumber(attrs.Get("value")));
    case OpId::add:
    case OpId::sub:
    case OpId::mul:
    case OpId::floor_divide:
    case OpId::remainder:
    case OpId::maximum:
    case OpId::minimum:
      return OfArithmetic(attrs.schema().id, input(0), input(1));
    case OpId::clamp:
      return OfClamp(attrs, input(0));
    case OpId::full:
      return BoundsOfNumber(attrs.Get("fill_value"));
    case OpId::fill:
      return BoundsOfNumber(attrs.Get("value"));
    case OpId::arange:
      return OfArange(attrs, out.numel());
    case OpId::randint:
      return attrs.Int("low") < attrs.Int("high")
                 ? IntegerBounds::Of(attrs.Int("low"), attrs.Int("high") - 1)
                 : KnownBounds();
    case OpId::randperm:
      return Indices(out.numel());
    case OpId::searchsorted:
      return Indices(inputs[0]->spec().shape.back() + 1);
    default:
      return std::nullopt;
  }
}

}  // namespace

KnownBounds BoundsOfInput(const Attrs& attrs, Inputs inputs, int slot) {
  if (inputs[slot]) {
    const Tensor& tensor = *AsTensor(inputs[slot]);
    const DType dtype = tensor.spec().dtype;
    const Storage::Integers* known = tensor.storage()->integers();
    if (known != nullptr && known->dtype == dtype) return known->bounds;
    return BoundsOfType(dtype);
  }
  const OpSchema& schema = attrs.schema();
  if (schema.num_lists > 0) return std::nullopt;
  const OpParam& param = schema.params[schema.tensor_params[slot]];
  if (param.attr_slot < 0) return std::nullopt;
  return BoundsOfNumber(attrs.Get(param.attr_slot));
}

KnownBounds BoundsOfOutput(const Attrs& attrs, Inputs inputs, int index,
                           const TensorSpec& out) {
  if (out.dtype != DType::kInt64 && out.dtype != DType::kInt32) {
    return std::nullopt;
  }
  const KnownBounds found = Find(attrs, inputs, index, out);
  // What does not fit would have wrapped around.
  return found && Fit(*found, out.dtype) ? found : std::nullopt;
}

}  // namespace holdfast
