// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "bridge.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include <utility>

#include "memory.h"
#include "reinterpret.h"

namespace holdfast_torch {
namespace {

// A tensor's handle, and what it was when the handle was made: an in-place
// change of sizes, or of the storage, makes it stale.
struct CachedHandle final : c10::BackendMeta {
  Handle handle;
  uint64_t memory = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::DimVector sizes;
  c10::DimVector strides;
  int64_t offset = 0;

  bool Fits(const c10::TensorImpl& impl, uint64_t number) const {
    return memory == number && offset == impl.storage_offset() &&
           dtype == c10::typeMetaToScalarType(impl.dtype()) &&
           impl.sizes() == c10::IntArrayRef(sizes) &&
           impl.strides() == c10::IntArrayRef(strides);
  }
};

void Remember(c10::TensorImpl* impl, uint64_t memory, Handle handle) {
  auto cached = c10::make_intrusive<CachedHandle>();
  cached->handle = std::move(handle);
  cached->memory = memory;
  cached->dtype = c10::typeMetaToScalarType(impl->dtype());
  cached->sizes = impl->sizes();
  cached->strides = impl->strides();
  cached->offset = impl->storage_offset();
  impl->set_backend_meta(std::move(cached));
}

int OpNamed(const char* name) {
  const int op = Api().find_op(name);
  TORCH_CHECK(op >= 0, "this holdfast has no op ", name);
  return op;
}

HfAttr Ints(int op, const char* name, c10::IntArrayRef values) {
  HfAttr attr{};
  attr.slot = Api().attr_slot(op, name);
  attr.kind = HF_INTS;
  attr.integer = static_cast<int64_t>(values.size());
  attr.address = values.data();
  return attr;
}
HfAttr Int(int op, const char* name, int kind, int64_t value) {
  HfAttr attr{};
  attr.slot = Api().attr_slot(op, name);
  attr.kind = kind;
  attr.integer = value;
  return attr;
}

Handle Empty(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  static const int op = OpNamed("empty");
  const HfAttr attrs[] = {Ints(op, "size", sizes),
                          Int(op, "dtype", HF_DTYPE, ToDaemon(dtype))};
  return Apply(op, attrs, 2, nullptr, 0);
}

Handle AsStrided(HfTensor* whole, const c10::TensorImpl& impl) {
  static const int op = OpNamed("as_strided");
  const HfAttr attrs[] = {
      Ints(op, "size", impl.sizes()), Ints(op, "stride", impl.strides()),
      Int(op, "storage_offset", HF_INT, impl.storage_offset())};
  return Apply(op, attrs, 3, &whole, 1);
}

// One is complex numbers, the other the real ones that they are pairs of.
bool ArePairs(c10::ScalarType a, c10::ScalarType b) {
  return c10::toRealValueType(a) == b || c10::toRealValueType(b) == a;
}

// Elements of `held` as `dtype`, in the same memory. REQUIRES: ArePairs.
Handle PairsOf(const Handle& elements, c10::ScalarType held,
               c10::ScalarType dtype, int64_t bytes) {
  HfTensor* whole = elements.get();
  if (c10::toRealValueType(held) == dtype) {
    static const int op = OpNamed("view_as_real");
    return Apply(op, nullptr, 0, &whole, 1);
  }
  static const int strided = OpNamed("as_strided");
  static const int complex = OpNamed("view_as_complex");
  const int64_t count = bytes / static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t sizes[] = {count, 2};
  const int64_t strides[] = {2, 1};
  const HfAttr attrs[] = {Ints(strided, "size", sizes),
                          Ints(strided, "stride", strides),
                          Int(strided, "storage_offset", HF_INT, 0)};
  const Handle pairs = Apply(strided, attrs, 3, &whole, 1);
  HfTensor* input = pairs.get();
  return Apply(complex, nullptr, 0, &input, 1);
}

bool SameView(HfTensor* whole, const c10::TensorImpl& impl) {
  HfSpec spec;
  HfError error;
  Check(Api().spec(whole, &spec, &error), error);
  const auto rank = static_cast<size_t>(spec.rank);
  return spec.offset == impl.storage_offset() &&
         impl.sizes() == c10::IntArrayRef(spec.shape, rank) &&
         impl.strides() == c10::IntArrayRef(spec.strides, rank);
}

}  // namespace

bool IsOurs(const at::Tensor& tensor) {
  return tensor.device().type() == c10::DeviceType::PrivateUse1;
}

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
  TORCH_CHECK(IsOurs(tensor),
              "Expected all tensors to be on the same device, but found at "
              "least two devices, holdfast:0 and ",
              tensor.device(), "!");
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  TORCH_CHECK(impl->has_storage(), "holdfast: a tensor without a storage");
  DeviceMemory* memory = MemoryOf(*impl->storage().unsafeGetStorageImpl());
  const uint64_t number = memory == nullptr ? 0 : memory->number;
  auto* cached = static_cast<CachedHandle*>(impl->get_backend_meta());
  if (C10_LIKELY(cached != nullptr && cached->Fits(*impl, number))) {
    return cached->handle.get();
  }
  const auto dtype = c10::typeMetaToScalarType(impl->dtype());
  Handle view;
  if (memory == nullptr) {
    // Such as from at::from_blob: elements that only an address leads to.
    TORCH_CHECK(
        impl->numel() == 0,
        "holdfast: a tensor over a device's address without its storage");
    view = Empty(impl->sizes(), dtype);
  } else {
    std::unique_lock<std::mutex> lock(memory->mutex);
    const int64_t item = static_cast<int64_t>(impl->dtype().itemsize());
    const auto bytes = static_cast<int64_t>(impl->storage().nbytes());
    if (!memory->whole) {
      if (impl->is_contiguous() && impl->storage_offset() == 0 &&
          impl->numel() * item == bytes) {
        memory->whole = Empty(impl->sizes(), dtype);
      } else {
        const int64_t count = bytes / item;
        memory->whole = Empty(c10::IntArrayRef(&count, 1), dtype);
      }
      memory->dtype = dtype;
    }
    Handle whole = memory->whole;
    const c10::ScalarType held = memory->dtype;
    lock.unlock();
    if (held != dtype) {
      whole = ArePairs(held, dtype) ? PairsOf(whole, held, dtype, bytes)
                                    : Reinterpreted(whole, bytes / item, dtype);
    }
    view = SameView(whole.get(), *impl) ? whole : AsStrided(whole.get(), *impl);
  }
  HfTensor* result = view.get();
  Remember(impl, number, std::move(view));
  return result;
}

at::Tensor Wrap(Handle handle) {
  HfSpec spec;
  HfError error;
  Check(Api().spec(handle.get(), &spec, &error), error);
  const auto rank = static_cast<size_t>(spec.rank);
  const c10::IntArrayRef sizes(spec.shape, rank);
  const c10::IntArrayRef strides(spec.strides, rank);
  const c10::ScalarType dtype = FromDaemon(spec.dtype);
  const size_t bytes =
      at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype),
                                       static_cast<size_t>(spec.offset));
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      NewDeviceMemory(bytes, handle, dtype), DeviceAllocator(),
      /*resizable=*/true));
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  impl->set_sizes_and_strides(sizes, strides);
  impl->set_storage_offset(spec.offset);
  c10::TensorImpl* raw = impl.get();
  at::Tensor tensor = at::Tensor(std::move(impl));
  const DeviceMemory* memory = MemoryOf(*raw->storage().unsafeGetStorageImpl());
  Remember(raw, memory->number, std::move(handle));
  return tensor;
}

}  // namespace holdfast_torch
