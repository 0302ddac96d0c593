// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace holdfast {

namespace {

// Wraps: a shape that nobody has checked yet gives a wrong number, but no
// undefined behaviour.
int64_t WrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

absl::Status CheckSizes(DType dtype, absl::Span<const int64_t> shape,
                        int64_t most, absl::string_view what) {
  if (shape.size() > static_cast<size_t>(kMaxRank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor has at most ", kMaxRank, " dimensions. Got ", shape.size()));
  }
  // Size-0 dimensions count as 1 so that strides cannot overflow either.
  int64_t bytes = static_cast<int64_t>(ItemSize(dtype));
  for (int64_t size : shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("Trying to create tensor with negative dimension ", size,
                       ": [", absl::StrJoin(shape, ","), "]"));
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes) ||
        bytes > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("a ", what, " has at most ", most, " bytes. Got ",
                       DTypeShortName(dtype), ShapeString(shape)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t size : shape) n = WrappingMul(n, size);
  return n;
}

int64_t TensorSpec::numel() const { return NumElements(shape); }

bool TensorSpec::contiguous() const {
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    if (strides[i] != expected) {
      // A later size-0 dimension would still make it contiguous.
      return std::find(shape.begin(), shape.end(), 0) != shape.end();
    }
    expected *= shape[i];
  }
  return true;
}

std::string ShapeString(absl::Span<const int64_t> shape) {
  // What is no tensor's may be long; messages are for people.
  const size_t shown = std::min<size_t>(shape.size(), kMaxRank);
  std::string text =
      absl::StrCat("[", absl::StrJoin(shape.first(shown), ",",
                                      [](std::string* out, int64_t size) {
                                        if (size == kUnknownSize) {
                                          out->push_back('?');
                                        } else {
                                          absl::StrAppend(out, size);
                                        }
                                      }));
  if (shown < shape.size()) {
    absl::StrAppend(&text, ",... (", shape.size(), " numbers)");
  }
  return absl::StrCat(text, "]");
}

std::string TensorSpec::ToString() const {
  std::string text = absl::StrCat(DTypeShortName(dtype), ShapeString(shape));
  if (device != 0) absl::StrAppend(&text, "@cuda:", device - 1);
  return text;
}

Dims ContiguousStrides(absl::Span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    strides[i] = step;
    step = WrappingMul(step, std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

TensorSpec ContiguousSpec(DType dtype, absl::Span<const int64_t> shape) {
  TensorSpec spec;
  spec.dtype = dtype;
  spec.shape.assign(shape.begin(), shape.end());
  spec.strides = ContiguousStrides(shape);
  return spec;
}

TensorSpec ContiguousLike(const TensorSpec& spec) {
  TensorSpec like = ContiguousSpec(spec.dtype, spec.shape);
  like.device = spec.device;
  return like;
}

absl::Status CheckShape(DType dtype, absl::Span<const int64_t> shape) {
  return CheckSizes(dtype, shape, kMaxTensorBytes, "tensor");
}

absl::Status CheckViewShape(DType dtype, absl::Span<const int64_t> shape) {
  // The strides of a tensor without elements are products of its sizes.
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return CheckSizes(dtype, shape, empty ? kMaxTensorBytes : kMaxViewBytes,
                    "view");
}

absl::Status CheckFits(const TensorSpec& spec, int64_t storage_bytes) {
  if (spec.strides.size() != spec.shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape and strides must have equal length. Got ",
                     spec.shape.size(), " and ", spec.strides.size()));
  }
  if (absl::Status s = CheckViewShape(spec.dtype, spec.shape); !s.ok()) {
    return s;
  }
  bool overflow = spec.offset < 0;
  int64_t last = spec.offset;
  bool empty = false;
  for (int i = 0; i < spec.rank(); ++i) {
    empty |= spec.shape[i] == 0;
    overflow |= spec.strides[i] < 0;
    int64_t span = 0;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(spec.shape[i] - 1, 0),
                                       spec.strides[i], &span);
    overflow |= __builtin_add_overflow(last, span, &last);
  }
  int64_t end = 0;
  overflow |= __builtin_add_overflow(last, empty ? 0 : 1, &end);
  overflow |= __builtin_mul_overflow(
      end, static_cast<int64_t>(ItemSize(spec.dtype)), &end);
  if (overflow || (!empty && end > storage_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a view must stay inside its storage. Got ", spec.ToString(),
        " strides ", ShapeString(spec.strides), " offset ", spec.offset,
        " over ", storage_bytes, " bytes"));
  }
  return absl::OkStatus();
}

bool MayOverlap(const TensorSpec& spec) {
  if (spec.numel() <= 1) return false;
  absl::InlinedVector<std::pair<int64_t, int64_t>, 5> dims;  // stride, size
  for (int d = 0; d < spec.rank(); ++d) {
    if (spec.shape[d] > 1) dims.emplace_back(spec.strides[d], spec.shape[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

absl::StatusOr<Dims> BroadcastShapes(absl::Span<const int64_t> a,
                                     absl::Span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {  // i counts from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The size of tensor a (", x, ") must match the size of tensor b (", y,
          ") at non-singleton dimension ", rank - 1 - i));
    }
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

bool ViewStrides(const TensorSpec& spec, absl::Span<const int64_t> shape,
                 Dims* strides) {
  *strides = ContiguousStrides(shape);
  if (spec.contiguous()) return true;
  // Walk both shapes from the last dimension. A run of old dimensions that is
  // dense in itself ("chunk") may be cut again in any way.
  int view_dim = static_cast<int>(shape.size()) - 1;
  int64_t chunk_stride = spec.rank() == 0 ? 1 : spec.strides.back();
  int64_t chunk_size = 1;
  for (int d = spec.rank() - 1; d >= 0; --d) {
    chunk_size *= spec.shape[d];
    const bool chunk_ends =
        d == 0 || (spec.shape[d - 1] != 1 &&
                   spec.strides[d - 1] != chunk_size * chunk_stride);
    if (!chunk_ends) continue;
    int64_t view_size = 1;
    while (view_dim >= 0 && (view_size < chunk_size || shape[view_dim] == 1)) {
      (*strides)[view_dim] = view_size * chunk_stride;
      view_size *= shape[view_dim];
      --view_dim;
    }
    if (view_size != chunk_size) return false;
    if (d > 0) {
      chunk_size = 1;
      chunk_stride = spec.strides[d - 1];
    }
  }
  return view_dim == -1;
}

absl::StatusOr<int> NormalizeDim(int64_t dim, int rank) {
  const int64_t limit = std::max(rank, 1);
  if (dim < -limit || dim >= limit) {
    return absl::OutOfRangeError(
        absl::StrCat("Dimension out of range (expected to be in range of [",
                     -limit, ", ", limit - 1, "], but got ", dim, ")"));
  }
  return static_cast<int>(dim < 0 ? dim + limit : dim);
}

}  // namespace holdfast
