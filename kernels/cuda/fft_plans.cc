// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fft_plans.h"

#include "absl/strings/str_cat.h"

namespace holdfast::cuda {
namespace {

// A plan holds device memory of its own: a few hundred kilobytes for long rows.
constexpr size_t kMostPlans = 256;

const char* NameOf(cufftResult result) {
  switch (result) {
    case CUFFT_ALLOC_FAILED:
      return "CUFFT_ALLOC_FAILED";
    case CUFFT_INTERNAL_ERROR:
      return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED:
      return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED:
      return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE";
    default:
      return nullptr;
  }
}

}  // namespace

absl::Status FftStatus(cufftResult result, const char* what) {
  if (result == CUFFT_SUCCESS) return absl::OkStatus();
  const char* const name = NameOf(result);
  const std::string text =
      name != nullptr ? std::string(name)
                      : absl::StrCat("error ", static_cast<int>(result));
  const std::string message = absl::StrCat("[cuda] ", what, ": ", text, ".");
  return result == CUFFT_ALLOC_FAILED
             ? absl::ResourceExhaustedError(message + " Free tensors.")
             : absl::InternalError(message);
}

absl::StatusOr<FftPlans::Plan> FftPlans::Find(cufftType type, int64_t n,
                                              int64_t rows) {
  const std::tuple<int, int64_t, int64_t> key = {type, n, rows};
  const auto it = plans_.find(key);
  if (it != plans_.end()) return it->second;
  if (plans_.size() >= kMostPlans) DropAll();
  Plan plan = {};
  absl::Status s = FftStatus(library_.cufftCreate(&plan.handle), "cufftCreate");
  if (!s.ok()) return s;
  // Its work area is scratch memory of the call, which the session pays for.
  s = FftStatus(library_.cufftSetAutoAllocation(plan.handle, 0),
                "cufftSetAutoAllocation");
  if (s.ok()) {
    long long size = n;
    s = FftStatus(library_.cufftMakePlanMany64(plan.handle, 1, &size, nullptr,
                                               1, 0, nullptr, 1, 0, type, rows,
                                               &plan.work_bytes),
                  "cufftMakePlanMany64");
  }
  if (!s.ok()) {
    library_.cufftDestroy(plan.handle);
    return s;
  }
  plans_.emplace(key, plan);
  return plan;
}

void FftPlans::DropAll() {
  if (plans_.empty()) return;
  for (const auto& [key, plan] : plans_) library_.cufftDestroy(plan.handle);
  plans_.clear();
  ++dropped_;
}

}  // namespace holdfast::cuda
