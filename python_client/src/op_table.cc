// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The op table expanded into Python: a C function per row, with docstring and
// text signature made from the row.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "python_client/src/op_function.h"

namespace holdfast::python {
namespace {

template <OpId kId, bool kInplaceForm>
PyObject* Function(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                   PyObject* kwnames) {
  return CallOp(kId, kInplaceForm, nullptr, args, nargs, kwnames);
}

template <OpId kId, bool kInplaceForm>
PyObject* Method(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                 PyObject* kwnames) {
  return CallOp(kId, kInplaceForm, self, args, nargs, kwnames);
}

struct Thunks {
  FastKeywordFunction function, inplace_function, method, inplace_method;
};

template <OpId kId>
constexpr Thunks ThunksOf() {
  return {Function<kId, false>, Function<kId, true>, Method<kId, false>,
          Method<kId, true>};
}

template <size_t... kIds>
const Thunks& ThunksAt(OpId id, std::index_sequence<kIds...>) {
  static constexpr Thunks table[] = {ThunksOf<static_cast<OpId>(kIds)>()...};
  return table[static_cast<size_t>(id)];
}

const Thunks& ThunksFor(OpId id) {
  return ThunksAt(id, std::make_index_sequence<static_cast<size_t>(kNumOps)>());
}

std::string DefaultText(const OpParam& param) {
  // None's text is the same in Python.
  const AttrValue& value = param.default_value;
  if (std::holds_alternative<std::string>(value)) {
    return absl::StrCat("'", std::get<std::string>(value), "'");
  }
  return AttrToString(value);
}

// "add(input, other)\n--\n\nSum.", which CPython splits into
// __text_signature__ and __doc__. A method's first parameter is its self.
std::string DocString(const OpSchema& schema, const std::string& name,
                      bool inplace, bool method) {
  std::vector<std::string> params;
  bool keyword_only = false;
  for (size_t i = 0; i < schema.params.size(); ++i) {
    const OpParam& param = schema.params[i];
    if (method && i == 0) {
      params.push_back("$self");
      continue;
    }
    if (param.keyword_only && !keyword_only) {
      keyword_only = true;
      params.push_back("*");
    }
    params.push_back(param.has_default
                         ? absl::StrCat(param.name, "=", DefaultText(param))
                         : param.name);
  }
  for (std::string& extra : ExtraParameters(schema, inplace, method)) {
    if (!keyword_only) params.push_back("*");
    keyword_only = true;
    params.push_back(std::move(extra));
  }
  return absl::StrCat(name, "(", absl::StrJoin(params, ", "), ")\n--\n\n",
                      OpHelp(schema, inplace, method));
}

// Method tables point at their strings for ever.
const char* Immortal(std::string text) {
  return (new std::string(std::move(text)))->c_str();
}

void Append(const OpSchema& schema, bool inplace, bool method,
            std::vector<PyMethodDef>* methods) {
  const Thunks& thunks = ThunksFor(schema.id);
  const std::string name = inplace ? schema.name + "_" : schema.name;
  const FastKeywordFunction function =
      method ? (inplace ? thunks.inplace_method : thunks.method)
             : (inplace ? thunks.inplace_function : thunks.function);
  methods->push_back({Immortal(name), AsPyCFunction(function),
                      METH_FASTCALL | METH_KEYWORDS,
                      Immortal(DocString(schema, name, inplace, method))});
}

void AppendForms(const OpSchema& schema, bool method,
                 std::vector<PyMethodDef>* methods) {
  if (!schema.has(kInplaceOnly)) Append(schema, false, method, methods);
  if (schema.has(kInplace) || schema.has(kInplaceOnly)) {
    Append(schema, true, method, methods);
  }
}

constexpr std::pair<OpFlags, const char*> kFlagNames[] = {
    {kElementwise, "elementwise"},
    {kReduce, "reduce"},
    {kView, "view"},
    {kInplace, "inplace"},
    {kInplaceOnly, "inplace_only"},
    {kRandom, "random"},
    {kNoGrad, "no_grad"},
    {kChecksData, "checks_data"},
    {kMutates, "mutates"},
    {kDataShape, "data_shape"},
    {kInternal, "internal"},
    {kLoadsOnce, "loads_once"},
    {kComplex, "complex"},
    {kAnyDType, "any_dtype"},
    {kReadsRandomState, "reads_random_state"},
    {kDeviceSized, "device_sized"},
};

PyObject* FlagList(const OpSchema& schema) {
  PyRef list(PyList_New(0));
  if (!list) return nullptr;
  for (const auto& [flag, name] : kFlagNames) {
    if (!schema.has(flag)) continue;
    PyRef text(PyUnicode_FromString(name));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace

void AppendOpMethods(std::vector<PyMethodDef>* methods) {
  for (const OpSchema& schema : AllOps()) {
    if (schema.has(kInternal) || schema.params.empty()) continue;
    if (schema.params[0].name != "input") continue;
    AppendForms(schema, true, methods);
  }
}

bool AddOpsModule(PyObject* module) {
  static auto* functions = new std::vector<PyMethodDef>;
  for (const OpSchema& schema : AllOps()) {
    AppendForms(schema, false, functions);
  }
  functions->push_back({nullptr, nullptr, 0, nullptr});
  PyRef ops(PyModule_New("holdfast._C.ops"));
  if (!ops || PyModule_AddFunctions(ops.get(), functions->data()) < 0) {
    return false;
  }
  return PyModule_AddObjectRef(module, "ops", ops.get()) == 0;
}

PyObject* Schema(PyObject*, PyObject*) {
  PyRef list(PyList_New(0));
  if (!list) return nullptr;
  for (const OpSchema& schema : AllOps()) {
    PyRef flags(FlagList(schema));
    if (!flags) return nullptr;
    PyRef row(Py_BuildValue(
        "{s:s,s:s,s:s,s:O,s:i,s:O,s:O,s:O}", "name", schema.name.c_str(),
        "signature", schema.signature.c_str(), "doc", schema.doc.c_str(),
        "flags", flags.get(), "since", schema.since, "differentiable",
        schema.has(kNoGrad) ? Py_False : Py_True, "inplace",
        schema.has(kInplace) || schema.has(kInplaceOnly) ? Py_True : Py_False,
        "public", schema.has(kInternal) ? Py_False : Py_True));
    if (!row || PyList_Append(list.get(), row.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace holdfast::python
