// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's command line asks, and what is wrong with it, where
// Abseil's flags say too little. Thread-safety: for main(), before there are
// threads.
#ifndef HOLDFAST_SERVER_COMMAND_LINE_H_
#define HOLDFAST_SERVER_COMMAND_LINE_H_

#include "absl/status/status.h"

namespace holdfast {

// Prints the answer to --help or --version; false: neither was asked.
bool AnswersQuestion(int argc, char** argv);

// InvalidArgument names the first flag that there is not and says where they
// are listed.
absl::Status CheckFlagNames(int argc, char** argv);

// After parsing. InvalidArgument names a flag whose value can't be meant, or
// one that does nothing without another flag.
absl::Status CheckFlagValues();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_COMMAND_LINE_H_
