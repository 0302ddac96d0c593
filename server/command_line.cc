// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/command_line.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/version.h"

ABSL_DECLARE_FLAG(int, threads);
ABSL_DECLARE_FLAG(uint64_t, max_sessions);
ABSL_DECLARE_FLAG(double, grace_max_seconds);
ABSL_DECLARE_FLAG(std::string, listen);
ABSL_DECLARE_FLAG(std::string, http);
ABSL_DECLARE_FLAG(std::string, tls_certificate);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_client_ca);

namespace holdfast {
namespace {

// Beyond any machine: a mistake in a flag, not a wish.
constexpr int kMostThreads = 4096;

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

absl::Status CheckFlagValues() {
  const int threads = absl::GetFlag(FLAGS_threads);
  if (threads < 0 || threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("[flags] --threads must be 0 (one per processor) to ",
                     kMostThreads, ". Got ", threads, "."));
  }
  if (absl::GetFlag(FLAGS_max_sessions) == 0) {
    return absl::InvalidArgumentError(
        "[flags] --max_sessions must be at least 1. Got 0.");
  }
  const double grace = absl::GetFlag(FLAGS_grace_max_seconds);
  if (!(grace >= 0)) {  // NaN fails, too
    return absl::InvalidArgumentError(absl::StrCat(
        "[flags] --grace_max_seconds must be at least 0. Got ", grace, "."));
  }
  const bool port = !absl::GetFlag(FLAGS_listen).empty() ||
                    !absl::GetFlag(FLAGS_http).empty();
  for (const auto& [flag, value] :
       {std::pair("tls_certificate", absl::GetFlag(FLAGS_tls_certificate)),
        std::pair("tls_key", absl::GetFlag(FLAGS_tls_key)),
        std::pair("tls_client_ca", absl::GetFlag(FLAGS_tls_client_ca))}) {
    // It would protect nobody: its user believes in what is not there.
    if (port || value.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("[flags] --", flag, " needs --listen or --http. Got --",
                     flag, "=", value, " alone."));
  }
  return absl::OkStatus();
}

}  // namespace holdfast
