// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/command_line.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/version.h"

namespace holdfast {
namespace {

constexpr char kUsage[] =
    "holdfastd: holds your tensors, fast.\n\n"
    "Usage: holdfastd [flags]\n\n";

// Our flags alone, and success: a question that was answered is no error.
void PrintHelp() {
  std::map<std::string, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), "server/main.cc")) {
      flags[std::string(name)] = flag;
    }
  }
  std::fputs(kUsage, stdout);
  for (const auto& [name, flag] : flags) {
    std::printf("  --%s (default: %s)\n      %s\n", name.c_str(),
                absl::StrCat("\"", flag->DefaultValue(), "\"").c_str(),
                flag->Help().c_str());
  }
}

}  // namespace

bool AnswersQuestion(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view arg = argv[i];
    if (arg == "--") return false;
    if (arg == "--help" || arg == "-h" || arg == "-help") {
      PrintHelp();
      return true;
    }
    if (arg == "--version" || arg == "-version") {
      std::puts(kServerName);
      return true;
    }
  }
  return false;
}

absl::Status CheckFlagNames(int argc, char** argv) {
  // Abseil's own, which it does not list.
  const std::set<absl::string_view> kBuiltIn = {"flagfile", "fromenv",
                                                "tryfromenv", "undefok"};
  for (int i = 1; i < argc; ++i) {
    absl::string_view name = argv[i];
    if (name == "--") break;
    if (!absl::ConsumePrefix(&name, "--")) continue;
    name = name.substr(0, name.find('='));
    absl::string_view positive = name;
    if (absl::FindCommandLineFlag(name) == nullptr &&
        kBuiltIn.count(name) == 0 &&
        !(absl::ConsumePrefix(&positive, "no") &&
          absl::FindCommandLineFlag(positive) != nullptr)) {
      return absl::InvalidArgumentError(
          absl::StrCat("[flags] there is no flag --", name,
                       "; holdfastd --help lists them. Got '", argv[i], "'."));
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
