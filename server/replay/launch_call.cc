// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/replay/launch_call.h"

#include <type_traits>
#include <variant>

#include "absl/base/casts.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "kernels/number_operand.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// By bits: 0.0 and -0.0 are two values to an op, and NaN is one.
template <typename T>
bool SameBits(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    return absl::bit_cast<uint64_t>(a) == absl::bit_cast<uint64_t>(b);
  } else {
    return a == b;
  }
}

bool SameValue(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& value) {
        return SameBits(value, std::get<std::decay_t<decltype(value)>>(b));
      },
      a);
}

bool SameAttrs(const Attrs& a, const Attrs& b) {
  if (&a.schema() != &b.schema() || a.data_checked() != b.data_checked()) {
    return false;
  }
  for (int slot = 0; slot < a.schema().num_attrs; ++slot) {
    if (a.IsSet(slot) != b.IsSet(slot)) return false;
    if (a.IsSet(slot) && !SameValue(a.Get(slot), b.Get(slot))) return false;
  }
  return true;
}

absl::string_view NumberBytes(const TensorView& view) {
  return {view.as<const char>(),
          static_cast<size_t>(ItemSize(view.spec->dtype))};
}

bool SameViews(absl::Span<const TensorView> a, absl::Span<const TensorView> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].present() != b[i].present()) return false;
    if (!a[i].present()) continue;
    if (!(*a[i].spec == *b[i].spec)) return false;
    const bool same = IsNumber(a[i]) ? NumberBytes(a[i]) == NumberBytes(b[i])
                                     : a[i].data == b[i].data;
    if (!same) return false;
  }
  return true;
}

// What differs most often; Is() compares the rest.
uint64_t HashViews(uint64_t hash, absl::Span<const TensorView> views) {
  for (const TensorView& view : views) {
    if (!view.present()) {
      hash = absl::HashOf(hash);
    } else if (IsNumber(view)) {
      hash = absl::HashOf(hash, NumberBytes(view));
    } else {
      hash = absl::HashOf(hash, view.data, view.spec->shape);
    }
  }
  return hash;
}

}  // namespace

uint64_t HashOf(const LaunchRequest& call) {
  const uint64_t op = absl::HashOf(static_cast<int>(call.attrs.schema().id));
  return HashViews(HashViews(op, call.inputs), call.outputs);
}

bool LaunchCall::Is(uint64_t hash, const LaunchRequest& call) const {
  return hash == hash_ && call.philox.offset == philox_.offset &&
         SameAttrs(call.attrs, attrs_) &&
         SameViews(call.inputs, inputs_.get()) &&
         SameViews(call.outputs, outputs_.get());
}

}  // namespace holdfast
