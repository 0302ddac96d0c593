// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/http/web_files.h"

namespace holdfast {

// The assembler reads the files: no tool of ours has to turn them into C++.
// Bazel does not see that: change this line when only they have changed (4).
#define HOLDFAST_WEB_FILE(name, file)     \
  extern "C" const char kWeb_##name[];    \
  extern "C" const char kWebEnd_##name[]; \
  __asm__(                                \
      ".pushsection .rodata\n"            \
      "kWeb_" #name ": .incbin \"" file   \
      "\"\n"                              \
      "kWebEnd_" #name                    \
      ": .byte 0\n"                       \
      ".popsection\n")

HOLDFAST_WEB_FILE(page, "server/web/index.html");
HOLDFAST_WEB_FILE(script, "server/web/page.js");
HOLDFAST_WEB_FILE(style, "server/web/page.css");
HOLDFAST_WEB_FILE(chart, "external/chartjs/chart.min.js");

#define HOLDFAST_CONTENT(name) \
  absl::string_view(kWeb_##name, kWebEnd_##name - kWeb_##name)

constexpr char kScript[] = "text/javascript; charset=utf-8";

std::vector<WebFile> WebFiles() {
  return {
      {"/", "text/html; charset=utf-8", HOLDFAST_CONTENT(page)},
      {"/page.js", kScript, HOLDFAST_CONTENT(script)},
      {"/page.css", "text/css; charset=utf-8", HOLDFAST_CONTENT(style)},
      {"/chart.min.js", kScript, HOLDFAST_CONTENT(chart)},
  };
}

}  // namespace holdfast
