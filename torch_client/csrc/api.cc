// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "api.h"

#include <Python.h>

#include <array>
#include <atomic>
#include <string>

namespace holdfast_torch {
namespace {

const HfClientApi* g_api = nullptr;
std::atomic<HfSession*> g_session{nullptr};

using c10::ScalarType;
constexpr std::array<ScalarType, 13> kTypes = {
    ScalarType::Undefined,    ScalarType::Bool,   ScalarType::Byte,
    ScalarType::Char,         ScalarType::Short,  ScalarType::Int,
    ScalarType::Long,         ScalarType::Half,   ScalarType::BFloat16,
    ScalarType::Float,        ScalarType::Double, ScalarType::ComplexFloat,
    ScalarType::ComplexDouble};

// Codes of absl::StatusCode.
enum Code {
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kOutOfRange = 11,
  kUnimplemented = 12,
};

}  // namespace

const HfClientApi& Api() { return *g_api; }

void LoadApi() {
  const void* found = PyCapsule_Import(HF_CLIENT_API_NAME, 0);
  if (found == nullptr) {
    PyErr_Clear();
    TORCH_CHECK(false,
                "holdfast_torch needs a newer holdfast: this one has no ",
                HF_CLIENT_API_NAME, ". Upgrade both together.");
  }
  const auto* api = static_cast<const HfClientApi*>(found);
  TORCH_CHECK(api->version >= HF_CLIENT_API_VERSION,
              "holdfast_torch needs version ", HF_CLIENT_API_VERSION, " of ",
              HF_CLIENT_API_NAME, ". Got ", api->version,
              ". Upgrade holdfast and holdfast_torch together.");
  g_api = api;
}

HfSession* Session() {
  HfSession* session = g_session.load(std::memory_order_acquire);
  if (C10_LIKELY(session != nullptr)) return session;
  HfError error;
  session = Api().session(&error);
  if (session == nullptr) Throw(error);
  g_session.store(session, std::memory_order_release);
  return session;
}

void ForgetSession() { g_session.store(nullptr, std::memory_order_release); }

void Throw(const HfError& error) {
  const std::string text = error.text;
  switch (error.code) {
    case kResourceExhausted:
      C10_THROW_ERROR(OutOfMemoryError, text);
    case kOutOfRange:
      // As PyTorch's own kernels of these refuse an index.
      if (text.rfind("[gather", 0) == 0 || text.rfind("[scatter", 0) == 0) {
        C10_THROW_ERROR(Error, text);
      }
      C10_THROW_ERROR(IndexError, text);
    case kUnimplemented:
      C10_THROW_ERROR(NotImplementedError, text);
    case kInvalidArgument:
      C10_THROW_ERROR(Error, text);
    default:
      throw c10::AcceleratorError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error.code,
          text);
  }
}

int ToDaemon(ScalarType type) {
  for (size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i] == type) return static_cast<int>(i);
  }
  C10_THROW_ERROR(
      NotImplementedError,
      std::string("holdfast has no tensors of dtype ") + c10::toString(type));
}

ScalarType FromDaemon(int dtype) {
  return kTypes.at(static_cast<size_t>(dtype));
}

}  // namespace holdfast_torch
