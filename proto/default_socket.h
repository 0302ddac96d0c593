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

// Where the daemon listens that the machine runs for all its users (the systemd
// unit), and where clients look next: /run/holdfast/holdfastd.sock. "" with
// $HOLDFAST_SOCKET, which says where to look. $HOLDFAST_SERVICE_SOCKET is for
// tests.
std::string ServiceSocketPath();

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_DEFAULT_SOCKET_H_
