// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of what must hold unless this program itself is wrong. A failed one
// ends the op that it was made for, never the process: it throws, and whoever
// runs ops catches (CaughtStatus). Code that is compiled with CHECKED_ABSL
// (check.bzl) has the bounds of absl::Span and absl::InlinedVector checked in
// the same way; Abseil itself would end the process.
//
// What a client may get wrong is no check's business: that is an absl::Status
// which says what it got.
// Thread-safety: any thread.
#ifndef HOLDFAST_OPS_CHECK_H_
#define HOLDFAST_OPS_CHECK_H_

#include <exception>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#define HF_CHECK(condition)     \
  (ABSL_PREDICT_TRUE(condition) \
       ? static_cast<void>(0)   \
       : ::holdfast::FailCheck(__FILE__, __LINE__, #condition))

namespace holdfast {

[[noreturn]] void FailCheck(const char* file, int line, const char* condition);

// Return addresses, the innermost first.
struct CallStack {
  static constexpr int kMost = 48;
  void* frames[kMost];
  int depth = 0;

  // Of the caller, without its first `skip` callers. Safe in a signal handler
  // (which is a frame, like the code it interrupted).
  static CallStack Here(int skip = 0);
  absl::Span<void* const> span() const {
    return absl::MakeConstSpan(frames, depth);
  }
};

class CheckFailure final : public std::exception {
 public:
  CheckFailure(std::string text, const CallStack& stack)
      : text_(std::move(text)), stack_(stack) {}
  // "FILE:LINE: CONDITION".
  const char* what() const noexcept override { return text_.c_str(); }
  const CallStack& stack() const { return stack_; }

 private:
  const std::string text_;
  const CallStack stack_;
};

// What is to be told of the exception that is being handled, in a catch block:
// ResourceExhausted where memory, or the longest list, was too short; else
// Internal, with kCheckFailedPayload. `where` is who was at work, "add" or
// "backward of add".
absl::Status CaughtStatus(absl::string_view where);

// The CallStack's frames of a failed check, as bytes; empty where only the
// catch is known.
inline constexpr char kCheckFailedPayload[] = "holdfast/check_failed";

}  // namespace holdfast

#endif  // HOLDFAST_OPS_CHECK_H_
