// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Credentials that worked, for later sessions of this process on the same
// daemon: those of forked processes and workers, which know its address only.
// Thread-safety: from any thread.
#ifndef HOLDFAST_CLIENT_REMEMBERED_CREDENTIALS_H_
#define HOLDFAST_CLIENT_REMEMBERED_CREDENTIALS_H_

#include <string>

#include "client/credentials.h"

namespace holdfast::client {

void RememberCredentials(const std::string& address,
                         const Credentials& credentials);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_REMEMBERED_CREDENTIALS_H_
