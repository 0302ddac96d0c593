// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/array_mirror.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "client/session.h"
#include "python_client/src/buffer_format.h"
#include "python_client/src/call.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::ReadValue;
using client::Session;
using client::Tensor;

namespace {

struct Mirror {
  ~Mirror() {
    // Storages may die on any thread, and after the interpreter.
    if (Py_IsInitialized() == 0) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(owner);
    PyGILState_Release(state);
  }

  PyObject* owner = nullptr;    // a weak reference to whose memory it is
  const void* owned = nullptr;  // where that memory starts
  Py_ssize_t owned_bytes = 0;
  char* data = nullptr;     // of the array, inside it
  std::vector<char> known;  // the elements as both sides last had them
};

// A simple view of an object's whole memory.
class Memory {
 public:
  explicit Memory(PyObject* object) {
    filled_ = PyObject_GetBuffer(object, &view_, PyBUF_ANY_CONTIGUOUS) == 0;
    if (!filled_) PyErr_Clear();
  }
  ~Memory() {
    if (filled_) PyBuffer_Release(&view_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool filled() const { return filled_; }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_;
  bool filled_ = false;
};

// The array at the end of the chain of views.
PyRef OwnerOf(PyObject* array) {
  PyRef owner = PyRef::Borrowed(array);
  while (true) {
    PyRef base(PyObject_GetAttrString(owner.get(), "base"));
    if (!base) PyErr_Clear();
    if (!base || base.get() == Py_None) return owner;
    owner = std::move(base);
  }
}

// The array's memory, or null when nobody can look at it any more.
PyRef Alive(const Mirror& mirror) {
  PyObject* owner = PyWeakref_GetObject(mirror.owner);
  if (owner == nullptr || owner == Py_None) return PyRef();
  PyRef held = PyRef::Borrowed(owner);
  const Memory memory(owner);  // it may have been resized
  if (!memory.filled() || memory->buf != mirror.owned ||
      memory->len != mirror.owned_bytes) {
    return PyRef();
  }
  return held;
}

// The storage's elements in one dimension, outside the graph: as in PyTorch, a
// write into the array is not counted as one of the tensor's.
absl::StatusOr<Tensor> Flat(const Tensor& tensor, size_t bytes) {
  Session& session = *tensor->session();
  const Attrs data(&SchemaOf(OpId::variable_data));
  Attrs strided(&SchemaOf(OpId::as_strided));
  Tensor detached, flat;
  absl::Status status =
      session.Apply(data, absl::MakeConstSpan(&tensor, 1), false, false,
                    absl::MakeSpan(&detached, 1));
  if (!status.ok()) return status;
  const auto count =
      static_cast<int64_t>(bytes / ItemSize(tensor->spec().dtype));
  strided.Set(0, Dims{count});
  strided.Set(1, Dims{1});
  strided.Set(2, int64_t{0});
  status = session.Apply(strided, absl::MakeConstSpan(&detached, 1), false,
                         false, absl::MakeSpan(&flat, 1));
  if (!status.ok()) return status;
  return flat;
}

absl::Status Upload(const Tensor& tensor, const std::vector<char>& elements) {
  absl::StatusOr<Tensor> flat = Flat(tensor, elements.size());
  if (!flat.ok()) return flat.status();
  Session& session = *tensor->session();
  absl::StatusOr<Tensor> fresh =
      session.Put(tensor->spec().dtype, (*flat)->spec().shape, elements.data());
  if (!fresh.ok()) return fresh.status();
  const Attrs copy(&SchemaOf(OpId::copy));
  const Tensor inputs[] = {*flat, *fresh};
  Tensor output;
  return session.Apply(copy, inputs, /*inplace=*/true, /*record=*/false,
                       absl::MakeSpan(&output, 1));
}

std::shared_ptr<Mirror> MirrorOf(const Tensor& tensor) {
  return std::static_pointer_cast<Mirror>(tensor->storage()->memory().mirror);
}

bool Pull(const Tensor& tensor) {
  const std::shared_ptr<Mirror> mirror = MirrorOf(tensor);
  if (mirror == nullptr) return true;
  const PyRef owner = Alive(*mirror);
  if (!owner) {
    tensor->storage()->memory().mirror.reset();
    return true;
  }
  std::vector<char>& known = mirror->known;
  if (std::memcmp(mirror->data, known.data(), known.size()) == 0) return true;
  std::memcpy(known.data(), mirror->data, known.size());
  const absl::Status status = Upload(tensor, known);
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

}  // namespace

bool MirrorArray(PyObject* array, const Tensor& tensor) {
  const Memory memory(array);
  if (!memory.filled() || memory->readonly != 0 || memory->len == 0 ||
      memory->len > kMaxMirrorBytes ||
      PyBuffer_IsContiguous(&*memory.operator->(), 'C') == 0) {
    return true;
  }
  const PyRef owner = OwnerOf(array);
  const Memory owned(owner.get());
  auto mirror = std::make_shared<Mirror>();
  mirror->owner = PyWeakref_NewRef(owner.get(), nullptr);
  if (mirror->owner == nullptr || !owned.filled()) {
    PyErr_Clear();  // memory whose end nobody tells
    return true;
  }
  mirror->owned = owned->buf;
  mirror->owned_bytes = owned->len;
  mirror->data = static_cast<char*>(memory->buf);
  mirror->known.assign(mirror->data, mirror->data + memory->len);
  tensor->storage()->memory().mirror = std::move(mirror);
  return true;
}

PyObject* MirrorOf(PyObject*, PyObject* object) {
  if (!IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "mirror_of() takes a Tensor");
    return nullptr;
  }
  const Tensor tensor = TensorOf(object);
  if (!Settle(tensor)) return nullptr;
  const Session& session = *tensor->session();
  const int64_t bytes = tensor->storage()->memory().bytes;
  const bool mapped = session.transport() == "shm" && session.device() == "cpu";
  if (mapped || bytes <= 0 || bytes > kMaxMirrorBytes ||
      tensor->spec().device != 0 ||
      BufferFormat(tensor->spec().dtype) == nullptr) {
    Py_RETURN_NONE;
  }
  const std::shared_ptr<Mirror> mirror = MirrorOf(tensor);
  PyRef owner = mirror == nullptr ? PyRef() : Alive(*mirror);
  if (!owner) return PyLong_FromLongLong(bytes);
  const auto at = static_cast<Py_ssize_t>(
      mirror->data - static_cast<const char*>(mirror->owned));
  return Py_BuildValue("(Nnn)", owner.release(), at,
                       static_cast<Py_ssize_t>(mirror->known.size()));
}

PyObject* Mirrored(PyObject*, PyObject* args) {
  PyObject *array = nullptr, *tensor = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &array, &tensor) || !IsTensor(tensor) ||
      !MirrorArray(array, TensorOf(tensor))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

bool PullMirrors(absl::Span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor && !Pull(tensor)) return false;
  }
  return true;
}

bool PushMirror(const Tensor& tensor) {
  const std::shared_ptr<Mirror> mirror = MirrorOf(tensor);
  if (mirror == nullptr) return true;
  absl::StatusOr<Tensor> flat = Flat(tensor, mirror->known.size());
  if (!flat.ok()) {
    RaiseStatus(flat.status());
    return false;
  }
  ReadValue value;
  if (!ReadTensor(*flat, false, &value)) return false;
  const PyRef owner = Alive(*mirror);
  if (!owner) return true;
  std::memcpy(mirror->known.data(), value.data, mirror->known.size());
  std::memcpy(mirror->data, value.data, mirror->known.size());
  return true;
}

}  // namespace holdfast::python
