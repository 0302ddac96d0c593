// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a daemon listens for local clients unless told otherwise, and where
// clients look for it: one rule for both sides.
// Thread-safety: reads the environment.
#ifndef HOLDFAST_PROTO_DEFAULT_SOCKET_H_
#define HOLDFAST_PROTO_DEFAULT_SOCKET_H_

#include <string>

namespace holdfast {

// $HOLDFAST_SOCKET, else $XDG_RUNTIME_DIR/holdfast/holdfastd.sock, else
// /tmp/holdfast-<uid>/holdfastd.sock. Empty variables count as unset. The
// daemon creates the folder with mode 0700; a client must check that the
// socket belongs to its user (or root), since /tmp is everybody's.
std::string DefaultSocketPath();

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_DEFAULT_SOCKET_H_
