// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TensorSpec: what a tensor is without its data: element type, shape, strides
// and offset into its storage. Both sides compute with it; neither trusts the
// other's. Shapes and strides count elements, never bytes.
// Thread-safety: plain values; const methods are safe to share.
#ifndef HOLDFAST_OPS_TENSOR_SPEC_H_
#define HOLDFAST_OPS_TENSOR_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/dtype.h"

namespace holdfast {

// A shape, a stride list, a list of dimensions: any short list of integers.
using Dims = absl::InlinedVector<int64_t, 5>;

// Largest rank accepted: PyTorch's. Sets of dimensions are the bits of a
// uint64_t.
inline constexpr int kMaxRank = 64;
// Largest byte size of one tensor that has memory, and of what ops compute
// with: far above any memory, far below overflow.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;
// Of a view, whose elements may share places. Only views are made of what is
// larger than kMaxTensorBytes (InferOp refuses it elsewhere), so that nothing
// else need fear for products of its sizes.
inline constexpr int64_t kMaxViewBytes = int64_t{1} << 60;

// A size that only the data or the device can tell: in what inference says of
// the outputs of ops with kUnknownSizes, and in no tensor that exists.
inline constexpr int64_t kUnknownSize = -1;

// More than any device's number (ops/place_op.h).
inline constexpr int kMaxDevices = 64;

struct TensorSpec {
  DType dtype = DType::kFloat32;
  int8_t device = 0;  // as a program sees it (ops/place_op.h)
  Dims shape;
  Dims strides;        // same length as shape
  int64_t offset = 0;  // first element, counted from the storage's start

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t numel() const;
  // Bytes of the elements, as if contiguous.
  int64_t nbytes() const { return numel() * ItemSize(dtype); }
  // True iff the elements lie in row-major order without gaps (strides of
  // size-1 dimensions do not matter; empty tensors are contiguous).
  bool contiguous() const;
  // "f32[2,3]"; on a GPU "f32[2,3]@cuda:0".
  std::string ToString() const;

  friend bool operator==(const TensorSpec& a, const TensorSpec& b) {
    return a.dtype == b.dtype && a.device == b.device && a.shape == b.shape &&
           a.strides == b.strides && a.offset == b.offset;
  }
};

// Row-major strides of a shape. A size-0 dimension counts as 1, as in PyTorch.
// Meaningful for shapes that pass CheckShape; harmless for others.
Dims ContiguousStrides(absl::Span<const int64_t> shape);
TensorSpec ContiguousSpec(DType dtype, absl::Span<const int64_t> shape);
// Of the same type, shape and device.
TensorSpec ContiguousLike(const TensorSpec& spec);
int64_t NumElements(absl::Span<const int64_t> shape);
// "[2,3]"; an unknown size is "?".
std::string ShapeString(absl::Span<const int64_t> shape);

// Checks rank <= kMaxRank, sizes >= 0 and bytes <= kMaxTensorBytes without
// overflowing on any input. The message has no op prefix.
absl::Status CheckShape(DType dtype, absl::Span<const int64_t> shape);
// The same with kMaxViewBytes, unless there is no element.
absl::Status CheckViewShape(DType dtype, absl::Span<const int64_t> shape);

// Checks CheckViewShape, and that every element that `spec` can address lies
// inside a storage of `storage_bytes` bytes (overflow-safe; strides must be >=
// 0).
absl::Status CheckFits(const TensorSpec& spec, int64_t storage_bytes);

// False only if no two elements of `spec` share a place in the storage; true
// also where that would take long to tell. REQUIRES: CheckFits holds for some
// storage.
bool MayOverlap(const TensorSpec& spec);

// NumPy's broadcasting of two shapes. The message has no op prefix.
absl::StatusOr<Dims> BroadcastShapes(absl::Span<const int64_t> a,
                                     absl::Span<const int64_t> b);

// Strides that view `spec` with `shape` without moving data, or false when
// that is impossible (Tensor.view's rule). REQUIRES: same number of elements.
bool ViewStrides(const TensorSpec& spec, absl::Span<const int64_t> shape,
                 Dims* strides);

// `dim` in [-rank, rank) -> [0, rank). A rank-0 tensor accepts -1 and 0.
// The message is PyTorch's ("Dimension out of range ...").
absl::StatusOr<int> NormalizeDim(int64_t dim, int rank);

}  // namespace holdfast

#endif  // HOLDFAST_OPS_TENSOR_SPEC_H_
