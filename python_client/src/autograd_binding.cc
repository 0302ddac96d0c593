// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/autograd_binding.h"

#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/inference_mode.h"
#include "client/session.h"
#include "client/shown_name.h"
#include "python_client/src/call.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/source_lines.h"
#include "python_client/src/tensor_type.h"
#include "python_client/src/user_code_binding.h"

namespace holdfast::python {

using client::GraphEdges;
using client::GraphNode;
using client::Tensor;

namespace {

struct PyGradFn {
  PyObject_HEAD RefPtr<GraphNode> node;
  // Keeps the daemon's part of the graph: the tensor that was asked for its
  // grad_fn. Null: unknown.
  Tensor root;
};

PyTypeObject* g_grad_fn_type;
// autograd/saved_attributes.py's: (node, name) -> a value, (node, None) -> the
// names. The GIL guards it.
PyObject* g_attributes = nullptr;

const RefPtr<GraphNode>& NodeOf(PyObject* self) {
  return reinterpret_cast<PyGradFn*>(self)->node;
}
const Tensor& RootOf(PyObject* self) {
  return reinterpret_cast<PyGradFn*>(self)->root;
}

PyObject* GradFnName(PyObject* self, PyObject*) {
  return PyUnicode_FromString(client::ShownName(*NodeOf(self)).c_str());
}

// "torch::autograd::CopySlices" is a CopySlices.
std::string NodeTypeName(const GraphNode& node) {
  const std::string name = client::ShownName(node);
  const size_t scope = name.rfind(':');
  return scope == std::string::npos ? name : name.substr(scope + 1);
}

PyObject* GradFnRepr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>",
                              NodeTypeName(*NodeOf(self)).c_str(), self);
}

// Pairs (node, 0), as PyTorch's next_functions; a non-differentiable input is
// (None, 0).
PyObject* NextFunctions(PyObject* self, void*) {
  const GraphEdges inputs = client::ShownInputs(*NodeOf(self));
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    PyRef next(inputs[i] ? NewGradFn(inputs[i], RootOf(self))
                         : PyRef::Borrowed(Py_None).release());
    if (!next) return nullptr;
    PyObject* pair = Py_BuildValue("(Oi)", next.get(), 0);
    if (pair == nullptr) return nullptr;
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), pair);
  }
  return tuple.release();
}

void GradFnDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<PyGradFn*>(self)->node.~RefPtr<GraphNode>();
  reinterpret_cast<PyGradFn*>(self)->root.~Tensor();
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* NodeHook(PyObject*, PyObject*) {
  return RaiseStatus(absl::UnimplementedError(
      "holdfast has no hooks on grad_fn; use Tensor.register_hook, or "
      "nn.Module.register_full_backward_hook."));
}

// Two objects may stand for one node.
Py_hash_t GradFnHash(PyObject* self) {
  const auto hash = static_cast<Py_hash_t>(client::ShownHash(*NodeOf(self)));
  return hash == -1 ? -2 : hash;  // -1 is an error
}

PyObject* GradFnCompare(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) ||
      PyType_IsSubtype(Py_TYPE(other), g_grad_fn_type) == 0) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const bool same = client::SameShown(*NodeOf(self), *NodeOf(other));
  return PyBool_FromLong(same == (op == Py_EQ));
}

// Attributes by PyTorch's names (_saved_self, variable) are the package's.
PyObject* GradFnAttribute(PyObject* self, PyObject* name) {
  PyObject* known = PyObject_GenericGetAttr(self, name);
  if (known != nullptr || g_attributes == nullptr ||
      PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
    return known;
  }
  PyErr_Clear();
  return PyObject_CallFunctionObjArgs(g_attributes, self, name, nullptr);
}

PyObject* GradFnDir(PyObject* self, PyObject*) {
  PyRef type_names(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(self))));
  if (!type_names || g_attributes == nullptr) return type_names.release();
  PyRef names(
      PyObject_CallFunctionObjArgs(g_attributes, self, Py_None, nullptr));
  if (!names) return nullptr;
  return PySequence_InPlaceConcat(type_names.get(), names.get());
}

PyMethodDef g_grad_fn_methods[] = {
    {"__dir__", GradFnDir, METH_NOARGS, nullptr},
    {"name", GradFnName, METH_NOARGS, nullptr},
    {"register_hook", NodeHook, METH_O, nullptr},
    {"register_prehook", NodeHook, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_grad_fn_properties[] = {
    {"next_functions", NextFunctions, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot g_grad_fn_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(GradFnDealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(GradFnRepr)},
    {Py_tp_getattro, reinterpret_cast<void*>(GradFnAttribute)},
    {Py_tp_hash, reinterpret_cast<void*>(GradFnHash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(GradFnCompare)},
    {Py_tp_methods, g_grad_fn_methods},
    {Py_tp_getset, g_grad_fn_properties},
    {0, nullptr},
};
PyType_Spec g_grad_fn_spec = {"holdfast.autograd.Node", sizeof(PyGradFn), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              g_grad_fn_slots};

// The subtype that is called as the node: programs print type(x).__name__. One
// for each op that was asked about; they live as long as the process, and the
// GIL guards them.
PyTypeObject* GradFnType(const std::string& name) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  const auto [place, inserted] =
      types->try_emplace("holdfast.autograd." + name, nullptr);
  if (place->second == nullptr) {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(GradFnDealloc)}, {0, nullptr}};
    PyType_Spec spec = {place->first.c_str(), sizeof(PyGradFn), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    place->second = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(
        &spec, reinterpret_cast<PyObject*>(g_grad_fn_type)));
  }
  return place->second;
}

// A tuple of tensors (or None where allowed) as the package passes it.
bool AsTensors(PyObject* tuple, bool allow_none, std::vector<Tensor>* out) {
  const Py_ssize_t size = PyTuple_Size(tuple);
  if (size < 0) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    if (IsTensor(item)) {
      out->push_back(TensorOf(item));
    } else if (allow_none && item == Py_None) {
      out->emplace_back();
    } else {
      PyErr_SetString(PyExc_TypeError, "expected a tuple of Tensors");
      return false;
    }
  }
  return true;
}

}  // namespace

bool InitAutograd() {
  g_grad_fn_type =
      reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_grad_fn_spec));
  return g_grad_fn_type != nullptr;
}

bool SetRequiresGradOf(PyObject* object, bool value) {
  const Tensor& tensor = TensorOf(object);
  if (tensor->requires_grad == value) return true;
  if (!tensor->is_leaf) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you "
        "want to use a computed variable in a subgraph that doesn't require "
        "differentiation use var_no_grad = var.detach().");
    return false;
  }
  if (value && !IsDifferentiable(tensor->spec().dtype)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "only Tensors of floating point dtype can require "
                    "gradients");
    return false;
  }
  const absl::Status status = tensor->session()->SetRequiresGrad(tensor, value);
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

PyObject* NewGradFn(RefPtr<GraphNode> node, Tensor root) {
  // Of a function of the user's, the context is the node, as in PyTorch.
  if (node->function) {
    PyObject* context = ObjectOf(*node->function);
    if (context != nullptr) return PyRef::Borrowed(context).release();
  }
  PyTypeObject* type = GradFnType(NodeTypeName(*node));
  if (type == nullptr) return nullptr;
  PyGradFn* object = PyObject_New(PyGradFn, type);
  if (object == nullptr) return nullptr;
  new (&object->node) RefPtr<GraphNode>(std::move(node));
  new (&object->root) Tensor(std::move(root));
  return reinterpret_cast<PyObject*>(object);
}

PyObject* SetNodeAttributes(PyObject*, PyObject* hook) {
  PyRef old(g_attributes);
  g_attributes = PyRef::Borrowed(hook).release();
  Py_RETURN_NONE;
}

bool IsGradFn(PyObject* object) {
  if (PyType_IsSubtype(Py_TYPE(object), g_grad_fn_type) != 0) return true;
  PyErr_SetString(PyExc_TypeError, "expected a grad_fn");
  return false;
}

PyObject* SavedOf(PyObject*, PyObject* self) {
  if (!IsGradFn(self)) return nullptr;
  const GraphNode& node = *NodeOf(self);
  if (node.shown || node.op == OpId::kCount || node.op_sequence == 0 ||
      !RootOf(self)) {
    Py_RETURN_NONE;  // no op of the daemon's
  }
  absl::StatusOr<client::SavedTensors> saved;
  {
    ScopedGilRelease unlocked;
    saved = RootOf(self)->session()->SavedOf(RootOf(self), node, Interrupted);
  }
  if (!saved.ok()) return RaiseStatus(saved.status());
  PyRef list(PyList_New(0));
  for (client::SavedTensor& item : saved->tensors) {
    PyRef tensor(WrapTensor(std::move(item.tensor)));
    if (!list || !tensor) return nullptr;
    PyRef entry(Py_BuildValue("(sOK)", item.parameter.c_str(), tensor.get(),
                              static_cast<unsigned long long>(item.leaf)));
    if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
  }
  if (!list) return nullptr;
  return Py_BuildValue("(ssO)", GetOp(node.op).name.c_str(),
                       saved->attributes.c_str(), list.get());
}

PyObject* LeafOf(PyObject*, PyObject* self) {
  if (!IsGradFn(self)) return nullptr;
  const GraphNode& node = *NodeOf(self);
  return PyLong_FromVoidPtr(node.is_leaf() ? node.tensor : nullptr);
}

PyObject* IdentityOf(PyObject*, PyObject* object) {
  if (!IsTensor(object)) {
    PyErr_SetString(PyExc_TypeError, "identity_of() takes a Tensor");
    return nullptr;
  }
  return PyLong_FromVoidPtr(TensorOf(object).get());
}

// (result, name, *inputs) -> result
PyObject* ShowAs(PyObject*, PyObject* const* args, Py_ssize_t count,
                 PyObject*) {
  if (count < 2 || !IsTensor(args[0]) || !PyUnicode_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "show_as takes a Tensor, a name, inputs");
    return nullptr;
  }
  const Tensor& result = TensorOf(args[0]);
  if (!result->is_leaf && result->node) {
    // A name stays where it is: each is kept once, as long as the process. The
    // GIL guards the set.
    static auto* names = new std::set<std::string>;
    const char* text = PyUnicode_AsUTF8AndSize(args[1], nullptr);
    if (text == nullptr) return nullptr;
    absl::InlinedVector<Tensor, 4> inputs;
    for (Py_ssize_t i = 2; i < count; ++i) {
      if (IsTensor(args[i])) inputs.push_back(TensorOf(args[i]));
    }
    result->session()->ShowAs(result, names->insert(text).first->c_str(),
                              inputs);
  }
  return PyRef::Borrowed(args[0]).release();
}

PyObject* IsGradEnabled(PyObject*, PyObject*) {
  return PyBool_FromLong(GradEnabled());
}

PyObject* SetGradMode(PyObject*, PyObject* enabled) {
  const int truth = PyObject_IsTrue(enabled);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(SetGradEnabled(truth != 0));
}

PyObject* IsInferenceMode(PyObject*, PyObject*) {
  return PyBool_FromLong(client::InferenceMode());
}

PyObject* SetInferenceMode(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(client::SetInferenceMode(truth != 0));
}

// (roots, gradients or None each, inputs, retain_graph, create_graph,
// detect_anomaly)
PyObject* Backward(PyObject*, PyObject* args) {
  PyObject *roots_tuple, *gradients_tuple, *inputs_tuple;
  int retain = 0;
  int create = 0;
  int anomaly = 0;
  if (!PyArg_ParseTuple(args, "O!O!O!ppp", &PyTuple_Type, &roots_tuple,
                        &PyTuple_Type, &gradients_tuple, &PyTuple_Type,
                        &inputs_tuple, &retain, &create, &anomaly)) {
    return nullptr;
  }
  const client::BackwardOptions options = {retain != 0, create != 0,
                                           anomaly != 0, Interrupted};
  std::vector<Tensor> roots;
  std::vector<Tensor> gradients;
  std::vector<Tensor> inputs;
  if (!AsTensors(roots_tuple, false, &roots) ||
      !AsTensors(gradients_tuple, true, &gradients) ||
      !AsTensors(inputs_tuple, false, &inputs)) {
    return nullptr;
  }
  if (roots.empty()) Py_RETURN_NONE;
  const std::shared_ptr<client::Session> session = roots[0]->session();
  absl::Status status;
  {
    ScopedGilRelease unlocked;  // user code may want it
    status = session->Backward(roots, gradients, inputs, options);
  }
  if (!status.ok()) return RaiseFromUserCode() ? nullptr : RaiseStatus(status);
  if (NoteEveryLine()) NoteSourceLine(session->last_op_sequence());
  Py_RETURN_NONE;
}

// (outputs, gradients, inputs, retain_graph, create_graph, detect_anomaly,
// allow_unused)
PyObject* Grad(PyObject*, PyObject* args) {
  PyObject *outputs_tuple, *gradients_tuple, *inputs_tuple;
  int retain = 0;
  int create = 0;
  int anomaly = 0;
  int unused = 0;
  if (!PyArg_ParseTuple(args, "O!O!O!pppp", &PyTuple_Type, &outputs_tuple,
                        &PyTuple_Type, &gradients_tuple, &PyTuple_Type,
                        &inputs_tuple, &retain, &create, &anomaly, &unused)) {
    return nullptr;
  }
  const client::BackwardOptions options = {retain != 0, create != 0,
                                           anomaly != 0, Interrupted};
  std::vector<Tensor> outputs;
  std::vector<Tensor> gradients;
  std::vector<Tensor> inputs;
  if (!AsTensors(outputs_tuple, false, &outputs) ||
      !AsTensors(gradients_tuple, true, &gradients) ||
      !AsTensors(inputs_tuple, false, &inputs)) {
    return nullptr;
  }
  if (outputs.empty() || inputs.empty()) return PyTuple_New(0);
  const std::shared_ptr<client::Session> session = outputs[0]->session();
  absl::StatusOr<std::vector<Tensor>> grads;
  {
    ScopedGilRelease unlocked;
    grads = session->Grad(outputs, gradients, inputs, options, unused != 0);
  }
  if (!grads.ok()) {
    return RaiseFromUserCode() ? nullptr : RaiseStatus(grads.status());
  }
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(grads->size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < grads->size(); ++i) {
    PyObject* item = (*grads)[i] ? WrapTensor(std::move((*grads)[i]))
                                 : PyRef::Borrowed(Py_None).release();
    if (item == nullptr) return nullptr;
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

// (outputs, inputs)
PyObject* DependsOnOthers(PyObject*, PyObject* args) {
  PyObject *outputs_tuple, *inputs_tuple;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &outputs_tuple,
                        &PyTuple_Type, &inputs_tuple)) {
    return nullptr;
  }
  std::vector<Tensor> outputs;
  std::vector<Tensor> inputs;
  if (!AsTensors(outputs_tuple, false, &outputs) ||
      !AsTensors(inputs_tuple, false, &inputs)) {
    return nullptr;
  }
  if (outputs.empty()) Py_RETURN_FALSE;
  return PyBool_FromLong(
      outputs[0]->session()->DependsOnOthers(outputs, inputs));
}

PyObject* RetainGrad(PyObject* self, PyObject*) {
  const Tensor& tensor = TensorOf(self);
  const absl::Status status = tensor->session()->RetainGrad(tensor);
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

}  // namespace holdfast::python
