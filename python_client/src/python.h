// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The one way in to Python's C API: the stable ABI of 3.11 and later, so that
// one build of the extension serves every interpreter. Also PyRef, an owned
// reference.
// Thread-safety: everything in this folder runs with the GIL held, except
// where it says that it waits.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_PYTHON_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_PYTHON_H_

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
// clang-format off
#include <Python.h>
#include <structmember.h>
// clang-format on

#include <utility>

namespace holdfast::python {

// Owns one reference, or none. Moves, never copies.
class PyRef {
 public:
  PyRef() = default;
  // Takes over a new reference, such as a call's result.
  explicit PyRef(PyObject* owned) : object_(owned) {}
  static PyRef Borrowed(PyObject* object) {
    Py_XINCREF(object);
    return PyRef(object);
  }
  PyRef(PyRef&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Releases the GIL for a scope that touches no Python object.
class ScopedGilRelease {
 public:
  ScopedGilRelease() : state_(PyEval_SaveThread()) {}
  ~ScopedGilRelease() { PyEval_RestoreThread(state_); }
  ScopedGilRelease(const ScopedGilRelease&) = delete;
  ScopedGilRelease& operator=(const ScopedGilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// METH_FASTCALL functions as the method table wants them.
using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
using FastKeywordFunction = PyObject* (*)(PyObject*, PyObject* const*,
                                          Py_ssize_t, PyObject*);
template <typename Function>
PyCFunction AsPyCFunction(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_PYTHON_H_
