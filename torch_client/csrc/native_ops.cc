// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch asks of every device by hand: empty tensors, views, copies to
// and from the CPU, single values.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "api.h"
#include "bridge.h"
#include "memory.h"

namespace holdfast_torch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor Empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pinned,
                 std::optional<at::MemoryFormat> format) {
  (void)layout, (void)device, (void)pinned;
  const auto type = c10::dtype_or_default(dtype);
  ToDaemon(type);
  return at::detail::empty_generic(size, DeviceAllocator(), kKeys, type,
                                   format);
}

at::Tensor EmptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout,
                        std::optional<at::Device> device,
                        std::optional<bool> pinned) {
  (void)layout, (void)device, (void)pinned;
  const auto type = c10::dtype_or_default(dtype);
  ToDaemon(type);
  return at::detail::empty_strided_generic(size, stride, DeviceAllocator(),
                                           kKeys, type);
}

Handle Upload(const at::Tensor& from) {
  const at::Tensor rows = from.contiguous();
  HfError error;
  HfTensor* put = Api().put(Session(), ToDaemon(rows.scalar_type()),
                            static_cast<int32_t>(rows.dim()),
                            rows.sizes().data(), rows.const_data_ptr(), &error);
  if (put == nullptr) Throw(error);
  return Handle(put);
}

void Download(const at::Tensor& from, void* to) {
  HfError error;
  Check(Api().read(HandleOf(from), to, from.nbytes(), &error), error);
}

// to.copy_(from) on the daemon, with conversion and broadcasting.
void CopyThere(const at::Tensor& to, HfTensor* from) {
  static const int op = Api().find_op("copy");
  HfTensor* inputs[] = {HandleOf(to), from};
  HfTensor* output = nullptr;
  HfError error;
  Check(Api().apply(Session(), op, nullptr, 0, inputs, 2, 1, &output, &error),
        error);
  Api().release(output);
}

// The elements as they lie, whatever self and to make of them.
void CopyElements(const at::Tensor& self, const at::Tensor& to) {
  if (IsOurs(self) && IsOurs(to)) {
    CopyThere(to, HandleOf(self));
  } else if (IsOurs(to)) {
    TORCH_CHECK(self.device().is_cpu(), "holdfast: a copy from ",
                self.device());
    const Handle put = Upload(self);
    DeviceMemory* memory = MemoryOf(*to.storage().unsafeGetStorageImpl());
    // A tensor that nothing was written to takes the upload for its own.
    if (memory != nullptr && self.scalar_type() == to.scalar_type() &&
        self.sizes() == to.sizes() && to.is_contiguous() &&
        to.storage_offset() == 0 && to.nbytes() == to.storage().nbytes()) {
      if (TakeWhole(memory, put)) return;
    }
    CopyThere(to, put.get());
  } else {
    TORCH_CHECK(to.device().is_cpu(), "holdfast: a copy to ", to.device());
    if (to.scalar_type() == self.scalar_type() && self.sizes() == to.sizes() &&
        to.is_contiguous()) {
      Download(self, to.mutable_data_ptr());
    } else {
      at::Tensor rows =
          at::empty(self.sizes(), to.options().dtype(self.scalar_type()));
      Download(self, rows.mutable_data_ptr());
      to.copy_(rows);
    }
  }
}

// PyTorch leaves lazy conjugates and negatives to this kernel.
at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& to, bool) {
  if (to.numel() == 0) return to;
  if (!IsOurs(self) && (self.is_conj() || self.is_neg())) {
    return CopyFrom(self.resolve_conj().resolve_neg(), to, false);
  }
  if (!IsOurs(to) && (to.is_conj() || to.is_neg())) {
    at::Tensor plain = at::empty(to.sizes(), to.options());
    to.copy_(CopyFrom(self, plain, false));
    return to;
  }
  CopyElements(self, to);
  if (self.is_conj() != to.is_conj()) to.conj_physical_();
  if (self.is_neg() != to.is_neg()) to.neg_();
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return CopyFrom(self, to, false);
}

at::Scalar LocalScalar(const at::Tensor& self) {
  at::Tensor one = at::empty({}, at::TensorOptions().dtype(self.scalar_type()));
  Download(self, one.mutable_data_ptr());
  return one.item();
}

const at::Tensor& Resize(const at::Tensor& self, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  const int64_t before = self.numel();
  at::Tensor kept;
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const auto needed = at::detail::computeStorageNbytesContiguous(
      sizes, self.dtype().itemsize(),
      static_cast<size_t>(self.storage_offset()));
  if (needed > self.storage().nbytes()) {
    if (before != 0) kept = self.clone().view({-1});
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(),
                                                             needed);
  }
  impl->set_sizes_contiguous(sizes);
  if (format.has_value()) impl->empty_tensor_restride(*format);
  if (kept.defined()) {
    self.as_strided({before}, {1}, self.storage_offset()).copy_(kept);
  }
  return self;
}

at::Tensor AsStrided(const at::Tensor& self, c10::SymIntArrayRef size,
                     c10::SymIntArrayRef stride,
                     std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__))
             : std::nullopt);
}

at::Tensor View(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor ReshapeAlias(const at::Tensor& self, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                    C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor& SetStorage(at::Tensor& self, at::Storage source, c10::SymInt offset,
                       c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  at::native::checkSetStorage(self, source, offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(
      offset.guard_int(__FILE__, __LINE__));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
  return self;
}

at::Tensor& SetTensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

at::Tensor& SetEmpty(at::Tensor& self) {
  const c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, NewDeviceMemory(0, ShownHandle()),
      DeviceAllocator(), true));
  return self.set_(storage, 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", Empty);
  m.impl("empty_strided", EmptyStrided);
  m.impl("_copy_from", CopyFrom);
  m.impl("_copy_from_and_resize", CopyFromAndResize);
  m.impl("_local_scalar_dense", LocalScalar);
  m.impl("resize_", Resize);
  m.impl("as_strided", AsStrided);
  m.impl("view", View);
  m.impl("_reshape_alias", ReshapeAlias);
  m.impl("unfold", at::native::unfold);
  m.impl("set_.source_Storage_storage_offset", SetStorage);
  m.impl("set_.source_Tensor", SetTensor);
  m.impl("set_", SetEmpty);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
}

// Resolving the bits first would copy, which asks for this kernel again.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace holdfast_torch
