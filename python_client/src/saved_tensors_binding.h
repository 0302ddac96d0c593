// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks on saved tensors: while a thread has them on, the daemon keeps nothing
// for the gradients of the ops that the thread records; Python code keeps it.
// Thread-safety: everything here needs the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_SAVED_TENSORS_BINDING_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_SAVED_TENSORS_BINDING_H_

#include <memory>

#include "absl/base/optimization.h"
#include "absl/types/span.h"
#include "client/session.h"
#include "client/user_code.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// How many threads have hooks on. What every op looks at.
extern int g_threads_with_hooks;

// This thread has hooks on, its grad mode is on, and it is not in ApplyPacked.
bool PacksHere();
// What the op that ApplyPacked runs has for Session::Apply; null elsewhere.
const std::shared_ptr<client::UserCode>* UnpackHere();

// Apply (call.h) of an op whose saved values the hooks take. REQUIRES:
// PacksHere().
bool ApplyPacked(const Attrs& attrs, absl::Span<const client::Tensor> inputs,
                 bool inplace, absl::Span<client::Tensor> outputs,
                 client::RandomStream* random);

// The Python objects that the program called the op with, so that hooks see
// those (a Parameter, say) and no others for the same tensors. `operands` may
// hold nulls, lists and tuples, and must outlive this.
class ScopedOperands {
 public:
  explicit ScopedOperands(absl::Span<PyObject* const> operands) {
    if (ABSL_PREDICT_FALSE(g_threads_with_hooks != 0)) Set(operands);
  }
  ~ScopedOperands() {
    if (ABSL_PREDICT_FALSE(set_)) Reset();
  }
  ScopedOperands(const ScopedOperands&) = delete;
  ScopedOperands& operator=(const ScopedOperands&) = delete;

 private:
  void Set(absl::Span<PyObject* const> operands);
  void Reset();

  absl::Span<PyObject* const> outer_;
  bool set_ = false;
};

// Module function: (factory or None). For each op that saves something,
// factory() makes an object with pack(inputs, outputs), called once with tuples
// of Tensor or None, and unpack(()), which answers with all of them in a tuple.
PyObject* SetSavedTensorsHooks(PyObject* module, PyObject* factory);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_SAVED_TENSORS_BINDING_H_
