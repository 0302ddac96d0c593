// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/default_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "client/fork_guard.h"
#include "python_client/src/admin_binding.h"
#include "python_client/src/errors.h"
#include "python_client/src/tensor_type.h"
#include "python_client/src/version.h"

namespace holdfast::python {

using client::ConnectOptions;
using client::Credentials;
using client::Session;
using client::Tensor;

namespace {

// How long the session of a forked process or a worker outlives its connection:
// over the network long enough to resume after a cut.
constexpr double kChildGraceSeconds = 5;

ConnectOptions ChildOptions(const std::string& address,
                            const std::string& parent_token) {
  ConnectOptions options;
  options.parent_token = parent_token;
  options.client = kClientName;
  options.address = address;
  const bool local = absl::StartsWith(address, "unix:");
  options.grace_seconds = local ? 0 : kChildGraceSeconds;
  return options;
}

struct Sessions {
  std::shared_ptr<Session> current;
  std::vector<std::weak_ptr<Session>> opened;
  NextSession next;
  bool child = false;            // of a process that had a session, or a worker
  PyObject* resolver = nullptr;  // owned; null: addresses are as they are
  std::weak_ptr<Session> implicit;
};

// Never destroyed: the interpreter's atexit closes what is open while threads
// still run.
Sessions& All() {
  static auto* const sessions = new Sessions;
  static uint32_t generation = client::ForkGeneration();
  if (generation != client::ForkGeneration()) {
    generation = client::ForkGeneration();
    if (sessions->current != nullptr) {
      sessions->next.address = sessions->current->address();
      sessions->child = true;
    }
    sessions->current.reset();
    sessions->implicit.reset();
    sessions->opened.clear();
  }
  return *sessions;
}

absl::StatusOr<std::shared_ptr<Session>> Connect(
    const ConnectOptions& options) {
  absl::StatusOr<std::shared_ptr<Session>> session;
  {
    ScopedGilRelease unlocked;
    session = Session::Connect(options);
  }
  if (!session.ok()) return session;
  auto& opened = All().opened;
  opened.erase(std::remove_if(opened.begin(), opened.end(),
                              [](const auto& old) { return old.expired(); }),
               opened.end());
  opened.push_back(*session);
  return session;
}

// What a resolver made of an address.
struct Resolved {
  std::string address;
  Credentials credentials;
};

// False with an error set.
bool Resolve(Resolved* resolved) {
  const PyRef resolver = PyRef::Borrowed(All().resolver);
  if (!resolver) return true;
  const PyRef answer(
      PyObject_CallFunction(resolver.get(), "s", resolved->address.c_str()));
  const char* address = nullptr;
  PyObject* credentials = nullptr;
  if (!answer ||
      !PyArg_ParseTuple(answer.get(), "sO", &address, &credentials) ||
      !ReadCredentials(credentials, &resolved->credentials)) {
    return false;
  }
  resolved->address = address;
  return true;
}

absl::StatusOr<std::shared_ptr<Session>> ConnectDefault(
    const Resolved& resolved) {
  Sessions& all = All();
  if (all.current != nullptr) return all.current;
  ConnectOptions options =
      ChildOptions(resolved.address, all.next.parent_token);
  options.credentials = resolved.credentials;
  if (!all.child) options.grace_seconds = ConnectOptions().grace_seconds;
  absl::StatusOr<std::shared_ptr<Session>> session = Connect(options);
  if (!session.ok()) return session;
  // Another thread may have connected while this one waited.
  if (all.current != nullptr) return all.current;
  if (all.next.seed.has_value()) {
    absl::Status status = (*session)->SetSeed(*all.next.seed);
    if (!status.ok()) return status;
    all.next.seed.reset();
  }
  all.current = *session;
  all.implicit = *session;
  return session;
}

// A session of this process on the daemon of `parent`.
absl::StatusOr<std::shared_ptr<Session>> SessionBeside(const Session& parent) {
  Sessions& all = All();
  if (all.current == nullptr && all.next.address == parent.address()) {
    return ConnectDefault({all.next.address, {}});
  }
  for (const std::shared_ptr<Session>& session : OpenedSessions()) {
    if (session->address() == parent.address() && !session->closed()) {
      return session;
    }
  }
  // Nobody else holds it but the tensors that come.
  return Connect(ChildOptions(
      parent.address(),
      all.next.address == parent.address() ? all.next.parent_token : ""));
}

absl::StatusOr<Tensor> Inherit(const Tensor& tensor) {
  absl::StatusOr<std::shared_ptr<Session>> session =
      SessionBeside(*tensor->session());
  if (!session.ok()) return session.status();
  ScopedGilRelease unlocked;
  absl::StatusOr<Tensor> copy = (*session)->Inherit(tensor);
  // What stands behind a result, the graph, is the parent's.
  if (copy.ok() && tensor->requires_grad && tensor->is_leaf) {
    absl::Status status = (*session)->SetRequiresGrad(*copy, true);
    if (!status.ok()) return status;
  }
  return copy;
}

}  // namespace

std::shared_ptr<Session> OpenSession(const ConnectOptions& options) {
  absl::StatusOr<std::shared_ptr<Session>> session = Connect(options);
  if (session.ok()) return *std::move(session);
  RaiseStatus(session.status());
  return nullptr;
}

std::vector<std::shared_ptr<Session>> OpenedSessions() {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const std::weak_ptr<Session>& weak : All().opened) {
    if (std::shared_ptr<Session> session = weak.lock()) {
      sessions.push_back(std::move(session));
    }
  }
  return sessions;
}

std::shared_ptr<Session> CurrentSession() { return All().current; }

void SetCurrentSession(std::shared_ptr<Session> session) {
  // The last owner may close a connection.
  All().current.swap(session);
}

std::shared_ptr<Session> ImplicitSession() {
  std::shared_ptr<Session> session = All().implicit.lock();
  return session == All().current ? session : nullptr;
}

Session* DefaultSession() {
  if (Session* current = All().current.get()) return current;
  Resolved resolved{All().next.address, {}};
  if (!Resolve(&resolved)) return nullptr;
  absl::StatusOr<std::shared_ptr<Session>> session = ConnectDefault(resolved);
  if (session.ok()) return session->get();  // All() holds it
  RaiseStatus(session.status());
  return nullptr;
}

PyObject* SetAddressResolver(PyObject*, PyObject* resolver) {
  Py_XDECREF(All().resolver);
  All().resolver = resolver == Py_None ? nullptr : Py_NewRef(resolver);
  Py_RETURN_NONE;
}

void PrepareSession(NextSession next) {
  Sessions& all = All();
  if (!next.address.empty()) all.next.address = std::move(next.address);
  if (next.seed.has_value()) all.next.seed = next.seed;
  if (!next.parent_token.empty()) {
    all.next.parent_token = std::move(next.parent_token);
  }
  all.child = true;
}

void InheritTensor(PyObject* object) {
  const Tensor tensor = reinterpret_cast<PyTensor*>(object)->tensor;
  if (!tensor->session()->forked()) return;
  // So that it does not go away while the GIL is released.
  const PyRef held = PyRef::Borrowed(object);
  absl::StatusOr<Tensor> copy = Inherit(tensor);
  if (!copy.ok()) return tensor->session()->NoteNotInherited(copy.status());
  if (tensor->requires_grad && !tensor->is_leaf &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "a graph stays with the process that recorded it: in this "
                   "forked process the tensor is a constant, through which no "
                   "backward goes. Compute it again here, or detach() it.",
                   1) < 0) {
    PyErr_WriteUnraisable(object);  // nobody here can raise it
  }
  reinterpret_cast<PyTensor*>(object)->tensor = *std::move(copy);
}

}  // namespace holdfast::python
