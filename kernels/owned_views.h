// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OwnedViews: views with all that they point at but the elements, for launches
// that happen after their call. Thread-safety: const methods may be shared.
#ifndef HOLDFAST_KERNELS_OWNED_VIEWS_H_
#define HOLDFAST_KERNELS_OWNED_VIEWS_H_

#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/number_operand.h"
#include "ops/tensor_spec.h"

namespace holdfast {

class OwnedViews {
 public:
  // `place`, if any, says where a tensor's elements are instead.
  explicit OwnedViews(absl::Span<const TensorView> views,
                      void* (*place)(const void*) = nullptr) {
    specs_.reserve(views.size());
    numbers_.reserve(views.size());
    views_.reserve(views.size());
    for (const TensorView& view : views) {
      if (!view.present()) {
        views_.emplace_back();
        continue;
      }
      specs_.push_back(*view.spec);
      void* data = view.data;
      if (IsNumber(view)) {
        Number& number = numbers_.emplace_back();
        std::memcpy(number.bytes, view.data, ItemSize(view.spec->dtype));
        data = number.bytes;
      } else if (place != nullptr) {
        data = place(view.data);
      }
      views_.push_back({data, &specs_.back()});
    }
  }
  OwnedViews(OwnedViews&&) = default;
  OwnedViews(const OwnedViews&) = delete;
  OwnedViews& operator=(const OwnedViews&) = delete;

  absl::Span<const TensorView> get() const { return views_; }

 private:
  struct Number {
    alignas(16) char bytes[16];
  };
  std::vector<TensorSpec> specs_;
  std::vector<Number> numbers_;
  std::vector<TensorView> views_;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_OWNED_VIEWS_H_
