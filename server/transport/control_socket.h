// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The local server's end of a client's socket, which never makes a thread of
// ours wait. Descriptors that a client sends along are ours to close, and the
// last close of an open file can wait as long as the client likes (a socket
// with SO_LINGER whose peer takes nothing): nothing that brings some is
// received, and a socket where something unread may have brought some is closed
// by a thread that has nothing else to do.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_CONTROL_SOCKET_H_
#define HOLDFAST_SERVER_TRANSPORT_CONTROL_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "server/transport/unique_fd.h"

namespace holdfast {

// Whoever drops the last reference closes it, without waiting.
std::shared_ptr<const UniqueFd> ShareControlSocket(UniqueFd socket);

// As recv with MSG_DONTWAIT; EPROTO, with nothing taken, where descriptors came
// along.
ssize_t ReceivePlain(int socket, void* bytes, size_t size);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_CONTROL_SOCKET_H_
