// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/saved_tensors_binding.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "python_client/src/call.h"
#include "python_client/src/errors.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/tensor_type.h"
#include "python_client/src/user_code_binding.h"

namespace holdfast::python {

using client::Tensor;

int g_threads_with_hooks = 0;

namespace {

using Tensors = absl::InlinedVector<Tensor, 4>;

thread_local PyObject* g_factory = nullptr;
thread_local bool g_applying = false;
thread_local const std::shared_ptr<client::UserCode>* g_unpack = nullptr;
thread_local absl::Span<PyObject* const> g_operands;

// While ApplyPacked runs its op, or calls hooks.
class ScopedPacking {
 public:
  explicit ScopedPacking(const std::shared_ptr<client::UserCode>* unpack) {
    g_applying = true;
    g_unpack = unpack;
  }
  ~ScopedPacking() {
    g_applying = false;
    g_unpack = nullptr;
  }
  ScopedPacking(const ScopedPacking&) = delete;
  ScopedPacking& operator=(const ScopedPacking&) = delete;
};

// The program's object for an input, or a new one. A new reference.
PyObject* ObjectFor(const Tensor& tensor) {
  const auto same = [&](PyObject* object) {
    return object != nullptr && IsTensor(object) && TensorOf(object) == tensor;
  };
  for (PyObject* operand : g_operands) {
    if (same(operand)) return PyRef::Borrowed(operand).release();
    if (operand == nullptr) continue;
    const bool is_tuple = PyTuple_Check(operand) != 0;
    if (!is_tuple && PyList_Check(operand) == 0) continue;
    const Py_ssize_t size =
        is_tuple ? PyTuple_Size(operand) : PyList_Size(operand);
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item =
          is_tuple ? PyTuple_GetItem(operand, i) : PyList_GetItem(operand, i);
      if (same(item)) return PyRef::Borrowed(item).release();
    }
  }
  return WrapTensor(tensor);
}

template <typename IsSaved>
PyRef SavedTuple(absl::Span<const Tensor> tensors, const IsSaved& is_saved) {
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; tuple && i < tensors.size(); ++i) {
    PyObject* item = tensors[i] && is_saved(i)
                         ? ObjectFor(tensors[i])
                         : PyRef::Borrowed(Py_None).release();
    if (item == nullptr) return PyRef();
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple;
}

// An in-place op overwrites what its gradient may need: from here on `inputs`
// are what the hooks see.
bool KeepOverwritten(const client::SavedMasks& saved, Tensors* inputs) {
  const Tensor written = inputs->front();
  Tensor old;
  for (size_t i = 0; i < inputs->size(); ++i) {
    if ((*inputs)[i] != written || !saved.input(i)) continue;
    if (!old) old = ApplyUnary(OpId::clone, written);
    if (!old) return false;
    (*inputs)[i] = old;
  }
  return true;
}

bool PackSaved(PyObject* packed, const client::SavedMasks& saved,
               absl::Span<const Tensor> inputs,
               absl::Span<const Tensor> outputs) {
  const PyRef in = SavedTuple(inputs, [&](size_t i) { return saved.input(i); });
  const PyRef out =
      SavedTuple(outputs, [&](size_t i) { return saved.output(i); });
  if (!in || !out) return false;
  const bool enabled = SetGradEnabled(false);
  const PyRef done(
      PyObject_CallMethod(packed, "pack", "OO", in.get(), out.get()));
  SetGradEnabled(enabled);
  return static_cast<bool>(done);
}

}  // namespace

bool PacksHere() {
  return g_factory != nullptr && !g_applying && GradEnabled();
}

const std::shared_ptr<client::UserCode>* UnpackHere() { return g_unpack; }

bool ApplyPacked(const Attrs& attrs, absl::Span<const Tensor> inputs,
                 bool inplace, absl::Span<Tensor> outputs,
                 client::RandomStream* random) {
  client::Session* session = nullptr;
  for (const Tensor& input : inputs) {
    if (input) session = input->session().get();
  }
  client::SavedMasks masks;
  if (session != nullptr) {
    const absl::StatusOr<client::SavedMasks> saved =
        session->Saved(attrs.schema(), inputs);
    if (!saved.ok()) {
      RaiseStatus(saved.status());
      return false;
    }
    masks = *saved;
  }
  if (!masks.any()) {
    const ScopedPacking scope(nullptr);
    return Apply(attrs, inputs, inplace, outputs, random);
  }
  // Python code runs from here on.
  const Tensors held(inputs.begin(), inputs.end());
  Tensors shown = held;
  const PyRef factory = PyRef::Borrowed(g_factory);
  const PyRef packed(PyObject_CallNoArgs(factory.get()));
  if (!packed) return false;
  PyRef unpack(PyObject_GetAttrString(packed.get(), "unpack"));
  if (!unpack) return false;
  const std::shared_ptr<client::UserCode> code =
      MakeUserCode(std::move(unpack), attrs.schema().name);
  {
    const ScopedPacking scope(nullptr);
    const bool enabled = SetGradEnabled(false);
    const bool kept = !inplace || KeepOverwritten(masks, &shown);
    SetGradEnabled(enabled);
    if (!kept) return false;
  }
  {
    const ScopedPacking scope(&code);
    if (!Apply(attrs, held, inplace, outputs, random)) return false;
  }
  return PackSaved(packed.get(), masks, shown, outputs);
}

void ScopedOperands::Set(absl::Span<PyObject* const> operands) {
  set_ = true;
  outer_ = std::exchange(g_operands, operands);
}

void ScopedOperands::Reset() { g_operands = outer_; }

PyObject* SetSavedTensorsHooks(PyObject*, PyObject* factory) {
  const PyRef old(g_factory);
  g_factory = factory == Py_None ? nullptr : PyRef::Borrowed(factory).release();
  g_threads_with_hooks += (g_factory != nullptr) - static_cast<bool>(old);
  Py_RETURN_NONE;
}

}  // namespace holdfast::python
