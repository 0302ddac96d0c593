// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/grpc_fork.h"

#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "grpc/grpc.h"

namespace holdfast::client {
namespace {

constexpr char kStrategy[] = "GRPC_POLL_STRATEGY";

// gRPC ends behind the last object of it, on threads of its own: where every
// processor is busy or a closed session was just connecting, some seconds
// later. Looks are counted and not time, which passes for a stopped process
// too: 12 s at least.
constexpr std::chrono::microseconds kLook(200);
constexpr int kLooks = 60000;

// Never destroyed, and made anew in a child: what other threads of the parent
// held there nobody would ever give back.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int users = 0;
  bool closed = false;
  std::vector<ForkPausable*> connections;
  bool let_go = true;  // of gRPC, at the latest fork
};
alignas(Gate) char g_gate_memory[sizeof(Gate)];
Gate* const g_gate = new (g_gate_memory) Gate;
bool g_usable = true;
thread_local int g_depth = 0;

// The connections do not change while the gate is closed.
void BeforeFork() {
  {
    std::unique_lock<std::mutex> lock(g_gate->mutex);
    g_gate->changed.wait(lock, [] { return !g_gate->closed; });
    g_gate->closed = true;
    g_gate->changed.wait(lock, [] { return g_gate->users == 0; });
  }
  for (ForkPausable* connection : g_gate->connections) {
    connection->PauseForFork();
  }
  for (int look = 0; look < kLooks && grpc_is_initialized() != 0; ++look) {
    std::this_thread::sleep_for(kLook);
  }
  g_gate->let_go = grpc_is_initialized() == 0;
}

void InParent() {
  for (ForkPausable* connection : g_gate->connections) {
    connection->ResumeAfterFork();
  }
  std::lock_guard<std::mutex> lock(g_gate->mutex);
  g_gate->closed = false;
  g_gate->changed.notify_all();
}

void InChild() {
  g_usable = g_usable && g_gate->let_go;
  new (g_gate_memory) Gate;  // NOLINT: the old one is the parent's
}

// gRPC reads the variable when it starts for the first time.
void PrepareGrpc() {
  const bool chosen = getenv(kStrategy) != nullptr;
  if (!chosen) setenv(kStrategy, "poll", 1);
  grpc_init();
  grpc_shutdown();
  if (!chosen) unsetenv(kStrategy);
  pthread_atfork(&BeforeFork, &InParent, &InChild);
}

}  // namespace

GrpcUse::GrpcUse() {
  if (g_depth++ != 0) return;
  static std::once_flag started;
  std::call_once(started, PrepareGrpc);
  std::unique_lock<std::mutex> lock(g_gate->mutex);
  g_gate->changed.wait(lock, [] { return !g_gate->closed; });
  ++g_gate->users;
}

GrpcUse::~GrpcUse() {
  if (--g_depth != 0) return;
  std::lock_guard<std::mutex> lock(g_gate->mutex);
  if (--g_gate->users == 0) g_gate->changed.notify_all();
}

void AddForkPausable(ForkPausable* connection) {
  std::lock_guard<std::mutex> lock(g_gate->mutex);
  g_gate->connections.push_back(connection);
}

void RemoveForkPausable(ForkPausable* connection) {
  std::lock_guard<std::mutex> lock(g_gate->mutex);
  auto& all = g_gate->connections;
  all.erase(std::remove(all.begin(), all.end(), connection), all.end());
}

absl::Status GrpcUsable() {
  if (g_usable) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "[connect] this process was forked while gRPC was in use by something "
      "beside Holdfast, and must not use it. Start it with the 'spawn' "
      "method, or connect over shared memory.");
}

}  // namespace holdfast::client
