// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of the daemon's web page (server/web), which are part of the
// program. Thread-safety: constant data.
#ifndef HOLDFAST_SERVER_HTTP_WEB_FILES_H_
#define HOLDFAST_SERVER_HTTP_WEB_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace holdfast {

struct WebFile {
  const char* path;  // of the URL
  const char* type;
  absl::string_view content;
};
std::vector<WebFile> WebFiles();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HTTP_WEB_FILES_H_
