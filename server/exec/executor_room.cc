// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: how many handles and tape nodes a session may have, and how much of
// the daemon's heap.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// Handles of commands that failed take little, but they do take something.
constexpr uint64_t kSpareHandles = 1 << 16;

}  // namespace

absl::Status Executor::WhyFull() const {
  if (!heap_.refusal().ok()) return heap_.refusal();
  const bool handles = store_.size() >= max_handles_.load();
  const uint64_t most = handles ? max_handles_.load() : max_graph_nodes_.load();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a session may have at most ", most,
      handles ? " tensors" : " recorded ops in its graphs", ". Got ",
      handles ? store_.size() : static_cast<uint64_t>(nodes_),
      handles ? ". Delete some"
              : ". Let results go that are no longer needed; where a loss is "
                "added up, add loss.item() or loss.detach()",
      ", or ask an admin for more (holdfast limits)"));
}

FailurePtr Executor::FullFailure(const std::string& op) {
  if (full_failure_ == nullptr || full_failure_->reported) {
    const absl::Status why = WhyFull();
    full_failure_ = NewFailure(
        absl::Status(why.code(), absl::StrCat("[", op, "] ", why.message())),
        op);
  } else {
    ++limit_hits_;
  }
  return full_failure_;
}

absl::Status Executor::CheckSpent() const {
  if (!heap_.spent() && store_.size() < max_handles_.load() + kSpareHandles) {
    return absl::OkStatus();
  }
  const absl::Status why = WhyFull();
  return absl::Status(
      why.code(), absl::StrCat("[session] ", why.message(),
                               ". The program went on, so its session ends"));
}

}  // namespace holdfast
