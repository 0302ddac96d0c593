// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// gRPC and fork(): a child inherits gRPC's state but none of its threads, so
// that a channel it opens would wait for ever. Therefore a process that forks
// first lets go of gRPC altogether and takes it up again afterwards: its
// sessions go on where they were, as after a cut, and the child starts with a
// gRPC that is shut down. What even that leaves behind is the epoll descriptor,
// by which a child would wake its parent with pointers of its own; so gRPC is
// made to use poll. Thread-safety: all functions from any thread.
#ifndef HOLDFAST_CLIENT_GRPC_FORK_H_
#define HOLDFAST_CLIENT_GRPC_FORK_H_

#include "absl/status/status.h"

namespace holdfast::client {

// While one lives, its thread may call gRPC: a fork waits for it to end, and
// the next one waits for the end of the fork. May be nested.
class GrpcUse {
 public:
  GrpcUse();
  ~GrpcUse();
  GrpcUse(const GrpcUse&) = delete;
  GrpcUse& operator=(const GrpcUse&) = delete;
};

// A connection that lets go of gRPC around a fork.
class ForkPausable {
 public:
  // On the thread that forks, while no GrpcUse lives. Destroys everything of
  // gRPC's; waits for the connection's own thread.
  virtual void PauseForFork() = 0;
  virtual void ResumeAfterFork() = 0;

 protected:
  ~ForkPausable() = default;
};

// From when the connection has something of gRPC's until it has nothing, with
// a GrpcUse alive both times.
void AddForkPausable(ForkPausable* connection);
void RemoveForkPausable(ForkPausable* connection);

// Whether gRPC may be used in this process: FailedPrecondition in a child whose
// parent could not let go of it.
absl::Status GrpcUsable();

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GRPC_FORK_H_
