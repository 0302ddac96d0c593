// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What torch.save, torch.load and deepcopy ask of storages: a tensor over all
// of one.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace holdfast_torch {
namespace {

at::Tensor& SetWholeStorage(at::Tensor& self, at::Storage storage) {
  const auto item = static_cast<int64_t>(self.itemsize());
  const int64_t count = static_cast<int64_t>(storage.nbytes()) / item;
  return self.set_(std::move(storage), 0, {count}, {1});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("set_.source_Storage", SetWholeStorage);
}

}  // namespace
}  // namespace holdfast_torch
