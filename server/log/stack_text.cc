// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/stack_text.h"

#include <dlfcn.h>

#include <cstring>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace holdfast {
namespace {

// Of one frame: arguments of templates can be pages long.
constexpr size_t kMostBytes = 160;

std::string FrameText(void* frame) {
  // A return address is behind the call, maybe in the next function.
  char* const at = static_cast<char*>(frame) - 1;
  char symbol[1024];
  if (absl::Symbolize(at, symbol, sizeof symbol)) {
    const absl::string_view name = symbol;
    if (name.size() <= kMostBytes) return std::string(name);
    return absl::StrCat(name.substr(0, kMostBytes), "...");
  }
  Dl_info info;
  if (dladdr(at, &info) == 0 || info.dli_fname == nullptr) {
    return absl::StrCat("0x", absl::Hex(reinterpret_cast<uintptr_t>(at)));
  }
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return absl::StrCat(slash == nullptr ? info.dli_fname : slash + 1, "+0x",
                      absl::Hex(at - static_cast<char*>(info.dli_fbase)));
}

}  // namespace

std::string StackText(absl::Span<void* const> frames) {
  std::string text;
  for (void* const frame : frames) {
    absl::StrAppend(&text, text.empty() ? "" : " < ", FrameText(frame));
  }
  return text;
}

}  // namespace holdfast
