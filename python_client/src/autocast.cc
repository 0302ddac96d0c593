// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/autocast.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "python_client/src/call.h"
#include "python_client/src/dtype_type.h"

namespace holdfast::python {

using client::Tensor;

thread_local int g_autocast = 0;

namespace {

enum class Policy : uint8_t { kNone, kLower, kFloat32 };

constexpr int kKinds = 2;  // the CPU, GPUs

struct Cast {
  Tensor original;  // whose handle stays taken as long
  uint32_t version;
  Tensor cast;
};

struct State {
  DType dtypes[kKinds] = {DType::kBFloat16, DType::kFloat16};
  bool cache = true;
  int depth = 0;  // of autocast blocks
  // Parameters that were cast in this block, by their handles.
  std::unordered_map<uint64_t, Cast> casts;
};
thread_local State t_state;

constexpr Policy OnGpu(OpId op) {
  switch (op) {
    case OpId::matmul:
    case OpId::linear:
    case OpId::conv2d:
    case OpId::conv2d_backward_input:  // transposed convolutions
    case OpId::conv3d:
    case OpId::conv3d_backward_input:
    case OpId::rnn_layer:
    case OpId::attention:
      return Policy::kLower;
    case OpId::acos:
    case OpId::asin:
    case OpId::cosh:
    case OpId::erfinv:
    case OpId::exp:
    case OpId::expm1:
    case OpId::log:
    case OpId::log10:
    case OpId::log2:
    case OpId::log1p:
    case OpId::reciprocal:
    case OpId::rsqrt:
    case OpId::sinh:
    case OpId::tan:
    case OpId::pow:
    case OpId::softplus:
    case OpId::group_norm:  // layer_norm, too
    case OpId::softmax:
    case OpId::log_softmax:
    case OpId::nll_loss:
    case OpId::huber:
    case OpId::ctc_loss:
    case OpId::vector_norm:
    case OpId::cumsum:
    case OpId::cumprod:
    case OpId::prod:
    case OpId::sum:
    case OpId::linalg_cdist:
      return Policy::kFloat32;
    default:
      return Policy::kNone;
  }
}

constexpr Policy OnCpu(OpId op) {
  switch (op) {
    case OpId::matmul:
    case OpId::linear:
    case OpId::conv2d:
    case OpId::conv3d:
    case OpId::attention:
      return Policy::kLower;
    case OpId::conv2d_backward_input:
    case OpId::conv3d_backward_input:
    case OpId::nll_loss:
    case OpId::ctc_loss:
    case OpId::prod:
    case OpId::grid_taps:
    case OpId::linalg_cdist:
    case OpId::fft_c2c:
    case OpId::fft_r2c:
    case OpId::fft_c2r:
      return Policy::kFloat32;
    default:
      return Policy::kNone;
  }
}

bool IsNarrow(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

int KindOf(const Tensor& tensor) { return tensor->spec().device > 0 ? 1 : 0; }

// The type that the policy wants the tensor in; its own if that is none of
// autocast's business.
DType Wanted(Policy policy, DType dtype, int kind) {
  const bool casts = dtype == DType::kFloat32 || IsNarrow(dtype);
  if (!casts || policy == Policy::kNone) return dtype;
  return policy == Policy::kLower ? t_state.dtypes[kind] : DType::kFloat32;
}

Policy PolicyOf(const OpSchema& op, absl::Span<const Tensor> inputs,
                int* kind) {
  *kind = 0;
  for (const Tensor& input : inputs) {
    if (input && KindOf(input) == 1) *kind = 1;
  }
  if ((g_autocast >> *kind & 1) == 0) return Policy::kNone;
  return *kind == 1 ? OnGpu(op.id) : OnCpu(op.id);
}

Tensor CastTo(const Tensor& tensor, DType dtype) {
  const bool keep = t_state.cache && GradEnabled() && tensor->is_leaf &&
                    tensor->requires_grad &&
                    tensor->spec().dtype == DType::kFloat32;
  if (!keep) return ApplyTo(tensor, dtype);
  const uint32_t version = tensor->storage()->version();
  const auto found = t_state.casts.find(tensor->handle());
  if (found != t_state.casts.end() && found->second.version == version &&
      found->second.original.get() == tensor.get() &&
      found->second.cast->spec().dtype == dtype) {
    return found->second.cast;
  }
  Tensor cast = ApplyTo(tensor, dtype);
  if (cast) t_state.casts[tensor->handle()] = {tensor, version, cast};
  return cast;
}

}  // namespace

bool WantsCast(const OpSchema& op, absl::Span<const Tensor> inputs) {
  int kind = 0;
  const Policy policy = PolicyOf(op, inputs, &kind);
  if (policy == Policy::kNone) return false;
  for (const Tensor& input : inputs) {
    if (!input) continue;
    const DType dtype = input->spec().dtype;
    if (Wanted(policy, dtype, kind) != dtype) return true;
  }
  return false;
}

bool CastInputs(const OpSchema& op, absl::InlinedVector<Tensor, 4>* inputs) {
  int kind = 0;
  const Policy policy = PolicyOf(op, *inputs, &kind);
  for (Tensor& input : *inputs) {
    if (!input) continue;
    const DType dtype = Wanted(policy, input->spec().dtype, kind);
    if (dtype == input->spec().dtype) continue;
    input = CastTo(input, dtype);
    if (!input) return false;
  }
  return true;
}

namespace {

void Set(int kind, bool on) {
  g_autocast = on ? g_autocast | 1 << kind : g_autocast & ~(1 << kind);
}

bool ParseKind(int kind) {
  if (kind == 0 || kind == 1) return true;
  PyErr_SetString(PyExc_ValueError, "a kind of device is 0 or 1");
  return false;
}

// (gpu, enabled, dtype or None, cache) -> (kind, on, dtype, cache) of before.
PyObject* Enter(PyObject*, PyObject* args) {
  int kind = 0, enabled = 0, cache = 0;
  PyObject* object = nullptr;
  if (!PyArg_ParseTuple(args, "ipOp", &kind, &enabled, &object, &cache) ||
      !ParseKind(kind)) {
    return nullptr;
  }
  DType dtype = t_state.dtypes[kind];
  if (object != Py_None && !AsDType(object, &dtype)) {
    PyErr_SetString(PyExc_TypeError, "dtype must be a holdfast.dtype");
    return nullptr;
  }
  PyRef before(Py_BuildValue("iiii", kind, g_autocast >> kind & 1,
                             static_cast<int>(t_state.dtypes[kind]),
                             t_state.cache ? 1 : 0));
  if (!before) return nullptr;
  Set(kind, enabled != 0);
  t_state.dtypes[kind] = dtype;
  t_state.cache = cache != 0;
  ++t_state.depth;
  return before.release();
}

PyObject* Exit(PyObject*, PyObject* args) {
  int kind = 0, on = 0, dtype = 0, cache = 0;
  if (!PyArg_ParseTuple(args, "iiii", &kind, &on, &dtype, &cache) ||
      !ParseKind(kind)) {
    return nullptr;
  }
  Set(kind, on != 0);
  t_state.dtypes[kind] = static_cast<DType>(dtype);
  t_state.cache = cache != 0;
  if (--t_state.depth == 0) t_state.casts.clear();
  Py_RETURN_NONE;
}

PyObject* IsOn(PyObject*, PyObject* kind) {
  return PyBool_FromLong(g_autocast >> (PyObject_IsTrue(kind) > 0 ? 1 : 0) & 1);
}

PyObject* GetDType(PyObject*, PyObject* kind) {
  PyObject* dtype =
      DTypeObject(t_state.dtypes[PyObject_IsTrue(kind) > 0 ? 1 : 0]);
  Py_XINCREF(dtype);
  return dtype;
}

PyObject* SetOn(PyObject*, PyObject* args) {
  int kind = 0, enabled = 0;
  if (!PyArg_ParseTuple(args, "pp", &kind, &enabled)) return nullptr;
  Set(kind, enabled != 0);
  Py_RETURN_NONE;
}

PyObject* SetDType(PyObject*, PyObject* args) {
  int kind = 0;
  PyObject* object = nullptr;
  DType dtype;
  if (!PyArg_ParseTuple(args, "pO", &kind, &object)) return nullptr;
  if (!AsDType(object, &dtype)) {
    PyErr_SetString(PyExc_TypeError, "dtype must be a holdfast.dtype");
    return nullptr;
  }
  t_state.dtypes[kind] = dtype;
  Py_RETURN_NONE;
}

PyObject* ClearCache(PyObject*, PyObject*) {
  t_state.casts.clear();
  Py_RETURN_NONE;
}

}  // namespace

void AppendAutocastFunctions(std::vector<PyMethodDef>* functions) {
  functions->push_back({"autocast_enter", Enter, METH_VARARGS, nullptr});
  functions->push_back({"autocast_exit", Exit, METH_O, nullptr});
  functions->push_back({"autocast_is_on", IsOn, METH_O, nullptr});
  functions->push_back({"autocast_dtype", GetDType, METH_O, nullptr});
  functions->push_back({"set_autocast", SetOn, METH_VARARGS, nullptr});
  functions->push_back({"set_autocast_dtype", SetDType, METH_VARARGS, nullptr});
  functions->push_back(
      {"clear_autocast_cache", ClearCache, METH_NOARGS, nullptr});
}

}  // namespace holdfast::python
