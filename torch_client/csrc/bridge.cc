// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "bridge.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include <utility>

#include "op_call.h"
#include "reinterpret.h"

namespace holdfast_torch {
namespace {

// A view's handle, kept with the tensor, and the memory that it was made of: an
// in-place change of sizes, or of the storage, makes it stale.
struct CachedHandle final : c10::BackendMeta {
  ShownHandle shown;
  uint64_t memory = 0;
};

Shape ShapeOf(const c10::TensorImpl& impl) {
  return {impl.sizes(), impl.strides(), impl.storage_offset(),
          ToDaemon(c10::typeMetaToScalarType(impl.dtype()))};
}

ShownHandle Show(Handle handle) {
  ShownHandle shown;
  HfError error;
  Check(Api().spec(handle.get(), &shown.spec, &error), error);
  shown.handle = std::move(handle);
  return shown;
}

// Elements that nobody has written, or the ones that fill_ noted.
Handle Make(c10::IntArrayRef sizes, int dtype, const HfAttr& fill) {
  static const Op empty("empty"), full("full");
  if (fill.kind == HF_NONE) {
    return Call(empty).Ints(sizes).DType(dtype).RunHandle();
  }
  return Call(full).Ints(sizes).Value(fill).DType(dtype).RunHandle();
}

Handle AsStrided(HfTensor* whole, const Shape& shape) {
  static const Op op("as_strided");
  return Call(op)
      .In(whole)
      .Ints(shape.sizes)
      .Ints(shape.strides)
      .Int(shape.offset)
      .RunHandle();
}

bool IsRowMajor(const Shape& shape) {
  int64_t expected = 1;
  for (size_t i = shape.sizes.size(); i-- > 0;) {
    if (shape.sizes[i] != 1 && shape.strides[i] != expected) return false;
    expected *= shape.sizes[i];
  }
  return true;
}

// REQUIRES: memory->mutex.
void MakeWhole(DeviceMemory* memory, const Shape& shape, size_t bytes) {
  const bool filled = memory->fill.kind != HF_NONE;
  const int dtype = filled ? memory->fill_dtype : shape.dtype;
  const auto item = static_cast<int64_t>(c10::elementSize(FromDaemon(dtype)));
  const int64_t count = static_cast<int64_t>(bytes) / item;
  const bool all = dtype == shape.dtype && shape.offset == 0 &&
                   IsRowMajor(shape) &&
                   c10::multiply_integers(shape.sizes) == count;
  const c10::IntArrayRef sizes =
      all ? shape.sizes : c10::IntArrayRef(&count, 1);
  memory->whole = Show(Make(sizes, dtype, memory->fill));
  memory->made.store(true, std::memory_order_release);
}

// One is complex numbers, the other the real ones that they are pairs of.
bool ArePairs(c10::ScalarType a, c10::ScalarType b) {
  return c10::toRealValueType(a) == b || c10::toRealValueType(b) == a;
}

// Elements of `held` as `dtype`, in the same memory. REQUIRES: ArePairs.
Handle PairsOf(const Handle& elements, c10::ScalarType held,
               c10::ScalarType dtype, int64_t bytes) {
  if (c10::toRealValueType(held) == dtype) {
    static const Op op("view_as_real");
    return Call(op).In(elements.get()).RunHandle();
  }
  static const Op op("view_as_complex");
  const int64_t sizes[] = {
      bytes / static_cast<int64_t>(c10::elementSize(dtype)), 2};
  const int64_t strides[] = {2, 1};
  const Handle pairs =
      AsStrided(elements.get(), {sizes, strides, 0, ToDaemon(dtype)});
  return Call(op).In(pairs.get()).RunHandle();
}

// The storage's elements as those of another dtype, over the same memory. May
// take the GIL: no lock may be held.
ShownHandle AsOtherType(const ShownHandle& whole, int dtype, size_t bytes) {
  const c10::ScalarType held = FromDaemon(whole.spec.dtype);
  const c10::ScalarType wanted = FromDaemon(dtype);
  const auto size = static_cast<int64_t>(bytes);
  if (ArePairs(held, wanted)) {
    return Show(PairsOf(whole.handle, held, wanted, size));
  }
  const auto item = static_cast<int64_t>(c10::elementSize(wanted));
  return Show(Reinterpreted(whole.handle, size / item, wanted));
}

// A view of the storage that looks as `shape` says.
ShownHandle FindView(DeviceMemory* memory, const Shape& shape, size_t bytes) {
  std::unique_lock<std::mutex> lock(memory->mutex);
  if (!memory->made.load(std::memory_order_relaxed)) {
    MakeWhole(memory, shape, bytes);
  }
  if (Shows(memory->whole.spec, shape)) return memory->whole;
  for (const ShownHandle& view : memory->views) {
    if (view.handle && Shows(view.spec, shape)) return view;
  }
  ShownHandle base = memory->whole;
  if (C10_UNLIKELY(base.spec.dtype != shape.dtype)) {
    lock.unlock();
    base = AsOtherType(base, shape.dtype, bytes);
    lock.lock();
  }
  if (!Shows(base.spec, shape)) {
    base = Show(AsStrided(base.handle.get(), shape));
  }
  memory->views[memory->next_view] = base;
  memory->next_view = (memory->next_view + 1) % memory->views.size();
  return base;
}

[[noreturn]] void ThrowOtherDevice(const at::Tensor& tensor) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at "
              "least two devices, holdfast:0 and ",
              tensor.device(), "!");
}

bool CoversStorage(const c10::TensorImpl& impl) {
  return impl.is_non_overlapping_and_dense() && impl.storage_offset() == 0 &&
         static_cast<size_t>(impl.numel()) * impl.dtype().itemsize() ==
             impl.storage().nbytes();
}

}  // namespace

Handle Apply(int op, const HfAttr* attrs, int num_attrs,
             HfTensor* const* inputs, int num_inputs) {
  HfError error;
  HfTensor* output = nullptr;
  Check(Api().apply(Session(), op, attrs, num_attrs, inputs, num_inputs, 0,
                    &output, &error),
        error);
  return Handle(output);
}

HfTensor* HandleOf(const at::Tensor& tensor) {
  if (C10_UNLIKELY(!IsOurs(tensor))) ThrowOtherDevice(tensor);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  TORCH_CHECK(impl->has_storage(), "holdfast: a tensor without a storage");
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  DeviceMemory* memory = MemoryOf(*storage);
  const Shape shape = ShapeOf(*impl);
  if (C10_LIKELY(memory != nullptr &&
                 memory->made.load(std::memory_order_acquire) &&
                 Shows(memory->whole.spec, shape))) {
    return memory->whole.handle.get();
  }
  const uint64_t number = memory == nullptr ? 0 : memory->number;
  auto* cached = static_cast<CachedHandle*>(impl->get_backend_meta());
  if (cached != nullptr && cached->memory == number &&
      Shows(cached->shown.spec, shape)) {
    return cached->shown.handle.get();
  }
  if (memory == nullptr) {
    // Such as from at::from_blob: elements that only an address leads to.
    TORCH_CHECK(
        impl->numel() == 0,
        "holdfast: a tensor over a device's address without its storage");
  }
  ShownHandle shown = memory == nullptr
                          ? Show(Make(shape.sizes, shape.dtype, HfAttr{}))
                          : FindView(memory, shape, storage->nbytes());
  HfTensor* result = shown.handle.get();
  if (memory != nullptr && result == memory->whole.handle.get()) return result;
  auto kept = c10::make_intrusive<CachedHandle>();
  kept->shown = std::move(shown);
  kept->memory = number;
  impl->set_backend_meta(std::move(kept));
  return result;
}

at::Tensor Wrap(Handle handle) {
  ShownHandle shown = Show(std::move(handle));
  const HfSpec spec = shown.spec;
  const auto rank = static_cast<size_t>(spec.rank);
  const c10::IntArrayRef sizes(spec.shape, rank);
  const c10::IntArrayRef strides(spec.strides, rank);
  const c10::ScalarType dtype = FromDaemon(spec.dtype);
  const auto item = c10::elementSize(dtype);
  const size_t bytes =
      C10_LIKELY(spec.offset == 0 && IsRowMajor({sizes, strides, 0, 0}))
          ? static_cast<size_t>(spec.elements) * item
          : at::detail::computeStorageNbytes(sizes, strides, item,
                                             static_cast<size_t>(spec.offset));
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      NewDeviceMemory(bytes, std::move(shown)), DeviceAllocator(),
      /*resizable=*/true));
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  // A new tensor is of size {0}.
  if (spec.rank != 1 || spec.elements != 0 || spec.strides[0] != 1) {
    impl->set_sizes_and_strides(sizes, strides, spec.offset);
  }
  return at::Tensor(std::move(impl));
}

bool TakeWhole(DeviceMemory* memory, const Handle& elements) {
  const std::lock_guard<std::mutex> lock(memory->mutex);
  if (memory->made.load(std::memory_order_relaxed)) return false;
  memory->whole = Show(elements);
  memory->made.store(true, std::memory_order_release);
  return true;
}

bool FillLater(const at::Tensor& tensor, const at::Scalar& value) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  DeviceMemory* memory =
      MemoryOf(*impl.unsafe_storage().unsafeGetStorageImpl());
  if (memory == nullptr || c10::isComplexType(tensor.scalar_type()) ||
      !CoversStorage(impl)) {
    return false;
  }
  // Zeros and ones, which every dtype has: what else may be refused now.
  if (!value.equal(0) && !value.equal(1)) return false;
  const std::lock_guard<std::mutex> lock(memory->mutex);
  if (memory->made.load(std::memory_order_relaxed)) return false;
  memory->fill = AttrOf(value, tensor.scalar_type());
  memory->fill_dtype = ToDaemon(tensor.scalar_type());
  return true;
}

}  // namespace holdfast_torch
