// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/check.h"

#include <unwind.h>

#include <new>
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

struct Walk {
  CallStack* stack;
  int skip;
};

_Unwind_Reason_Code Visit(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  if (walk.skip-- > 0) return _URC_NO_REASON;
  const auto frame = reinterpret_cast<void*>(_Unwind_GetIP(context));
  if (frame == nullptr || walk.stack->depth == CallStack::kMost) {
    return _URC_END_OF_STACK;
  }
  walk.stack->frames[walk.stack->depth++] = frame;
  return _URC_NO_REASON;
}

absl::Status OutOfMemory(absl::string_view where, absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("[", where, "] out of memory: ", what,
                   " do not fit. Use fewer or smaller tensors"));
}

absl::Status CheckFailed(absl::string_view where, absl::string_view what,
                         absl::Span<void* const> stack) {
  absl::Status status = absl::InternalError(absl::StrCat(
      "[", where, "] a check failed in ", where, " at ", what,
      "; this is a mistake of the daemon's, whose log says more: please "
      "report it"));
  status.SetPayload(
      kCheckFailedPayload,
      absl::Cord(absl::string_view(reinterpret_cast<const char*>(stack.data()),
                                   stack.size() * sizeof(void*))));
  return status;
}

}  // namespace

// Not inlined: it is the frame that is left out.
ABSL_ATTRIBUTE_NOINLINE CallStack CallStack::Here(int skip) {
  CallStack stack;
  Walk walk{&stack, skip + 1};
  _Unwind_Backtrace(&Visit, &walk);
  return stack;
}

void FailCheck(const char* file, int line, const char* condition) {
  // Abseil's own headers are named by where they lie on the machine that built
  // this.
  absl::string_view name = file;
  if (const size_t at = name.find("/absl/"); at != name.npos) {
    name.remove_prefix(at + 1);
  }
  throw CheckFailure(line == 0 ? absl::StrCat(name, ": ", condition)
                               : absl::StrCat(name, ":", line, ": ", condition),
                     CallStack::Here(/*skip=*/1));
}

absl::Status CaughtStatus(absl::string_view where) {
  try {
    throw;
  } catch (const CheckFailure& failure) {
    return CheckFailed(where, failure.what(), failure.stack().span());
  } catch (const std::bad_alloc&) {
    return OutOfMemory(where, "the lists that the op needs");
  } catch (const std::length_error&) {
    return OutOfMemory(where, "the lists that the op needs");
  } catch (const std::exception& error) {
    return CheckFailed(where, absl::StrCat("an unknown line: ", error.what()),
                       {});
  }
}

}  // namespace holdfast

// checked/absl/status/internal/statusor_internal.h declares it.
void absl::internal_statusor::Helper::FailCheck(const absl::Status& status) {
  holdfast::FailCheck("absl/status/statusor.h", 0,
                      absl::StrCat("ok(), got ", status.ToString()).c_str());
}
