// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/read.h"

#include <cstring>
#include <utility>
#include <vector>

#include "client/interrupt.h"
#include "python_client/src/array_mirror.h"
#include "python_client/src/errors.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::ReadValue;
using client::Session;
using client::Tensor;

namespace {

template <typename T>
T Load(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

// The elements of a read of integers, in row-major order.
std::vector<int64_t> Integers(const ReadValue& value) {
  const auto* data = static_cast<const char*>(value.data);
  std::vector<int64_t> integers(value.spec.numel());
  for (int64_t& integer : integers) {
    switch (value.spec.dtype) {
      case DType::kInt64:
        integer = Load<int64_t>(data);
        break;
      case DType::kInt32:
        integer = Load<int32_t>(data);
        break;
      case DType::kInt16:
        integer = Load<int16_t>(data);
        break;
      case DType::kInt8:
        integer = Load<int8_t>(data);
        break;
      default:
        integer = Load<uint8_t>(data);
    }
    data += ItemSize(value.spec.dtype);
  }
  return integers;
}

PyObject* IntegerToPython(DType dtype, int64_t value) {
  return dtype == DType::kBool ? PyBool_FromLong(value != 0)
                               : PyLong_FromLongLong(value);
}

// Row-major elements from `*data` on, which moves past them.
PyObject* ListLevel(const TensorSpec& spec, size_t dim, const char** data) {
  if (dim == spec.shape.size()) {
    PyObject* item = ElementToPython(spec.dtype, *data);
    *data += ItemSize(spec.dtype);
    return item;
  }
  const auto size = static_cast<Py_ssize_t>(spec.shape[dim]);
  PyRef list(PyList_New(size));
  if (!list) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = ListLevel(spec, dim + 1, data);
    if (item == nullptr || PyList_SetItem(list.get(), i, item) < 0) {
      return nullptr;
    }
  }
  return list.release();
}

}  // namespace

bool Interrupted() {
  const PyGILState_STATE state = PyGILState_Ensure();
  // A wait that goes on after a first Ctrl-C looks again.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const bool raised = PyErr_CheckSignals() != 0;
  if (raised && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    ++client::g_interrupts;
  }
  if (!raised || PyErr_Occurred() == nullptr) {
    PyErr_Restore(type, value, traceback);
  } else {
    const PyRef old_type(type), old_value(value), old_traceback(traceback);
  }
  PyGILState_Release(state);
  return raised;
}

bool& HoldsGilInCall() {
  static thread_local bool holds = false;
  return holds;
}

bool& ReleasedGilInCall() {
  static thread_local bool released = false;
  return released;
}

bool InterruptPending(bool locked) {
  const bool released = ReleasedGilInCall() && !locked;
  if (!released && !HoldsGilInCall()) return false;
  const PyGILState_STATE state =
      released ? PyGILState_Ensure() : PyGILState_LOCKED;
  const bool pending = PyOS_InterruptOccurred() != 0;
  if (pending) {
    ++client::g_interrupts;
    PyErr_SetInterrupt();  // the handler's turn comes later
  }
  if (released) PyGILState_Release(state);
  return pending;
}

bool WaitForSizes(const Tensor& tensor) {
  const Tensor held = tensor;
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = held->session()->Settle(held, Interrupted);
  }
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

bool ReadTensor(const Tensor& tensor, bool place, ReadValue* value) {
  if (!Settle(tensor)) return false;
  if (IsMirrored(tensor) && !PullMirrors({&tensor, 1})) return false;
  // Held beyond the tensor, which another thread may drop while we wait.
  const std::shared_ptr<Session> session = tensor->session();
  absl::StatusOr<uint64_t> id = session->StartRead(tensor, place);
  if (!id.ok()) {
    RaiseStatus(id.status());
    return false;
  }
  absl::StatusOr<ReadValue> result;
  {
    ScopedGilRelease unlocked;
    const bool outer = std::exchange(ReleasedGilInCall(), true);
    result = session->WaitRead(*id, Interrupted);
    ReleasedGilInCall() = outer;
  }
  if (!result.ok()) {
    RaiseStatus(result.status());
    return false;
  }
  *value = *std::move(result);
  return true;
}

PyObject* ReadAddress(const Tensor& tensor) {
  if (!Settle(tensor)) return nullptr;
  if (tensor->spec().numel() == 0) return PyLong_FromLong(0);
  if (IsMirrored(tensor) && !PullMirrors({&tensor, 1})) return nullptr;
  const std::shared_ptr<Session> session = tensor->session();
  const Tensor held = tensor;
  absl::StatusOr<uintptr_t> address;
  {
    ScopedGilRelease unlocked;
    address = session->Address(held, Interrupted);
  }
  if (!address.ok()) return RaiseStatus(address.status());
  return PyLong_FromVoidPtr(reinterpret_cast<void*>(*address));
}

PyObject* ElementToPython(DType dtype, const void* data) {
  switch (dtype) {
    case DType::kBool:
      return PyBool_FromLong(Load<uint8_t>(data));
    case DType::kUInt8:
      return PyLong_FromLong(Load<uint8_t>(data));
    case DType::kInt8:
      return PyLong_FromLong(Load<int8_t>(data));
    case DType::kInt16:
      return PyLong_FromLong(Load<int16_t>(data));
    case DType::kInt32:
      return PyLong_FromLong(Load<int32_t>(data));
    case DType::kInt64:
      return PyLong_FromLongLong(Load<int64_t>(data));
    case DType::kFloat32:
      return PyFloat_FromDouble(static_cast<double>(Load<float>(data)));
    case DType::kFloat64:
      return PyFloat_FromDouble(Load<double>(data));
    case DType::kFloat16:
      return PyFloat_FromDouble(
          static_cast<double>(Load<Float16>(data).ToFloat()));
    case DType::kBFloat16:
      return PyFloat_FromDouble(
          static_cast<double>(Load<BFloat16>(data).ToFloat()));
    case DType::kComplex64: {
      const auto value = Load<Complex<float>>(data);
      return PyComplex_FromDoubles(static_cast<double>(value.real),
                                   static_cast<double>(value.imag));
    }
    case DType::kComplex128: {
      const auto value = Load<Complex<double>>(data);
      return PyComplex_FromDoubles(value.real, value.imag);
    }
  }
  PyErr_Format(PyExc_RuntimeError, "a tensor has no elements of type %d",
               static_cast<int>(dtype));
  return nullptr;
}

PyObject* ReadItem(const Tensor& tensor) {
  if (!Settle(tensor)) return nullptr;
  if (const int64_t numel = tensor->spec().numel(); numel != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "a Tensor with %lld elements cannot be converted to Scalar",
                 static_cast<long long>(numel));
    return nullptr;
  }
  const client::KnownInteger found = tensor->session()->FindInteger(tensor);
  if (found.known) return IntegerToPython(tensor->spec().dtype, found.value);
  const Tensor& wanted = found.to_read ? found.to_read : tensor;
  ReadValue value;
  if (!ReadTensor(wanted, false, &value)) return nullptr;
  if (!found.to_read) return ElementToPython(value.spec.dtype, value.data);
  tensor->session()->LearnIntegers(wanted, found.writes, Integers(value));
  const client::KnownInteger now = tensor->session()->FindInteger(tensor);
  if (now.known) return IntegerToPython(tensor->spec().dtype, now.value);
  // Another thread wrote meanwhile.
  if (!ReadTensor(tensor, false, &value)) return nullptr;
  return ElementToPython(value.spec.dtype, value.data);
}

PyObject* ReadList(const Tensor& tensor) {
  ReadValue value;
  if (!ReadTensor(tensor, false, &value)) return nullptr;
  const char* data = static_cast<const char*>(value.data);
  return ListLevel(value.spec, 0, &data);
}

}  // namespace holdfast::python
