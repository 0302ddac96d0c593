// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is told of waits that must not be, and whether anybody looks for them:
// HOLDFAST_CHECK_WAITS in the environment is
//   abort   the process ends with a line and a stack on stderr;
//   report  it goes on. Each distinct wait has a line, on stderr and at the end
//           of the file HOLDFAST_WAITS_FILE, which many processes may share;
//   (none)  nobody looks, which costs one predicted branch.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_WAITS_WAIT_REPORTS_H_
#define HOLDFAST_SERVER_WAITS_WAIT_REPORTS_H_

#include <string>

#include "absl/base/optimization.h"

namespace holdfast {

namespace waits {

enum class Check { kNone, kReport, kAbort };
// Never changes.
extern const Check check;

// Starts the thread that tells, which reads the program's symbols and writes
// files: whoever reports may not. Once, before ReportHere.
void PrepareReports();
// By the thread that waits: `text`, and its stack.
void Report(const std::string& text);
// The same in a signal handler. `text` ends with a zero; 255 bytes are told.
void ReportHere(const char* text);

}  // namespace waits

inline bool ChecksWaits() {
  return ABSL_PREDICT_FALSE(waits::check != waits::Check::kNone);
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_WAITS_WAIT_REPORTS_H_
