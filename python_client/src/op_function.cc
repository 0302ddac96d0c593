// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/op_function.h"

#include <array>
#include <memory>
#include <string>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "python_client/src/argument.h"
#include "python_client/src/call.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/errors.h"
#include "python_client/src/overrides.h"
#include "python_client/src/random_stream_type.h"
#include "python_client/src/saved_tensors_binding.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

using client::Tensor;
using Inputs = absl::InlinedVector<Tensor, 4>;

constexpr int kMaxParams = 16;

// What binding needs beside the schema.
struct Binding {
  const OpSchema* schema;
  std::vector<PyObject*> names;  // interned, per parameter
  int positional = 0;            // parameters before `*`
  // The last positional parameter, when it is a plain int[]: it takes all
  // further positional arguments, as in x.view(2, 3).
  int varargs = -1;
  PyObject* overload = nullptr;
};
std::array<Binding, kNumOps> g_bindings;

// Keywords of PyTorch's creation functions that are no parameters of the row.
struct CreationOptions {
  bool requires_grad = false;
  int device = DefaultDevice();
  PyObject* out = nullptr;                       // borrowed; `out=` of any op
  std::shared_ptr<client::RandomStream> random;  // `generator=` of random ops
};

std::string PublicName(const OpSchema& schema, bool inplace) {
  return inplace ? schema.name + "_" : schema.name;
}

bool Named(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

// NumPy's names for PyTorch's parameters, which PyTorch accepts too.
const char* Alias(PyObject* name) {
  if (Named(name, "axis")) return "dim";
  if (Named(name, "keepdims")) return "keepdim";
  return nullptr;
}

int FindParam(const Binding& binding, PyObject* name) {
  for (size_t i = 0; i < binding.names.size(); ++i) {
    if (binding.names[i] == name) return static_cast<int>(i);
  }
  const char* alias = Alias(name);
  for (size_t i = 0; i < binding.names.size(); ++i) {
    if (alias != nullptr ? Named(binding.names[i], alias)
                         : PyUnicode_Compare(binding.names[i], name) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Consumes `device=` and the like of a creation function. kNo: not one.
Converted TakeCreationOption(PyObject* name, PyObject* value,
                             CreationOptions* options) {
  if (Named(name, "requires_grad")) {
    const int truth = PyObject_IsTrue(value);
    options->requires_grad = truth > 0;
    return truth < 0 ? Converted::kError : Converted::kYes;
  }
  if (Named(name, "device")) {
    return ParseDevice(value, &options->device) ? Converted::kYes
                                                : Converted::kError;
  }
  for (const char* ignored :
       {"layout", "pin_memory", "memory_format", "names"}) {
    if (Named(name, ignored)) return Converted::kYes;
  }
  return Converted::kNo;
}

void RaiseTooMany(const Binding& binding, bool inplace, Py_ssize_t given) {
  PyErr_Format(PyExc_TypeError,
               "%s() takes at most %d positional arguments but %zd were given",
               PublicName(*binding.schema, inplace).c_str(), binding.positional,
               given);
}

// One value per parameter, null where not given. Fails with TypeError.
class Arguments {
 public:
  bool Bind(const Binding& binding, bool inplace, PyObject* self,
            PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
            CreationOptions* options) {
    int next = 0;
    if (self != nullptr) values_[next++] = self;
    Py_ssize_t used = 0;
    const int last =
        binding.varargs >= 0 ? binding.varargs : binding.positional;
    while (used < nargs && next < last) values_[next++] = args[used++];
    if (used < nargs) {
      if (binding.varargs < 0) {
        RaiseTooMany(binding, inplace, nargs + (self != nullptr));
        return false;
      }
      if (nargs - used == 1) {
        values_[next] = args[used];
      } else {
        collected_ = PyRef(PyTuple_New(nargs - used));
        if (!collected_) return false;
        for (Py_ssize_t i = used; i < nargs; ++i) {
          Py_INCREF(args[i]);
          PyTuple_SetItem(collected_.get(), i - used, args[i]);
        }
        values_[next] = collected_.get();
      }
    }
    return kwnames == nullptr ||
           BindKeywords(binding, inplace, args + nargs, kwnames, options);
  }

  PyObject* operator[](size_t i) const { return values_[i]; }
  absl::Span<PyObject* const> values() const { return values_; }

 private:
  bool BindKeywords(const Binding& binding, bool inplace,
                    PyObject* const* values, PyObject* names,
                    CreationOptions* options) {
    const Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* name = PyTuple_GetItem(names, i);
      const int index = FindParam(binding, name);
      if (index >= 0) {
        if (values_[index] != nullptr) {
          PyErr_Format(PyExc_TypeError,
                       "%s() got multiple values for argument '%U'",
                       PublicName(*binding.schema, inplace).c_str(), name);
          return false;
        }
        values_[index] = values[i];
        continue;
      }
      if (!inplace && Named(name, "out")) {
        if (values[i] != Py_None) options->out = values[i];
        continue;
      }
      if (binding.schema->has(kRandom) && Named(name, "generator")) {
        if (!AsRandomStream(values[i], &options->random)) return false;
        continue;
      }
      if (binding.schema->num_tensors == 0) {
        const Converted taken = TakeCreationOption(name, values[i], options);
        if (taken == Converted::kYes) continue;
        if (taken == Converted::kError) return false;
      }
      PyErr_Format(PyExc_TypeError,
                   "%s() got an unexpected keyword argument '%U'",
                   PublicName(*binding.schema, inplace).c_str(), name);
      return false;
    }
    return true;
  }

  std::array<PyObject*, kMaxParams> values_{};
  PyRef collected_;
};

bool AppendList(const char* name, const OpParam& param, PyObject* list,
                Inputs* inputs) {
  const bool is_tuple = PyTuple_Check(list);
  if (!is_tuple && !PyList_Check(list)) {
    RaiseArgumentType(name, param, list);
    return false;
  }
  const Py_ssize_t size = is_tuple ? PyTuple_Size(list) : PyList_Size(list);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item =
        is_tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
    if (item == nullptr || !IsTensor(item)) {
      if (item != nullptr) RaiseArgumentType(name, param, item);
      return false;
    }
    inputs->push_back(TensorOf(item));
  }
  return true;
}

// Converts the bound values. Fails with TypeError where one does not fit.
bool Convert(const Binding& binding, const char* name,
             const Arguments& arguments, Attrs* attrs, Inputs* inputs) {
  const OpSchema& schema = *binding.schema;
  for (size_t i = 0; i < schema.params.size(); ++i) {
    const OpParam& param = schema.params[i];
    PyObject* value = arguments[i];
    if (value == nullptr) {
      if (!param.has_default) {
        PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'",
                     name, param.name.c_str());
        return false;
      }
      if (param.tensor_slot >= 0) inputs->emplace_back();
      continue;
    }
    if (param.kind == ParamKind::kTensorList) {
      if (!AppendList(name, param, value, inputs)) return false;
      continue;
    }
    if (param.tensor_slot >= 0) {
      if (IsTensor(value)) {
        inputs->push_back(TensorOf(value));
        continue;
      }
      inputs->emplace_back();
      if (value == Py_None && param.nullable) continue;
      if (param.attr_slot < 0) {
        RaiseArgumentType(name, param, value);
        return false;
      }
      if (PyComplex_Check(value)) {
        const DType like = inputs->size() > 1 && inputs->front()
                               ? inputs->front()->spec().dtype
                               : g_default_float;
        inputs->back() = MakeComplexScalar(value, like);
        if (!inputs->back()) return false;
        continue;
      }
    }
    AttrValue attr;
    if (!ToAttr(name, param, value, &attr)) return false;
    attrs->Set(param.attr_slot, std::move(attr));
  }
  return true;
}

// The op whose overload runs on this thread: when the overload in turn passes
// what does not fit, that is the caller's error.
thread_local OpId g_in_overload = OpId::kCount;

class ScopedOverload {
 public:
  explicit ScopedOverload(OpId id) : outer_(std::exchange(g_in_overload, id)) {}
  ~ScopedOverload() { g_in_overload = outer_; }
  ScopedOverload(const ScopedOverload&) = delete;
  ScopedOverload& operator=(const ScopedOverload&) = delete;

 private:
  OpId outer_;
};

// The Python overload, with the arguments as they came.
PyObject* CallOverload(const Binding& binding, bool inplace,
                       const OverridableCall& call) {
  PyRef args, kwargs;
  if (!PackArguments(call, &args, &kwargs)) return nullptr;
  if (inplace && PyDict_SetItemString(kwargs.get(), "inplace_", Py_True) < 0) {
    return nullptr;
  }
  const ScopedOverload scope(binding.schema->id);
  return PyObject_Call(binding.overload, args.get(), kwargs.get());
}

// out=: the result goes into the caller's tensor. One of another shape takes
// on the result's, as PyTorch's would be resized.
bool StoreOneOut(PyObject* out, PyObject* result) {
  if (!IsTensor(out)) {
    PyRef type = TypeName(out);
    if (type) {
      PyErr_Format(PyExc_TypeError, "argument 'out' must be Tensor, not %U",
                   type.get());
    }
    return false;
  }
  const Tensor value = TensorOf(result);
  const Tensor target = TensorOf(out);
  if (Category(value->spec().dtype) > Category(target->spec().dtype)) {
    PyErr_Format(PyExc_RuntimeError,
                 "result type %s can't be cast to the desired output type %s",
                 std::string(DTypeName(value->spec().dtype)).c_str(),
                 std::string(DTypeName(target->spec().dtype)).c_str());
    return false;
  }
  if (GradEnabled() && (value->requires_grad || target->requires_grad)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "functions with out=... arguments don't support automatic "
                    "differentiation, but one of the arguments requires grad.");
    return false;
  }
  if (value->spec().shape == target->spec().shape) {
    const Tensor inputs[2] = {target, value};
    Tensor written;
    return Apply(Attrs(&SchemaOf(OpId::copy)), inputs, true,
                 absl::MakeSpan(&written, 1));
  }
  const Tensor converted = value->spec().dtype == target->spec().dtype
                               ? value
                               : ApplyTo(value, target->spec().dtype);
  if (!converted) return false;
  reinterpret_cast<PyTensor*>(out)->tensor = converted;
  return true;
}

// The result, or `out` with it inside.
PyObject* ReturnOut(PyObject* out, PyRef result) {
  if (!PyTuple_Check(result.get())) {
    if (!StoreOneOut(out, result.get())) return nullptr;
  } else {
    const Py_ssize_t count = PyTuple_Size(result.get());
    if (!PyTuple_Check(out) || PyTuple_Size(out) != count) {
      PyErr_Format(PyExc_TypeError, "argument 'out' must be a tuple of %zd",
                   count);
      return nullptr;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!StoreOneOut(PyTuple_GetItem(out, i),
                       PyTuple_GetItem(result.get(), i))) {
        return nullptr;
      }
    }
  }
  Py_INCREF(out);
  return out;
}

bool IsRowMajor(const Tensor& tensor) {
  return tensor->pending() || tensor->spec().contiguous();
}

// A clone lies as its tensor does, as in PyTorch. The op of that name is in
// row-major order, what reshape() and contiguous() want.
PyObject* CloneInOrder(const Tensor& tensor) {
  const Tensor copy = ApplyTo(tensor, tensor->spec().dtype);
  if (!copy) return nullptr;
  if (!copy->is_leaf && copy->node) {
    copy->session()->ShowAs(copy, "CloneBackward0", {&tensor, 1});
  }
  return WrapTensor(copy);
}

PyObject* CallPlain(const Binding& binding, bool inplace, PyObject* self,
                    PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                    bool* ran) {
  const OpSchema& schema = *binding.schema;
  Arguments arguments;
  CreationOptions options;
  if (!arguments.Bind(binding, inplace, self, args, nargs, kwnames, &options)) {
    return nullptr;
  }
  Attrs attrs(&schema);
  Inputs inputs;
  // The suffixed name matters in messages only.
  if (!Convert(binding, schema.name.c_str(), arguments, &attrs, &inputs)) {
    return nullptr;
  }
  if (inputs.empty()) attrs.set_device(options.device);
  if (inplace && schema.num_lists == 0 && !IsTensor(arguments[0])) {
    RaiseArgumentType(PublicName(schema, true).c_str(), schema.params[0],
                      arguments[0]);
    return nullptr;
  }
  *ran = true;
  const ScopedOperands scoped(arguments.values());
  if (ABSL_PREDICT_FALSE(schema.id == OpId::clone) && !IsRowMajor(inputs[0])) {
    return CloneInOrder(inputs[0]);
  }
  PyRef result(
      Call(attrs, inputs, inplace, arguments[0], options.random.get()));
  if (result && options.out != nullptr) {
    return ReturnOut(options.out, std::move(result));
  }
  if (result && options.requires_grad) {
    const Tensor& tensor = TensorOf(result.get());
    const absl::Status status =
        tensor->session()->SetRequiresGrad(tensor, true);
    if (!status.ok()) return RaiseStatus(status);
  }
  return result.release();
}

}  // namespace

bool InitOpFunctions() {
  for (const OpSchema& schema : AllOps()) {
    Binding& binding = g_bindings[static_cast<size_t>(schema.id)];
    binding.schema = &schema;
    if (schema.params.size() > static_cast<size_t>(kMaxParams)) {
      PyErr_Format(PyExc_SystemError, "%s has too many parameters",
                   schema.name.c_str());
      return false;
    }
    for (const OpParam& param : schema.params) {
      PyObject* name = PyUnicode_InternFromString(param.name.c_str());
      if (name == nullptr) return false;
      binding.names.push_back(name);
      if (!param.keyword_only) ++binding.positional;
    }
    if (binding.positional == 0) continue;
    const OpParam& last =
        schema.params[static_cast<size_t>(binding.positional - 1)];
    if (last.kind == ParamKind::kInts && !last.has_default && !last.nullable &&
        last.repeat == 0) {
      binding.varargs = binding.positional - 1;
    }
  }
  return true;
}

PyObject* StoreOut(PyObject*, PyObject* args) {
  PyObject *out = nullptr, *result = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &out, &result)) return nullptr;
  return ReturnOut(out, PyRef::Borrowed(result));
}

namespace {

// Whether the arguments that do not fit the row may fit its overload.
bool MayOverload(const Binding& binding, bool inplace,
                 const OverridableCall& call) {
  if (binding.overload == nullptr || g_in_overload == binding.schema->id) {
    return false;
  }
  // Overloads may rely on the one type that all forms have in common.
  PyObject* first = call.self != nullptr ? call.self
                    : call.nargs > 0     ? call.args[0]
                                         : nullptr;
  return first == nullptr || IsTensor(first) || IsSparse(first) ||
         (!inplace && binding.schema->params[0].kind != ParamKind::kTensor);
}

// What else may take arguments that do not fit the row, whose error is set.
PyObject* CallOtherwise(const Binding& binding, bool inplace,
                        const OverridableCall& call) {
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyObject* result = nullptr;
  bool taken = TakenOver(call, &result);
  if (!taken && MayOverload(binding, inplace, call)) {
    result = CallOverload(binding, inplace, call);
    taken = result != nullptr || !PyErr_ExceptionMatches(PyExc_TypeError);
  }
  if (!taken) {
    // The arguments fit nothing: the row's message names the public function.
    PyErr_Restore(type, error, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
  return result;
}

}  // namespace

PyObject* CallOp(OpId id, bool inplace, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames) {
  const Binding& binding = g_bindings[static_cast<size_t>(id)];
  const auto call = [&]() -> OverridableCall {
    return {self != nullptr,
            PublicName(*binding.schema, inplace),
            self,
            args,
            nargs,
            kwnames};
  };
  PyObject* result = nullptr;
  if (ABSL_PREDICT_FALSE(g_overrides) && TakenOver(call(), &result)) {
    return result;
  }
  bool ran = false;
  result = CallPlain(binding, inplace, self, args, nargs, kwnames, &ran);
  if (result != nullptr || ran || !PyErr_ExceptionMatches(PyExc_TypeError)) {
    return result;
  }
  return CallOtherwise(binding, inplace, call());
}

PyObject* SetOverload(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject* callable = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &name, &callable)) return nullptr;
  const OpSchema* schema = FindOp(name);
  if (schema == nullptr) {
    PyErr_Format(PyExc_ValueError, "there is no op %s", name);
    return nullptr;
  }
  Binding& binding = g_bindings[static_cast<size_t>(schema->id)];
  PyRef old(binding.overload);
  Py_INCREF(callable);
  binding.overload = callable;
  Py_RETURN_NONE;
}

}  // namespace holdfast::python
