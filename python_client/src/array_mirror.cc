// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/array_mirror.h"

#include <algorithm>
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

using client::BlockMarks;
using client::kMarkedBlock;
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

  // The array's elements in row-major order: its own memory, or a copy.
  const char* Elements(std::vector<char>* copy) const {
    if (plain) return static_cast<const char*>(view.buf);
    copy->resize(bytes());
    CopyRowMajor(view, copy->data());
    return copy->data();
  }
  void Write(const void* elements) {
    if (plain) {
      std::memcpy(view.buf, elements, bytes());
    } else {
      PyBuffer_FromContiguous(&view, elements, view.len, 'C');
    }
  }

  size_t bytes() const { return static_cast<size_t>(view.len); }

  PyObject* owner = nullptr;    // a weak reference to whose memory it is
  const void* owned = nullptr;  // where that memory starts
  Py_ssize_t owned_bytes = 0;
  Py_buffer view = {};  // the array inside it; holds no reference
  std::vector<Py_ssize_t> shape, strides;  // of the view
  bool plain = true;                       // row-major, without gaps
  BlockMarks marks;    // of the elements as both sides last had them
  uint64_t moved = 0;  // bytes looked at or brought so far
};

// A view of an object's memory.
class Memory {
 public:
  explicit Memory(PyObject* object, int flags = PyBUF_ANY_CONTIGUOUS) {
    filled_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    if (!filled_) PyErr_Clear();
  }
  ~Memory() {
    if (filled_) PyBuffer_Release(&view_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool filled() const { return filled_; }
  const Py_buffer* operator->() const { return &view_; }
  const Py_buffer& operator*() const { return view_; }

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

// Elements of the storage in one dimension, outside the graph: as in PyTorch, a
// write into the array is not counted as one of the tensor's.
absl::StatusOr<Tensor> Flat(const Tensor& tensor, size_t begin, size_t end) {
  Session& session = *tensor->session();
  const Attrs data(&SchemaOf(OpId::variable_data));
  Attrs strided(&SchemaOf(OpId::as_strided));
  Tensor detached, flat;
  absl::Status status =
      session.Apply(data, absl::MakeConstSpan(&tensor, 1), false, false,
                    absl::MakeSpan(&detached, 1));
  if (!status.ok()) return status;
  const size_t item = ItemSize(tensor->spec().dtype);
  strided.Set(0, Dims{static_cast<int64_t>((end - begin) / item)});
  strided.Set(1, Dims{1});
  strided.Set(2, static_cast<int64_t>(begin / item));
  status = session.Apply(strided, absl::MakeConstSpan(&detached, 1), false,
                         false, absl::MakeSpan(&flat, 1));
  if (!status.ok()) return status;
  return flat;
}

// Brings the elements at bytes [begin, end) of the storage.
absl::Status Upload(const Tensor& tensor, const char* elements, size_t begin,
                    size_t end) {
  absl::StatusOr<Tensor> flat = Flat(tensor, begin, end);
  if (!flat.ok()) return flat.status();
  Session& session = *tensor->session();
  absl::StatusOr<Tensor> fresh = session.Put(
      tensor->spec().dtype, (*flat)->spec().shape, elements + begin);
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

// The bytes outside of which nothing has changed, in whole blocks; empty if
// nothing has. Marks what has.
std::pair<size_t, size_t> Change(const char* elements, Mirror* mirror) {
  const size_t size = mirror->bytes();
  size_t begin = size, end = size;
  for (size_t i = 0; i < mirror->marks.size(); ++i) {
    const size_t at = i * kMarkedBlock;
    const uint64_t mark =
        client::MarkOf(elements + at, std::min(kMarkedBlock, size - at));
    if (mark == mirror->marks[i]) continue;
    mirror->marks[i] = mark;
    if (begin == size) begin = at;
    end = std::min(size, at + kMarkedBlock);
  }
  return {begin, end};
}

// Says once that a large array makes a program slow. False: the program has
// made errors of warnings.
bool CountMoved(Mirror* mirror) {
  constexpr uint64_t kMuch = uint64_t{16} << 30;
  static bool told = false;
  mirror->moved += mirror->bytes();
  if (told || mirror->moved < kMuch || mirror->view.len <= kMaxMirrorBytes) {
    return true;
  }
  told = true;
  return PyErr_WarnFormat(
             PyExc_UserWarning, 1,
             "an array of %zd MB that from_numpy() took is compared with its "
             "tensor before each op that uses it, 16 GB so far, since the "
             "program may write the array. Where it does not: del the array, "
             "or use torch.tensor(array), which is a copy.",
             mirror->view.len / 1000000) == 0;
}

bool Pull(const Tensor& tensor) {
  const std::shared_ptr<Mirror> mirror = MirrorOf(tensor);
  if (mirror == nullptr) return true;
  const PyRef owner = Alive(*mirror);
  if (!owner) {
    tensor->storage()->memory().mirror.reset();
    return true;
  }
  std::vector<char> copy;
  const char* elements = mirror->Elements(&copy);
  const auto [begin, end] = Change(elements, mirror.get());
  if (!CountMoved(mirror.get())) return false;
  if (begin == end) return true;
  const absl::Status status = Upload(tensor, elements, begin, end);
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

// Whether all of the view lies in memory of `size` bytes from `start` on.
bool Inside(const Py_buffer& view, const void* start, Py_ssize_t size) {
  const char* low = static_cast<const char*>(view.buf);
  const char* high = low + view.itemsize;
  for (int i = 0; i < view.ndim; ++i) {
    const Py_ssize_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const char* first = static_cast<const char*>(start);
  return low >= first && high <= first + size;
}

}  // namespace

bool CanMirror(PyObject* array) {
  const Memory memory(array, PyBUF_STRIDES);
  return memory.filled() && memory->readonly == 0 && memory->len != 0;
}

bool MirrorArray(PyObject* array, const Tensor& tensor, BlockMarks marks) {
  if (!CanMirror(array)) return true;
  const Memory memory(array, PyBUF_STRIDES);
  const PyRef owner = OwnerOf(array);
  const Memory owned(owner.get());
  auto mirror = std::make_shared<Mirror>();
  mirror->owner = PyWeakref_NewRef(owner.get(), nullptr);
  if (mirror->owner == nullptr || !owned.filled() ||
      !Inside(*memory, owned->buf, owned->len)) {
    PyErr_Clear();  // memory whose end nobody tells
    return true;
  }
  mirror->owned = owned->buf;
  mirror->owned_bytes = owned->len;
  mirror->plain = PyBuffer_IsContiguous(&*memory, 'C') != 0;
  mirror->shape.assign(memory->shape, memory->shape + memory->ndim);
  mirror->strides.assign(memory->strides, memory->strides + memory->ndim);
  mirror->view = *memory;
  mirror->view.obj = nullptr;
  mirror->view.internal = nullptr;
  mirror->view.shape = mirror->shape.data();
  mirror->view.strides = mirror->strides.data();
  if (marks.empty()) {
    std::vector<char> copy;
    client::TakeMarks(mirror->Elements(&copy), mirror->bytes(), &marks);
  }
  mirror->marks = std::move(marks);
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
  const std::shared_ptr<Mirror> mirror = MirrorOf(tensor);
  PyRef owner = mirror == nullptr ? PyRef() : Alive(*mirror);
  if (owner && mirror->plain &&
      PyBuffer_IsContiguous(&*Memory(owner.get()), 'C') != 0) {
    const auto at = static_cast<const char*>(mirror->view.buf) -
                    static_cast<const char*>(mirror->owned);
    return Py_BuildValue("(Nnn)", owner.release(), static_cast<Py_ssize_t>(at),
                         mirror->view.len);
  }
  const bool mapped = session.transport() == "shm" && session.device() == "cpu";
  if (mapped || owner || bytes <= 0 || bytes > kMaxMirrorBytes ||
      tensor->spec().device != 0 ||
      BufferFormat(tensor->spec().dtype) == nullptr) {
    Py_RETURN_NONE;
  }
  return PyLong_FromLongLong(bytes);
}

PyObject* Mirrored(PyObject*, PyObject* args) {
  PyObject *array = nullptr, *tensor = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &array, &tensor) || !IsTensor(tensor) ||
      !MirrorArray(array, TensorOf(tensor), {})) {
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
  absl::StatusOr<Tensor> flat = Flat(tensor, 0, mirror->bytes());
  if (!flat.ok()) {
    RaiseStatus(flat.status());
    return false;
  }
  ReadValue value;
  if (!ReadTensor(*flat, false, &value)) return false;
  const PyRef owner = Alive(*mirror);
  if (!owner) return true;
  client::TakeMarks(value.data, mirror->bytes(), &mirror->marks);
  mirror->Write(value.data);
  return CountMoved(mirror.get());
}

}  // namespace holdfast::python
