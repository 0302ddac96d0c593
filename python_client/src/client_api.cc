// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/client_api.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/session.h"
#include "python_client/src/default_session.h"
#include "python_client/src/tensor_type.h"
#include "torch_client/client_api.h"

namespace holdfast::python {
namespace {

using client::Session;
using client::Tensor;
using client::TensorState;

int Report(const absl::Status& status, HfError* error) {
  error->code = static_cast<int>(status.code());
  const size_t length =
      std::min(status.message().size(), sizeof(error->text) - 1);
  std::memcpy(error->text, status.message().data(), length);
  error->text[length] = '\0';
  return error->code;
}

TensorState* StateOf(HfTensor* tensor) {
  return reinterpret_cast<TensorState*>(tensor);
}
Tensor Borrow(HfTensor* tensor) { return Tensor(StateOf(tensor)); }
HfTensor* Give(Tensor tensor) {
  return reinterpret_cast<HfTensor*>(tensor.release());
}
Session* SessionOf(HfSession* session) {
  return reinterpret_cast<Session*>(session);
}

// Sessions that were told of, which nobody gives back.
Session* Hold(std::shared_ptr<Session> session) {
  static auto* mutex = new std::mutex;
  static auto* held = new std::vector<std::shared_ptr<Session>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (std::find(held->begin(), held->end(), session) == held->end()) {
    held->push_back(session);
  }
  return session.get();
}

HfSession* ApiSession(HfError* error) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  Session* session = DefaultSession();
  if (session == nullptr) {
    PyObject *raised_type, *raised, *raised_trace;
    PyErr_Fetch(&raised_type, &raised, &raised_trace);
    const PyRef type(raised_type), value(raised), trace(raised_trace);
    PyRef text(value ? PyObject_Str(value.get()) : nullptr);
    PyRef bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
    const char* said = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
    Report(absl::UnavailableError(said ? said : "no daemon"), error);
  } else {
    session = Hold(session->shared_from_this());
  }
  PyGILState_Release(gil);
  return reinterpret_cast<HfSession*>(session);
}

int ApiSynchronize(HfSession* session, HfError* error) {
  return Report(SessionOf(session)->Synchronize(nullptr), error);
}

int ApiSetSeed(HfSession* session, uint64_t seed, HfError* error) {
  client::RandomPlace place;
  place.seed = seed;
  return Report(SessionOf(session)->SetRandom(place), error);
}

int32_t ApiFindOp(const char* name) {
  const OpSchema* schema = FindOp(name);
  return schema == nullptr ? -1 : static_cast<int32_t>(schema->id);
}

int32_t ApiOutputsOf(int32_t op) {
  return GetOp(static_cast<OpId>(op)).num_outputs;
}

int32_t SlotOf(int32_t op, const char* parameter, int OpParam::*slot) {
  for (const OpParam& param : GetOp(static_cast<OpId>(op)).params) {
    if (param.name == parameter) return param.*slot;
  }
  return -1;
}
int32_t ApiTensorSlot(int32_t op, const char* parameter) {
  return SlotOf(op, parameter, &OpParam::tensor_slot);
}
int32_t ApiAttrSlot(int32_t op, const char* parameter) {
  return SlotOf(op, parameter, &OpParam::attr_slot);
}

AttrValue ValueOf(const HfAttr& attr) {
  switch (attr.kind) {
    case HF_BOOL:
      return attr.integer != 0;
    case HF_INT:
      return attr.integer;
    case HF_FLOAT:
      return attr.real;
    case HF_DTYPE:
      return static_cast<DType>(attr.integer);
    case HF_INTS: {
      const auto* first = static_cast<const int64_t*>(attr.address);
      return Dims(first, first + attr.integer);
    }
    case HF_STRING:
      return std::string(static_cast<const char*>(attr.address));
    default:
      return std::monostate();
  }
}

int ApiApply(HfSession* session, int32_t op, const HfAttr* attrs,
             int32_t num_attrs, HfTensor* const* inputs, int32_t num_inputs,
             int32_t inplace, HfTensor** outputs, HfError* error) {
  const OpSchema& schema = GetOp(static_cast<OpId>(op));
  Attrs values(&schema);
  for (int32_t i = 0; i < num_attrs; ++i) {
    values.Set(attrs[i].slot, ValueOf(attrs[i]));
  }
  absl::InlinedVector<Tensor, 4> tensors;
  for (int32_t i = 0; i < num_inputs; ++i) {
    tensors.push_back(inputs[i] == nullptr ? Tensor() : Borrow(inputs[i]));
  }
  const int count = inplace ? 1 : schema.num_outputs;
  absl::InlinedVector<Tensor, 4> results(static_cast<size_t>(count));
  const absl::Status status =
      SessionOf(session)->Apply(values, tensors, inplace != 0,
                                /*record=*/false, absl::MakeSpan(results));
  if (!status.ok()) return Report(status, error);
  for (int i = 0; i < count; ++i) {
    outputs[i] = Give(std::move(results[static_cast<size_t>(i)]));
  }
  return 0;
}

HfTensor* ApiPut(HfSession* session, int32_t dtype, int32_t rank,
                 const int64_t* shape, const void* elements, HfError* error) {
  absl::StatusOr<Tensor> tensor = SessionOf(session)->Put(
      static_cast<DType>(dtype),
      absl::MakeConstSpan(shape, static_cast<size_t>(rank)), elements);
  if (!tensor.ok()) {
    Report(tensor.status(), error);
    return nullptr;
  }
  return Give(*std::move(tensor));
}

int ApiRead(HfTensor* tensor, void* to, size_t bytes, HfError* error) {
  const Tensor held = Borrow(tensor);
  Session* session = held->session().get();
  const absl::StatusOr<uint64_t> id = session->StartRead(held, false);
  if (!id.ok()) return Report(id.status(), error);
  const absl::StatusOr<client::ReadValue> value =
      session->WaitRead(*id, nullptr);
  if (!value.ok()) return Report(value.status(), error);
  if (static_cast<size_t>(value->spec.nbytes()) != bytes) {
    return Report(absl::InternalError("a read of another size"), error);
  }
  if (bytes != 0) std::memcpy(to, value->data, bytes);
  return 0;
}

int ApiSpec(HfTensor* tensor, HfSpec* out, HfError* error) {
  TensorState* state = StateOf(tensor);
  if (state->pending()) {
    const absl::Status status =
        state->session()->Settle(Borrow(tensor), nullptr);
    if (!status.ok()) return Report(status, error);
  }
  const TensorSpec& spec = state->spec();
  out->dtype = static_cast<int32_t>(spec.dtype);
  out->rank = spec.rank();
  out->shape = spec.shape.data();
  out->strides = spec.strides.data();
  out->offset = spec.offset;
  out->elements = spec.numel();
  return 0;
}

HfTensor* ApiRetain(HfTensor* tensor) { return Give(Borrow(tensor)); }

void ApiRelease(HfTensor* tensor) {
  // Adopts the reference, and lets it go.
  const Tensor last = Tensor::Adopt(StateOf(tensor));
}

void* ApiToPython(HfTensor* tensor) { return WrapTensor(Borrow(tensor)); }

HfTensor* ApiFromPython(void* object) {
  auto* python = static_cast<PyObject*>(object);
  if (!IsTensor(python)) {
    PyErr_Format(PyExc_TypeError, "must be a holdfast.Tensor. Got %R",
                 reinterpret_cast<PyObject*>(Py_TYPE(python)));
    return nullptr;
  }
  return Give(TensorOf(python));
}

uintptr_t ApiMemoryOf(HfTensor* tensor) {
  return reinterpret_cast<uintptr_t>(&StateOf(tensor)->storage()->memory());
}

constexpr HfClientApi kApi = {
    HF_CLIENT_API_VERSION,
    ApiSession,
    ApiSynchronize,
    ApiSetSeed,
    ApiFindOp,
    ApiOutputsOf,
    ApiTensorSlot,
    ApiAttrSlot,
    ApiApply,
    ApiPut,
    ApiRead,
    ApiSpec,
    ApiRetain,
    ApiRelease,
    ApiToPython,
    ApiFromPython,
    ApiMemoryOf,
};

}  // namespace

bool AddClientApi(PyObject* module) {
  // A capsule holds a pointer that is not const; nobody writes to it.
  PyObject* capsule = PyCapsule_New(const_cast<HfClientApi*>(&kApi),
                                    HF_CLIENT_API_NAME, nullptr);
  if (capsule == nullptr) return false;
  if (PyModule_AddObject(module, "_client_api", capsule) != 0) {
    Py_DECREF(capsule);
    return false;
  }
  return true;
}

}  // namespace holdfast::python
