// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/default_dtype.h"

#include "python_client/src/call.h"
#include "python_client/src/dtype_type.h"

namespace holdfast::python {

using client::Tensor;

DType g_default_float = kDefaultFloat;

namespace {

// The attribute slot of a parameter `dtype`, or -1.
int DTypeSlot(const OpSchema& schema) {
  for (const OpParam& param : schema.params) {
    if (param.kind == ParamKind::kDType) return param.attr_slot;
  }
  return -1;
}

// Whether the op would turn these inputs, none of which is a floating point
// number, into float32.
bool MakesFloats(const Attrs& attrs,
                 const absl::InlinedVector<Tensor, 4>& inputs) {
  absl::InlinedVector<const TensorSpec*, 4> specs;
  for (const Tensor& input : inputs) {
    specs.push_back(input ? &input->spec() : nullptr);
  }
  OutputSpecs outputs;
  if (!InferOp(attrs, specs, false, &outputs).ok()) return false;
  for (const OutputSpec& output : outputs) {
    if (output.spec.dtype == kDefaultFloat) return true;
  }
  return false;
}

}  // namespace

DType DefaultComplex() {
  return g_default_float == DType::kFloat64 ? DType::kComplex128
                                            : DType::kComplex64;
}

PyObject* SetDefaultDType(PyObject*, PyObject* object) {
  DType dtype;
  if (!AsDType(object, &dtype) || !IsFloat(dtype)) {
    PyErr_SetString(PyExc_TypeError,
                    "only floating-point types are supported as the default "
                    "type");
    return nullptr;
  }
  g_default_float = dtype;
  Py_RETURN_NONE;
}

PyObject* GetDefaultDType(PyObject*, PyObject*) {
  PyObject* dtype = DTypeObject(g_default_float);
  Py_INCREF(dtype);
  return dtype;
}

bool UseDefault(Attrs* attrs, absl::InlinedVector<Tensor, 4>* inputs,
                bool inplace) {
  const int slot = DTypeSlot(attrs->schema());
  if (inplace || (slot >= 0 && !IsNone(attrs->Get(slot)))) return true;
  bool all_bool = true;
  for (const Tensor& input : *inputs) {
    if (!input) continue;
    const DType dtype = input->spec().dtype;
    if (IsDifferentiable(dtype)) return true;
    all_bool = all_bool && dtype == DType::kBool;
  }
  if (!MakesFloats(*attrs, *inputs)) return true;
  if (slot >= 0) {
    attrs->Set(slot, g_default_float);
    return true;
  }
  for (Tensor& input : *inputs) {
    // A mask among numbers stays one.
    if (!input || (input->spec().dtype == DType::kBool && !all_bool)) continue;
    input = ApplyTo(input, g_default_float);
    if (!input) return false;
  }
  return true;
}

}  // namespace holdfast::python
