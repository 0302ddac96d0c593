// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/dlpack_binding.h"

#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "client/session.h"
#include "python_client/src/argument.h"
#include "python_client/src/default_session.h"
#include "python_client/src/dlpack_abi.h"
#include "python_client/src/dtype_type.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::DeviceArray;
using client::Session;
using client::Tensor;

namespace {

constexpr int kMaxRank = 64;

struct TypeRow {
  DType dtype;
  dlpack::TypeCode code;
};
constexpr TypeRow kTypes[] = {
    {DType::kBool, dlpack::kBool},
    {DType::kUInt8, dlpack::kUInt},
    {DType::kInt8, dlpack::kInt},
    {DType::kInt16, dlpack::kInt},
    {DType::kInt32, dlpack::kInt},
    {DType::kInt64, dlpack::kInt},
    {DType::kFloat16, dlpack::kFloat},
    {DType::kBFloat16, dlpack::kBfloat},
    {DType::kFloat32, dlpack::kFloat},
    {DType::kFloat64, dlpack::kFloat},
    {DType::kComplex64, dlpack::kComplex},
    {DType::kComplex128, dlpack::kComplex},
};

dlpack::DataType TypeOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype != dtype) continue;
    return {row.code, static_cast<uint8_t>(8 * ItemSize(dtype)), 1};
  }
  return {};
}

bool FindType(const dlpack::DataType& type, DType* dtype) {
  for (const TypeRow& row : kTypes) {
    if (type.code == row.code && type.lanes == 1 &&
        type.bits == 8 * ItemSize(row.dtype)) {
      *dtype = row.dtype;
      return true;
    }
  }
  return false;
}

bool ExportTensor(PyObject* object, DeviceArray* array) {
  if (!IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "a Tensor is expected");
    return false;
  }
  const Tensor tensor = TensorOf(object);
  absl::StatusOr<DeviceArray> exported;
  {
    ScopedGilRelease unlocked;
    exported = tensor->session()->ExportMemory(tensor, Interrupted);
  }
  if (!exported.ok()) {
    RaiseStatus(exported.status());
    return false;
  }
  *array = *std::move(exported);
  return true;
}

void* FirstElement(const DeviceArray& array) {
  if (array.spec.numel() == 0) return nullptr;
  return static_cast<char*>(array.data) +
         array.spec.offset * ItemSize(array.spec.dtype);
}

// ---- capsules of ours

template <typename Message>
struct Handed {
  explicit Handed(DeviceArray given) : array(std::move(given)) {
    message.context = this;
    message.deleter = [](Message* done) {
      // Consumers let go on any thread; what goes may be known to Python.
      auto* const handed = static_cast<Handed*>(done->context);
      if (Py_IsInitialized() == 0) return;  // the process ends
      const PyGILState_STATE state = PyGILState_Ensure();
      delete handed;
      PyGILState_Release(state);
    };
    dlpack::Array& told = message.array;
    told.data = FirstElement(array);
    told.device = {dlpack::kCuda, array.ordinal};
    told.rank = array.spec.rank();
    told.dtype = TypeOf(array.spec.dtype);
    told.shape = array.spec.shape.data();
    told.strides = array.spec.strides.data();
  }

  DeviceArray array;
  Message message = {};
};

template <typename Message>
PyObject* NewCapsule(DeviceArray array) {
  auto handed = std::make_unique<Handed<Message>>(std::move(array));
  // A capsule that nobody took is named as it was made.
  PyObject* capsule =
      PyCapsule_New(&handed->message, Message::kName, [](PyObject* dying) {
        if (PyCapsule_IsValid(dying, Message::kName) == 0) return;
        auto* message =
            static_cast<Message*>(PyCapsule_GetPointer(dying, Message::kName));
        message->deleter(message);
      });
  if (capsule != nullptr) handed.release();
  return capsule;
}

PyObject* MakeCapsule(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  int versioned = 0;
  DeviceArray array;
  if (!PyArg_ParseTuple(args, "Op", &object, &versioned) ||
      !ExportTensor(object, &array)) {
    return nullptr;
  }
  if (versioned == 0) return NewCapsule<dlpack::Managed>(std::move(array));
  PyObject* capsule = NewCapsule<dlpack::ManagedVersioned>(std::move(array));
  if (capsule != nullptr) {
    auto* message = static_cast<dlpack::ManagedVersioned*>(
        PyCapsule_GetPointer(capsule, dlpack::ManagedVersioned::kName));
    message->major = dlpack::ManagedVersioned::kMajor;
  }
  return capsule;
}

PyObject* IntsToTuple(absl::Span<const int64_t> values) {
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; tuple && i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (item == nullptr) return nullptr;
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

// tensor -> (address of the first element, 0 if there is none, strides)
PyObject* DeviceMemory(PyObject*, PyObject* object) {
  DeviceArray array;
  if (!ExportTensor(object, &array)) return nullptr;
  PyRef strides(IntsToTuple(array.spec.strides));
  if (!strides) return nullptr;
  return Py_BuildValue("(KO)",
                       static_cast<unsigned long long>(  // NOLINT: "K"
                           reinterpret_cast<uintptr_t>(FirstElement(array))),
                       strides.get());
}

PyObject* GpuOrdinal(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  if (!PyArg_ParseTuple(args, "O", &object)) return nullptr;
  Session* session = nullptr;
  int device = 0;
  if (IsTensor(object)) {
    session = TensorOf(object)->session().get();
    device = TensorOf(object)->spec().device;
  } else {
    session = DefaultSession();
    device = static_cast<int>(PyLong_AsLong(object));
    if (session == nullptr || PyErr_Occurred() != nullptr) return nullptr;
  }
  const absl::StatusOr<int> ordinal = session->OrdinalOf(device);
  if (!ordinal.ok()) return RaiseStatus(ordinal.status());
  return PyLong_FromLong(*ordinal);
}

PyObject* OrdinalOfMemory(PyObject*, PyObject* object) {
  const auto address =
      static_cast<uintptr_t>(PyLong_AsUnsignedLongLong(object));
  if (PyErr_Occurred() != nullptr) return nullptr;
  Session* session = DefaultSession();
  if (session == nullptr) return nullptr;
  const absl::StatusOr<int> ordinal =
      session->OrdinalOfMemory(reinterpret_cast<const void*>(address));
  if (!ordinal.ok()) return RaiseStatus(ordinal.status());
  return PyLong_FromLong(*ordinal);
}

// ---- others' capsules

constexpr char kHeldName[] = "holdfast.held_dltensor";

template <typename Message>
PyObject* Describe(PyObject* capsule) {
  auto* message =
      static_cast<Message*>(PyCapsule_GetPointer(capsule, Message::kName));
  if (message == nullptr) return nullptr;
  if constexpr (std::is_same_v<Message, dlpack::ManagedVersioned>) {
    if (message->major != Message::kMajor) {
      PyErr_Format(PyExc_BufferError,
                   "from_dlpack() reads DLPack 1. Got version %u.%u",
                   message->major, message->minor);
      return nullptr;
    }
  }
  const dlpack::Array& array = message->array;
  if (array.device.type != dlpack::kCuda &&
      array.device.type != dlpack::kCudaManaged) {
    Py_RETURN_NONE;
  }
  DType dtype = DType::kFloat32;
  if (array.rank < 0 || array.rank > kMaxRank ||
      !FindType(array.dtype, &dtype)) {
    PyErr_Format(PyExc_BufferError,
                 "from_dlpack() has no such arrays: %d dimensions, type %d of "
                 "%d bits, %d lanes",
                 array.rank, array.dtype.code, array.dtype.bits,
                 array.dtype.lanes);
    return nullptr;
  }
  const absl::Span<const int64_t> shape(array.shape, array.rank);
  PyRef sizes(IntsToTuple(shape));
  PyRef strides(
      array.strides == nullptr
          ? IntsToTuple(ContiguousStrides(Dims(shape.begin(), shape.end())))
          : IntsToTuple({array.strides, shape.size()}));
  PyRef type(PyRef::Borrowed(DTypeObject(dtype)));
  if (!sizes || !strides || !type) return nullptr;
  // From here on it is ours to delete.
  PyRef held(PyCapsule_New(message, kHeldName, [](PyObject* dying) {
    auto* done = static_cast<Message*>(PyCapsule_GetPointer(dying, kHeldName));
    if (done->deleter != nullptr) done->deleter(done);
  }));
  if (!held) return nullptr;
  PyCapsule_SetName(capsule, Message::kUsedName);
  PyCapsule_SetDestructor(capsule, nullptr);
  return Py_BuildValue(
      "(iKOOOO)", array.device.ordinal,
      static_cast<unsigned long long>(  // NOLINT: "K"
          reinterpret_cast<uintptr_t>(array.data) + array.byte_offset),
      type.get(), sizes.get(), strides.get(), held.get());
}

PyObject* OpenCapsule(PyObject*, PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::ManagedVersioned::kName) != 0) {
    return Describe<dlpack::ManagedVersioned>(capsule);
  }
  if (PyCapsule_IsValid(capsule, dlpack::Managed::kName) != 0) {
    return Describe<dlpack::Managed>(capsule);
  }
  PyErr_SetString(PyExc_ValueError,
                  "from_dlpack() takes a DLPack capsule that nobody took yet");
  return nullptr;
}

PyObject* CopyMemory(PyObject*, PyObject* args) {
  unsigned long long address = 0;  // NOLINT: "K"
  PyObject *dtype = nullptr, *shape = nullptr, *strides = nullptr;
  DeviceArray array;
  if (!PyArg_ParseTuple(args, "KiOO!O!", &address, &array.ordinal, &dtype,
                        &PyTuple_Type, &shape, &PyTuple_Type, &strides) ||
      !AsDType(dtype, &array.spec.dtype)) {
    return nullptr;
  }
  if (AsInts(shape, 0, &array.spec.shape) != Converted::kYes ||
      AsInts(strides, 0, &array.spec.strides) != Converted::kYes ||
      array.spec.shape.size() != array.spec.strides.size()) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "as many strides as sizes are expected");
    }
    return nullptr;
  }
  array.data = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  Session* found = DefaultSession();
  if (found == nullptr) return nullptr;
  const std::shared_ptr<Session> session = found->shared_from_this();
  absl::StatusOr<Tensor> copy;
  {
    ScopedGilRelease unlocked;
    copy = session->CopyMemory(array, Interrupted);
  }
  if (absl::IsUnimplemented(copy.status())) Py_RETURN_NONE;
  if (!copy.ok()) return RaiseStatus(copy.status());
  return WrapTensor(*std::move(copy));
}

PyObject* ReadMemory(PyObject*, PyObject* args) {
  unsigned long long address = 0;  // NOLINT: "K"
  Py_ssize_t bytes = 0;
  DeviceArray array;
  if (!PyArg_ParseTuple(args, "Kin", &address, &array.ordinal, &bytes)) {
    return nullptr;
  }
  array.data = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  Session* found = DefaultSession();
  if (found == nullptr) return nullptr;
  const std::shared_ptr<Session> session = found->shared_from_this();
  PyRef result(PyByteArray_FromStringAndSize(nullptr, bytes));
  if (!result) return nullptr;
  char* const host = PyByteArray_AsString(result.get());
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = session->ReadMemory(array, static_cast<size_t>(bytes), host);
  }
  if (!status.ok()) return RaiseStatus(status);
  return result.release();
}

PyObject* AwaitProducer(PyObject*, PyObject* args) {
  int ordinal = 0;
  PyObject* stream = nullptr;
  if (!PyArg_ParseTuple(args, "iO", &ordinal, &stream)) return nullptr;
  std::optional<uintptr_t> wanted;
  if (stream != Py_None) {
    wanted = static_cast<uintptr_t>(PyLong_AsUnsignedLongLong(stream));
    if (PyErr_Occurred() != nullptr) return nullptr;
  }
  Session* found = DefaultSession();
  if (found == nullptr) return nullptr;
  const std::shared_ptr<Session> session = found->shared_from_this();
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = session->AwaitProducer(ordinal, wanted);
  }
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

}  // namespace

void AppendDlpackFunctions(std::vector<PyMethodDef>* functions) {
  const PyMethodDef all[] = {
      {"dlpack_capsule", MakeCapsule, METH_VARARGS,
       "(tensor, versioned): a DLPack capsule of a tensor on a GPU."},
      {"device_memory", DeviceMemory, METH_O,
       "The address of a tensor on a GPU in this process, and its strides."},
      {"gpu_ordinal", GpuOrdinal, METH_VARARGS,
       "The number by which this process knows the GPU of a tensor, or of a "
       "device by its number."},
      {"ordinal_of_memory", OrdinalOfMemory, METH_O,
       "The number of the GPU that an address of this process is of."},
      {"open_capsule", OpenCapsule, METH_O,
       "What is in a DLPack capsule, which is taken; None if no GPU's memory "
       "is: (ordinal, address, dtype, shape, strides, what keeps it)."},
      {"copy_memory", CopyMemory, METH_VARARGS,
       "(address, ordinal, dtype, shape, strides): a tensor with the elements "
       "of a GPU's memory; None where the daemon cannot open it."},
      {"read_memory", ReadMemory, METH_VARARGS,
       "(address, ordinal, bytes): what is in a GPU's memory, a bytearray."},
      {"await_producer", AwaitProducer, METH_VARARGS,
       "(ordinal, stream): waits for a stream of this process; None: all."},
  };
  functions->insert(functions->end(), std::begin(all), std::end(all));
}

}  // namespace holdfast::python
