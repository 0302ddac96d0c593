// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/session_binding.h"

#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/default_address.h"
#include "client/numerics.h"
#include "client/private_daemon.h"
#include "python_client/src/admin_binding.h"
#include "python_client/src/autocast.h"
#include "python_client/src/default_session.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/errors.h"
#include "python_client/src/profile_binding.h"
#include "python_client/src/random_stream_type.h"
#include "python_client/src/read.h"
#include "python_client/src/source_lines.h"
#include "python_client/src/tensor_type.h"
#include "python_client/src/version.h"

namespace holdfast::python {

using client::ConnectOptions;
using client::Session;
using client::Tensor;

namespace {

struct PySession {
  PyObject_HEAD std::shared_ptr<Session> session;
};

PyTypeObject* g_type;

Session& SessionOf(PyObject* self) {
  return *reinterpret_cast<PySession*>(self)->session;
}

PyObject* FromStatus(const absl::Status& status) {
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

absl::Status CloseUnlocked(const std::shared_ptr<Session>& session, bool keep) {
  ScopedGilRelease unlocked;
  return session->Close(keep);
}

std::optional<Session::Left> CloseOrLeave(
    const std::shared_ptr<Session>& session) {
  ScopedGilRelease unlocked;
  return session->CloseOrLeave();
}

PyObject* SessionClose(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"keep", nullptr};
  int keep = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p",
                                   const_cast<char**>(keywords), &keep)) {
    return nullptr;
  }
  const std::shared_ptr<Session> session =
      reinterpret_cast<PySession*>(self)->session;
  const absl::Status status = CloseUnlocked(session, keep != 0);
  if (session->closed() && CurrentSession() == session) {
    SetCurrentSession(nullptr);
  }
  return FromStatus(status);
}

PyObject* SessionSynchronize(PyObject* self, PyObject*) {
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = SessionOf(self).Synchronize(Interrupted);
  }
  return FromStatus(status);
}

// (where=None)
PyObject* SessionCancel(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"where", nullptr};
  const char* where = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z",
                                   const_cast<char**>(keywords), &where)) {
    return nullptr;
  }
  const std::string place = where != nullptr ? where : CallersLine();
  absl::StatusOr<uint64_t> dropped;
  {
    ScopedGilRelease unlocked;
    dropped = SessionOf(self).Cancel(place, Interrupted);
  }
  if (!dropped.ok()) return RaiseStatus(dropped.status());
  return PyLong_FromUnsignedLongLong(*dropped);
}

PyObject* SessionSeed(PyObject* self, PyObject* args) {
  PyObject *seed = nullptr, *offset = nullptr;
  client::RandomPlace place;
  if (!PyArg_ParseTuple(args, "O|O", &seed, &offset) ||
      !AsWord(seed, &place.seed) ||
      (offset != nullptr && !AsWord(offset, &place.offset))) {
    return nullptr;
  }
  return FromStatus(SessionOf(self).SetRandom(place));
}

PyObject* SessionKeep(PyObject* self, PyObject* args) {
  const char* name = nullptr;
  PyObject* object = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &name, &object)) return nullptr;
  if (object != Py_None && !IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "keep() takes a Tensor, or None to drop");
    return nullptr;
  }
  return FromStatus(SessionOf(self).Keep(
      name, object == Py_None ? Tensor() : TensorOf(object)));
}

// (names, tensors, copy): lists of one length; None drops a name.
PyObject* SessionKeepAll(PyObject* self, PyObject* args) {
  PyObject *names = nullptr, *tensors = nullptr;
  int copy = 0;
  if (!PyArg_ParseTuple(args, "O!O!|p", &PyList_Type, &names, &PyList_Type,
                        &tensors, &copy)) {
    return nullptr;
  }
  const Py_ssize_t count = PyList_Size(names);
  if (PyList_Size(tensors) != count) {
    PyErr_SetString(PyExc_ValueError, "keep() takes a tensor for each name");
    return nullptr;
  }
  std::vector<Session::KeepItem> items(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(PyList_GetItem(names, i), &size);
    if (name == nullptr) return nullptr;
    PyObject* object = PyList_GetItem(tensors, i);
    if (object != Py_None && !IsTensor(object)) {
      PyErr_SetString(PyExc_TypeError,
                      "keep() takes a Tensor, or None to drop");
      return nullptr;
    }
    items[i].first.assign(name, size);
    if (object != Py_None) items[i].second = TensorOf(object);
  }
  return FromStatus(SessionOf(self).Keep(items, copy != 0));
}

PyObject* SessionKeptNames(PyObject* self, PyObject*) {
  PyRef list(PyList_New(0));
  if (!list) return nullptr;
  for (const std::string& name : SessionOf(self).KeptNames()) {
    PyRef text(PyUnicode_FromStringAndSize(
        name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* SessionKept(PyObject* self, PyObject*) {
  PyRef dict(PyDict_New());
  if (!dict) return nullptr;
  for (auto& [name, tensor] : SessionOf(self).Kept()) {
    PyRef object(WrapTensor(tensor));
    if (!object ||
        PyDict_SetItemString(dict.get(), name.c_str(), object.get()) < 0) {
      return nullptr;
    }
  }
  return dict.release();
}

PyObject* Stats(PyObject* self, bool memory) {
  absl::StatusOr<std::string> stats;
  {
    ScopedGilRelease unlocked;
    stats = SessionOf(self).Stats(memory);
  }
  if (!stats.ok()) return RaiseStatus(stats.status());
  return PyBytes_FromStringAndSize(stats->data(),
                                   static_cast<Py_ssize_t>(stats->size()));
}

PyObject* SessionStats(PyObject* self, PyObject*) {
  return Stats(self, /*memory=*/false);
}

PyObject* SessionMemory(PyObject* self, PyObject*) {
  return Stats(self, /*memory=*/true);
}

PyObject* SessionStartProfile(PyObject* self, PyObject* args) {
  return StartProfile(SessionOf(self), args);
}

PyObject* SessionStopProfile(PyObject* self, PyObject*) {
  return StopProfile(SessionOf(self));
}

PyObject* Text(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "replace");
}

PyObject* Transport(PyObject* self, void*) {
  return Text(SessionOf(self).transport());
}
PyObject* Address(PyObject* self, void*) {
  return Text(SessionOf(self).address());
}
PyObject* Device(PyObject* self, void*) {
  return Text(SessionOf(self).device());
}
PyObject* DeviceCount(PyObject* self, void*) {
  return PyLong_FromLong(SessionOf(self).device_count());
}
PyObject* Server(PyObject* self, void*) {
  return Text(SessionOf(self).server());
}
PyObject* Attached(PyObject* self, void*) {
  return PyBool_FromLong(SessionOf(self).attached());
}
PyObject* Closed(PyObject* self, void*) {
  return PyBool_FromLong(SessionOf(self).closed());
}

PyObject* Repr(PyObject* self) {
  const Session& session = SessionOf(self);
  const std::string name = session.name();
  return Text(absl::StrCat(
      "<holdfast.Session ", name.empty() ? "" : absl::StrCat("'", name, "', "),
      "number ", session.id(), ", ", session.attached() ? "attached, " : "",
      session.server(), " over ", session.transport(), " to ",
      session.address(), session.closed() ? ", closed" : "", ">"));
}

// Two objects are equal when they are the same session.
PyObject* RichCompare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != g_type || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((&SessionOf(a) == &SessionOf(b)) == (op == Py_EQ));
}

Py_hash_t Hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(&SessionOf(self)) >>
                                4);
}

PyObject* Enter(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

// What an exception leaves is not what the program meant to end.
PyObject* Exit(PyObject* self, PyObject* args) {
  if (PyTuple_Size(args) > 0 && PyTuple_GetItem(args, 0) != Py_None) {
    const std::shared_ptr<Session> session =
        reinterpret_cast<PySession*>(self)->session;
    CloseOrLeave(session);
    if (CurrentSession() == session) SetCurrentSession(nullptr);
    Py_RETURN_NONE;
  }
  PyRef none(PyTuple_New(0));
  return none ? SessionClose(self, none.get(), nullptr) : nullptr;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  {
    // The last owner may close a connection.
    std::shared_ptr<Session> session =
        std::move(reinterpret_cast<PySession*>(self)->session);
    reinterpret_cast<PySession*>(self)->session.~shared_ptr<Session>();
    ScopedGilRelease unlocked;
    session.reset();
  }
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* ResetPeakMemory(PyObject* self, PyObject*) {
  const absl::Status status = SessionOf(self).ResetPeakMemory();
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

PyObject* ReleaseMemory(PyObject* self, PyObject*) {
  const absl::Status status = SessionOf(self).ReleaseMemory();
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

PyObject* Name(PyObject* self, void*) {
  const std::string name = SessionOf(self).name();
  if (name.empty()) Py_RETURN_NONE;
  return Text(name);
}

PyObject* Grace(PyObject* self, void*) {
  return PyFloat_FromDouble(SessionOf(self).grace_seconds());
}

PyObject* Token(PyObject* self, void*) { return Text(SessionOf(self).token()); }

PyObject* Id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(SessionOf(self).id());
}

PyObject* TraceId(PyObject* self, void*) {
  const std::string& id = SessionOf(self).trace_id();
  return PyUnicode_FromStringAndSize(id.data(),
                                     static_cast<Py_ssize_t>(id.size()));
}

PyObject* OpSequence(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(SessionOf(self).last_op_sequence());
}

PyMethodDef g_methods[] = {
    {"close", AsPyCFunction(SessionClose), METH_VARARGS | METH_KEYWORDS,
     "close($self, /, keep=False)\n--\n\n"
     "Leaves the session; with keep it stays on the daemon for attach."},
    {"synchronize", SessionSynchronize, METH_NOARGS,
     "Waits until everything submitted so far is done."},
    {"cancel", AsPyCFunction(SessionCancel), METH_VARARGS | METH_KEYWORDS,
     "cancel($self, /, where=None)\n--\n\n"
     "Calls back everything submitted that the daemon has not done. See "
     "holdfast.cancel()."},
    {"manual_seed", SessionSeed, METH_VARARGS,
     "manual_seed($self, seed, offset=0, /)\n--\n\n"
     "Seeds the random stream; with an offset, goes on from there."},
    {"keep", SessionKeep, METH_VARARGS,
     "keep($self, name, tensor, /)\n--\n\n"
     "Keeps a tensor under a name for a later client; None drops it."},
    {"_keep_all", SessionKeepAll, METH_VARARGS, nullptr},
    {"kept", SessionKept, METH_NOARGS, "Kept tensors by name."},
    {"_kept_names", SessionKeptNames, METH_NOARGS, nullptr},
    {"_reset_peak_memory", ResetPeakMemory, METH_NOARGS, nullptr},
    {"_release_memory", ReleaseMemory, METH_NOARGS, nullptr},
    {"_stats", SessionStats, METH_NOARGS, nullptr},
    {"_memory_stats", SessionMemory, METH_NOARGS, nullptr},
    {"_start_profile", SessionStartProfile, METH_VARARGS, nullptr},
    {"_stop_profile", SessionStopProfile, METH_NOARGS, nullptr},
    {"__enter__", Enter, METH_NOARGS, nullptr},
    {"__exit__", Exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_properties[] = {
    {"transport", Transport, nullptr, "\"shm\" or \"grpc\".", nullptr},
    {"address", Address, nullptr, "Where the daemon listens.", nullptr},
    {"device", Device, nullptr,
     "What the daemon computes on: \"cpu\", \"cuda\".", nullptr},
    {"device_count", DeviceCount, nullptr, "How many GPUs the daemon has.",
     nullptr},
    {"server", Server, nullptr, "The daemon's name and version.", nullptr},
    {"name", Name, nullptr, "The session's name, None without one.", nullptr},
    {"grace", Grace, nullptr,
     "Seconds that the session outlives its connection.", nullptr},
    {"_token", Token, nullptr, nullptr, nullptr},
    {"id", Id, nullptr, "The session's number in `holdfast status`.", nullptr},
    {"trace_id", TraceId, nullptr,
     "Names the session in errors and in the daemon's log (`holdfast trace`).",
     nullptr},
    {"_op_sequence", OpSequence, nullptr, "Commands submitted so far.",
     nullptr},
    {"attached", Attached, nullptr,
     "True if an earlier program left the session: see kept().", nullptr},
    {"closed", Closed, nullptr, "True once the session has ended.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(RichCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(Hash)},
    {Py_tp_methods, g_methods},
    {Py_tp_getset, g_properties},
    {Py_tp_doc, const_cast<char*>("A connection to a Holdfast daemon.")},
    {0, nullptr},
};
PyType_Spec g_spec = {"holdfast.Session", sizeof(PySession), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      g_slots};

// Whether connect(address) finds the daemon that `session` is on.
bool SameDaemon(const std::string& address, const Session& session) {
  absl::StatusOr<client::Target> target = client::ParseAddress(address);
  if (!target.ok()) return false;
  if (target->kind == client::Target::kNetwork) {
    return session.address() == target->where;
  }
  if (target->kind == client::Target::kSocket) {
    return session.address() == absl::StrCat("unix:", target->where);
  }
  // A private one is found where none runs.
  const std::string running = client::RunningDaemon();
  return running.empty() ? session.on_private_daemon()
                         : session.address() == absl::StrCat("unix:", running);
}

// The session that connect(options) is to go on with, null if there is none:
// what a program made before it asked for a session with a name is in one that
// it never asked for, which gets the name.
std::shared_ptr<Session> Adopt(const ConnectOptions& options) {
  const std::shared_ptr<Session> session = ImplicitSession();
  if (session == nullptr || session->closed() || session->forked() ||
      !session->name().empty() || options.session_name.empty() ||
      options.attach || !SameDaemon(options.address, *session)) {
    return nullptr;
  }
  ScopedGilRelease unlocked;
  const absl::Status named =
      session->SetName(options.session_name, options.grace_seconds);
  // There is one of that name to attach to, or the daemon is an older one.
  return named.ok() ? session : nullptr;
}

// (address, session name, attach, attach if nobody uses it, grace seconds or
// None, timeout seconds, seconds to reconnect or None, default, credentials as
// ReadCredentials takes them, seconds ahead or None)
PyObject* ConnectFunction(PyObject*, PyObject* args) {
  const char* address = "";
  const char* name = "";
  int attach = 0;
  int attach_if_away = 0;
  int make_default = 1;
  PyObject *grace = nullptr, *reconnect = nullptr, *credentials = nullptr;
  PyObject* run_ahead = Py_None;
  ConnectOptions options;
  if (!PyArg_ParseTuple(args, "ssppOdOp|OO", &address, &name, &attach,
                        &attach_if_away, &grace, &options.timeout_seconds,
                        &reconnect, &make_default, &credentials, &run_ahead) ||
      (credentials != nullptr &&
       !ReadCredentials(credentials, &options.credentials))) {
    return nullptr;
  }
  options.default_grace = grace == Py_None;
  if (grace != Py_None) options.grace_seconds = PyFloat_AsDouble(grace);
  if (reconnect != Py_None) {
    options.reconnect_seconds = PyFloat_AsDouble(reconnect);
  }
  if (run_ahead != Py_None) {
    options.run_ahead_seconds = PyFloat_AsDouble(run_ahead);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  options.attach_if_away = attach_if_away != 0;
  options.address = address;
  options.session_name = name;
  options.attach = attach != 0;
  options.client = kClientName;
  std::shared_ptr<Session> session;
  if (make_default != 0) session = Adopt(options);
  if (session == nullptr) session = OpenSession(options);
  if (session == nullptr) return nullptr;
  if (make_default != 0) SetCurrentSession(session);
  return WrapSession(std::move(session));
}

PyObject* DefaultSessionFunction(PyObject*, PyObject*) {
  if (DefaultSession() == nullptr) return nullptr;
  return WrapSession(CurrentSession());
}

PyObject* CurrentSessionFunction(PyObject*, PyObject*) {
  std::shared_ptr<Session> current = CurrentSession();
  if (current == nullptr) Py_RETURN_NONE;
  return WrapSession(std::move(current));
}

// (session or None): what new tensors use from now on.
PyObject* SetDefaultSession(PyObject*, PyObject* session) {
  if (session == Py_None) {
    SetCurrentSession(nullptr);
  } else if (Py_TYPE(session) == g_type) {
    SetCurrentSession(reinterpret_cast<PySession*>(session)->session);
  } else {
    PyErr_SetString(PyExc_TypeError, "expected a holdfast.Session or None");
    return nullptr;
  }
  Py_RETURN_NONE;
}

// Leaves every session of this process; for its exit, so errors are dropped.
// Returns [(address, name, how many names are kept, seconds that it stays)] of
// those that go on without it.
PyObject* CloseAll(PyObject*, PyObject*) {
  client::ProcessEnds();
  SetCurrentSession(nullptr);
  PyRef all(PyList_New(0));
  if (!all) return nullptr;
  for (const std::shared_ptr<Session>& session : OpenedSessions()) {
    const std::optional<Session::Left> left = CloseOrLeave(session);
    if (!left.has_value()) continue;
    PyRef one(Py_BuildValue(
        "(ssnd)", session->address().c_str(), left->name.c_str(),
        static_cast<Py_ssize_t>(left->kept), left->grace_seconds));
    if (!one || PyList_Append(all.get(), one.get()) < 0) return nullptr;
  }
  return all.release();
}

// Where a daemon is looked for that nobody named.
PyObject* DefaultAddress(PyObject*, PyObject*) {
  return Text(client::DefaultAddress());
}

// (address or None, seed or None, token of the program's session or None)
PyObject* PrepareSessionFunction(PyObject*, PyObject* args) {
  const char *address = nullptr, *parent = nullptr;
  PyObject* seed = Py_None;
  NextSession next;
  if (!PyArg_ParseTuple(args, "zO|z", &address, &seed, &parent)) return nullptr;
  if (address != nullptr) next.address = address;
  if (parent != nullptr) next.parent_token = parent;
  uint64_t number = 0;
  if (seed != Py_None) {
    if (!AsWord(seed, &number)) return nullptr;
    next.seed = number;
  }
  PrepareSession(std::move(next));
  Py_RETURN_NONE;
}

// set_numerics(matmul_tf32, conv_tf32, deterministic, benchmark, cudnn)
PyObject* SetNumericsFunction(PyObject*, PyObject* args) {
  int matmul = 0, conv = 0, deterministic = 0, benchmark = 0, cudnn = 0;
  if (!PyArg_ParseTuple(args, "ppppp", &matmul, &conv, &deterministic,
                        &benchmark, &cudnn)) {
    return nullptr;
  }
  client::g_numerics.store((matmul ? client::kMatmulTf32 : 0) |
                           (conv ? client::kConvTf32 : 0) |
                           (deterministic ? client::kDeterministic : 0) |
                           (benchmark ? client::kBenchmark : 0) |
                           (cudnn ? 0 : client::kWithoutCudnn));
  Py_RETURN_NONE;
}

}  // namespace

bool AddSessionType(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  if (g_type == nullptr) return false;
  return PyModule_AddObjectRef(module, "Session",
                               reinterpret_cast<PyObject*>(g_type)) == 0;
}

PyObject* WrapSession(std::shared_ptr<Session> session) {
  PySession* object = PyObject_New(PySession, g_type);
  if (object == nullptr) return nullptr;
  new (&object->session) std::shared_ptr<Session>(std::move(session));
  return reinterpret_cast<PyObject*>(object);
}

void AppendSessionFunctions(std::vector<PyMethodDef>* functions) {
  AppendAdminFunctions(functions);
  functions->push_back({"connect", ConnectFunction, METH_VARARGS, nullptr});
  functions->push_back({"default_session", DefaultSessionFunction, METH_NOARGS,
                        "The default session; connects on first use."});
  functions->push_back({"current_session", CurrentSessionFunction, METH_NOARGS,
                        "The default session, or None before the first use."});
  functions->push_back(
      {"set_numerics", SetNumericsFunction, METH_VARARGS,
       "set_numerics(matmul_tf32, conv_tf32, deterministic, benchmark, cudnn, "
       "/)\n"
       "--\n\nWhat a GPU may do to the results of the ops that follow."});
  AppendDeviceFunctions(functions);
  AppendAutocastFunctions(functions);
  functions->push_back({"close_all", CloseAll, METH_NOARGS, nullptr});
  functions->push_back(
      {"default_address", DefaultAddress, METH_NOARGS, nullptr});
  functions->push_back(
      {"prepare_session", PrepareSessionFunction, METH_VARARGS, nullptr});
  functions->push_back(
      {"set_address_resolver", SetAddressResolver, METH_O, nullptr});
  functions->push_back({"set_default_session", SetDefaultSession, METH_O,
                        "set_default_session(session, /)\n--\n\n"
                        "Makes new tensors in this session; None: in one "
                        "that the next op opens."});
}

}  // namespace holdfast::python
