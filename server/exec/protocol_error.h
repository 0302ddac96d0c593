// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ProtocolError: what ends the session of a client that breaks a rule of
// proto/holdfast.proto. Thread-safety: pure function.
#ifndef HOLDFAST_SERVER_EXEC_PROTOCOL_ERROR_H_
#define HOLDFAST_SERVER_EXEC_PROTOCOL_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace holdfast {

inline absl::Status ProtocolError(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("[protocol] ", message));
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_PROTOCOL_ERROR_H_
