// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Mirrors: a NumPy array and the tensor that was made of it look like one
// memory, as in PyTorch, though the daemon has a copy. What the program writes
// into the array is brought to the daemon before an op uses the tensor; what an
// op writes into the tensor is brought back before the op's call returns. A
// mirror ends with the array (or the array whose memory it shows) and with the
// storage. Thread-safety: with the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_ARRAY_MIRROR_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_ARRAY_MIRROR_H_

#include "absl/types/span.h"
#include "client/block_marks.h"
#include "client/tensor.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Over gRPC numpy() of more than this is a read-only copy: to look at an array
// and to bring it costs more than most ops.
inline constexpr Py_ssize_t kMaxMirrorBytes = 256 << 10;

inline bool IsMirrored(const client::Tensor& tensor) {
  return tensor->storage()->memory().mirror != nullptr;
}

// Whether anybody can write the array, and it has elements.
bool CanMirror(PyObject* array);

// Ties the array to the tensor that has a row-major copy of it, of these marks;
// without marks they are taken now. Nothing where the array cannot be mirrored.
// False: an error is set.
bool MirrorArray(PyObject* array, const client::Tensor& tensor,
                 client::BlockMarks marks);

// (tensor) -> how a NumPy array and a tensor that is not mapped here look like
// one memory: the bytes of the storage, of which mirrored() may take a copy; or
// (owner, offset, bytes), what mirrors it by now, mapped or not; or None: it is
// too large.
PyObject* MirrorOf(PyObject*, PyObject* tensor);
// (array of the storage's bytes, tensor) -> None. Ties them.
PyObject* Mirrored(PyObject*, PyObject* args);

// Before the tensors are used, and after one was written. They wait when there
// is something to bring. Looking takes as long as reading the arrays. False: an
// error is set.
bool PullMirrors(absl::Span<const client::Tensor> tensors);
bool PushMirror(const client::Tensor& tensor);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_ARRAY_MIRROR_H_
