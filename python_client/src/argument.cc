// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/argument.h"

#include <string>

#include "python_client/src/dtype_type.h"
#include "python_client/src/read.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {
namespace {

constexpr Py_ssize_t kMaxListLength = 1 << 20;

Converted IntFromLong(PyObject* object, int64_t* value) {
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) {
    PyErr_SetString(PyExc_OverflowError,
                    "Python int does not fit into 64 bits");
    return Converted::kError;
  }
  return *value == -1 && PyErr_Occurred() != nullptr ? Converted::kError
                                                     : Converted::kYes;
}

// numpy.bool_ claims to be an index and a float, and warns when taken as one.
bool IsNumpyBool(PyObject* object) {
  PyRef name(PyObject_GetAttrString(
      reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  const char* text =
      name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  return std::string(text) == "bool_" || std::string(text) == "bool";
}

// Scalars of other libraries. Arrays can be numbers too (`__float__` of one
// element); they are told apart by being sequences.
Converted ForeignNumber(PyObject* object, AttrValue* value) {
  if (PySequence_Check(object) || PyUnicode_Check(object)) {
    return Converted::kNo;
  }
  const bool is_index = PyIndex_Check(object) != 0;
  if (!is_index && PyType_GetSlot(Py_TYPE(object), Py_nb_float) == nullptr) {
    return Converted::kNo;
  }
  if (IsNumpyBool(object)) {
    const int truth = PyObject_IsTrue(object);
    if (truth < 0) return Converted::kError;
    *value = truth != 0;
    return Converted::kYes;
  }
  if (is_index) {
    PyRef index(PyNumber_Index(object));
    int64_t integer = 0;
    if (!index) return Converted::kError;
    const Converted result = IntFromLong(index.get(), &integer);
    if (result == Converted::kYes) *value = integer;
    return result;
  }
  const double number = PyFloat_AsDouble(object);
  if (number == -1.0 && PyErr_Occurred() != nullptr) return Converted::kError;
  *value = number;
  return Converted::kYes;
}

// Attributes are values, so a tensor given as one is read (and waited for).
Converted ReadScalar(PyObject* object, AttrValue* value) {
  const client::Tensor& tensor = TensorOf(object);
  if (!Settle(tensor)) return Converted::kError;
  if (tensor->spec().numel() != 1) return Converted::kNo;
  PyRef item(ReadItem(tensor));
  if (!item) return Converted::kError;
  return AsNumber(item.get(), value);
}

Converted AsBool(PyObject* object, bool* value) {
  if (!PyBool_Check(object) && !IsNumpyBool(object)) return Converted::kNo;
  const int truth = PyObject_IsTrue(object);
  *value = truth > 0;
  return truth < 0 ? Converted::kError : Converted::kYes;
}

const char* KindName(const OpParam& param) {
  switch (param.kind) {
    case ParamKind::kTensor:
    case ParamKind::kOptTensor:
      return "Tensor";
    case ParamKind::kTensorList:
      return "tuple of Tensors";
    case ParamKind::kOperand:
    case ParamKind::kOptOperand:
      return "Tensor or number";
    case ParamKind::kInt:
      return "int";
    case ParamKind::kInts:
      return "tuple of ints";
    case ParamKind::kFloat:
      return "float";
    case ParamKind::kBool:
      return "bool";
    case ParamKind::kScalar:
      return "number";
    case ParamKind::kStr:
      return "str";
    case ParamKind::kDType:
      return "holdfast.dtype";
  }
  return "something else";
}

template <typename T>
Converted Store(Converted result, T typed, AttrValue* value) {
  if (result == Converted::kYes) *value = std::move(typed);
  return result;
}

Converted ToAttrOfKind(const OpParam& param, PyObject* object,
                       AttrValue* value) {
  switch (param.kind) {
    case ParamKind::kInt: {
      int64_t integer = 0;
      const Converted result = AsInt(object, &integer);
      return Store(result, integer, value);
    }
    case ParamKind::kInts: {
      Dims ints;
      const Converted result = AsInts(object, param.repeat, &ints);
      return Store(result, std::move(ints), value);
    }
    case ParamKind::kBool: {
      bool truth = false;
      const Converted result = AsBool(object, &truth);
      return Store(result, truth, value);
    }
    case ParamKind::kFloat:
    case ParamKind::kScalar:
    case ParamKind::kOperand:
    case ParamKind::kOptOperand: {
      // A bound (`Scalar?`) that requires gradients is for the overload, which
      // keeps it in the graph.
      if (param.nullable && IsTensor(object) &&
          TensorOf(object)->requires_grad) {
        return Converted::kNo;
      }
      const Converted result = IsTensor(object) ? ReadScalar(object, value)
                                                : AsNumber(object, value);
      if (result == Converted::kYes && param.kind == ParamKind::kFloat) {
        *value = AttrAsDouble(*value);
      }
      return result;
    }
    case ParamKind::kStr: {
      if (!PyUnicode_Check(object)) return Converted::kNo;
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(object, &size);
      if (text == nullptr) return Converted::kError;
      *value = std::string(text, static_cast<size_t>(size));
      return Converted::kYes;
    }
    case ParamKind::kDType: {
      DType dtype;
      if (!AsDType(object, &dtype)) return Converted::kNo;
      *value = dtype;
      return Converted::kYes;
    }
    case ParamKind::kTensor:
    case ParamKind::kOptTensor:
    case ParamKind::kTensorList:
      break;
  }
  return Converted::kNo;
}

}  // namespace

Converted AsNumber(PyObject* object, AttrValue* value) {
  if (PyFloat_Check(object)) {
    *value = PyFloat_AsDouble(object);
    return Converted::kYes;
  }
  if (PyBool_Check(object)) {
    *value = object == Py_True;
    return Converted::kYes;
  }
  if (PyLong_Check(object)) {
    int64_t integer = 0;
    const Converted result = IntFromLong(object, &integer);
    return Store(result, integer, value);
  }
  return ForeignNumber(object, value);
}

Converted AsInt(PyObject* object, int64_t* value) {
  if (PyLong_Check(object)) return IntFromLong(object, value);
  if (IsTensor(object)) {
    if (!Settle(TensorOf(object))) return Converted::kError;
    const TensorSpec& spec = TensorOf(object)->spec();
    if (spec.numel() != 1 || !IsIntegral(spec.dtype)) return Converted::kNo;
    PyRef item(ReadItem(TensorOf(object)));
    return item ? IntFromLong(item.get(), value) : Converted::kError;
  }
  if (!PyIndex_Check(object) || PySequence_Check(object) ||
      IsNumpyBool(object)) {
    return Converted::kNo;
  }
  PyRef index(PyNumber_Index(object));
  return index ? IntFromLong(index.get(), value) : Converted::kError;
}

Converted AsInts(PyObject* object, int repeat, Dims* values) {
  int64_t one = 0;
  const bool is_tuple = PyTuple_Check(object);
  if (!is_tuple && !PyList_Check(object)) {
    const Converted result = AsInt(object, &one);
    if (result == Converted::kYes) {
      values->assign(static_cast<size_t>(repeat > 0 ? repeat : 1), one);
    }
    return result;
  }
  const Py_ssize_t size = is_tuple ? PyTuple_Size(object) : PyList_Size(object);
  if (size > kMaxListLength) {
    PyErr_Format(PyExc_ValueError,
                 "a list of ints must have at most %zd numbers. Got %zd.",
                 kMaxListLength, size);
    return Converted::kError;
  }
  values->clear();
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item =
        is_tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
    if (item == nullptr) return Converted::kError;
    const Converted result = AsInt(item, &one);
    if (result != Converted::kYes) return result;
    values->push_back(one);
  }
  if (repeat > 1 && size == 1) {
    values->assign(static_cast<size_t>(repeat), one);
  }
  return Converted::kYes;
}

bool ToAttr(const char* name, const OpParam& param, PyObject* object,
            AttrValue* value) {
  if (object == Py_None && param.nullable) {
    *value = std::monostate();
    return true;
  }
  const Converted result = ToAttrOfKind(param, object, value);
  if (result == Converted::kNo) RaiseArgumentType(name, param, object);
  return result == Converted::kYes;
}

namespace {

// Of a list of ints whose elements are not all ints; in PyTorch's words.
void RaiseElementType(const char* name, const OpParam& param, PyObject* list,
                      bool is_tuple) {
  const Py_ssize_t size = is_tuple ? PyTuple_Size(list) : PyList_Size(list);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item =
        is_tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
    int64_t value = 0;
    if (AsInt(item, &value) == Converted::kYes) continue;
    PyErr_Clear();
    PyRef type = TypeName(item);
    if (!type) return;
    PyErr_Format(PyExc_TypeError,
                 "%s(): argument '%s' must be tuple of ints, but found element "
                 "of type %U at pos %zd",
                 name, param.name.c_str(), type.get(), i + 1);
    return;
  }
  PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be tuple of ints",
               name, param.name.c_str());
}

}  // namespace

void RaiseArgumentType(const char* name, const OpParam& param,
                       PyObject* object) {
  const bool is_tuple = PyTuple_Check(object) != 0;
  if (param.kind == ParamKind::kInts && (is_tuple || PyList_Check(object))) {
    RaiseElementType(name, param, object, is_tuple);
    return;
  }
  PyRef type = TypeName(object);
  if (!type) return;
  PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %U", name,
               param.name.c_str(), KindName(param), type.get());
}

PyRef TypeName(PyObject* object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  PyRef name(PyObject_GetAttrString(type, "__qualname__"));
  PyRef module(name ? PyObject_GetAttrString(type, "__module__") : nullptr);
  if (!module) return PyRef();
  if (PyUnicode_CompareWithASCIIString(module.get(), "builtins") == 0) {
    return name;
  }
  return PyRef(PyUnicode_FromFormat("%S.%S", module.get(), name.get()));
}

}  // namespace holdfast::python
