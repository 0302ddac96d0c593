// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The client's core as this library uses it: holdfast._C's table of functions,
// with errors as PyTorch's exceptions and references that free themselves.
// Thread-safety: everything from any thread.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <utility>

#include "client_api.h"

namespace holdfast_torch {

// The table; found when the module is imported, with the GIL held.
const HfClientApi& Api();
void LoadApi();

// The session where new tensors are made; connects on first use. Throws.
HfSession* Session();
// Follows holdfast.connect(): the next use asks again.
void ForgetSession();

// Throws PyTorch's exception for the error.
[[noreturn]] void Throw(const HfError& error);
inline void Check(int code, const HfError& error) {
  if (C10_UNLIKELY(code != 0)) Throw(error);
}

// One reference to a tensor of the daemon's. Null by default.
class Handle {
 public:
  Handle() = default;
  explicit Handle(HfTensor* owned) : tensor_(owned) {}
  Handle(const Handle& other)
      : tensor_(other.tensor_ ? Api().retain(other.tensor_) : nullptr) {}
  Handle(Handle&& other) noexcept
      : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Handle() {
    if (tensor_ != nullptr) Api().release(tensor_);
  }
  HfTensor* get() const { return tensor_; }
  explicit operator bool() const { return tensor_ != nullptr; }

 private:
  HfTensor* tensor_ = nullptr;
};

// Numbers of ops/dtype.h. Throws for types that the daemon has not.
int ToDaemon(c10::ScalarType type);
c10::ScalarType FromDaemon(int dtype);

}  // namespace holdfast_torch
