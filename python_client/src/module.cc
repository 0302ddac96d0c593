// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The extension module holdfast._C.

#include <vector>

#include "client/interrupt.h"
#include "python_client/src/array_mirror.h"
#include "python_client/src/autograd_binding.h"
#include "python_client/src/buffer_type.h"
#include "python_client/src/client_api.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/dlpack_binding.h"
#include "python_client/src/dtype_type.h"
#include "python_client/src/errors.h"
#include "python_client/src/op_function.h"
#include "python_client/src/overrides.h"
#include "python_client/src/publish_binding.h"
#include "python_client/src/random_stream_type.h"
#include "python_client/src/read.h"
#include "python_client/src/saved_tensors_binding.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/sharing_binding.h"
#include "python_client/src/size_type.h"
#include "python_client/src/source_lines.h"
#include "python_client/src/tensor_factory.h"
#include "python_client/src/tensor_type.h"
#include "python_client/src/user_code_binding.h"
#include "python_client/src/version.h"

namespace holdfast::python {
namespace {

PyMethodDef* ModuleFunctions() {
  static auto* functions = new std::vector<PyMethodDef>{
      {"schema", Schema, METH_NOARGS, "The op table, a list of dicts."},
      {"set_overload", SetOverload, METH_VARARGS,
       "A Python function for calls that an op's signature cannot take."},
      {"set_default_dtype", SetDefaultDType, METH_O, nullptr},
      {"default_dtype", GetDefaultDType, METH_NOARGS, nullptr},
      {"set_shown_package", SetShownPackage, METH_O,
       "The package's name in what programs print: see `holdfast run`."},
      {"set_sparse_type", SetSparseType, METH_O,
       "The subclass of Tensor that ops refuse."},
      {"_set_torch_function_dispatch", SetDispatch, METH_O, nullptr},
      {"_set_torch_function_off", SetOverridesOff, METH_O, nullptr},
      {"_set_torch_function_modes", SetModes, METH_O, nullptr},
      {"_disabled_torch_function_impl", DisabledOverride, METH_VARARGS,
       "What a class has for __torch_function__ whose objects are plain "
       "tensors to ops."},
      {"store_out", StoreOut, METH_VARARGS,
       "store_out(out, result, /)\n--\n\n"
       "Writes a result, or a tuple of them, into the caller's; returns out."},
      {"mirror_of", MirrorOf, METH_O, nullptr},
      {"mirrored", Mirrored, METH_VARARGS, nullptr},
      {"show_as", AsPyCFunction(ShowAs), METH_FASTCALL | METH_KEYWORDS,
       "show_as(result, name, *inputs, /)\n--\n\n"
       "result; its grad_fn is shown as `name` of the inputs, where more ops "
       "than one made it."},
      {"reword", Reword, METH_VARARGS,
       "reword(result, pairs, /)\n--\n\n"
       "result; should the op that made it fail, its message has the second "
       "text of each pair for the first."},
      {"is_grad_enabled", IsGradEnabled, METH_NOARGS,
       "is_grad_enabled()\n--\n\nTrue if ops of this thread are recorded."},
      {"set_grad_mode", SetGradMode, METH_O, nullptr},
      {"is_inference_mode", IsInferenceMode, METH_NOARGS, nullptr},
      {"set_inference_mode", SetInferenceMode, METH_O, nullptr},
      {"backward", Backward, METH_VARARGS, nullptr},
      {"set_note_ops", SetNoteOps, METH_O, nullptr},
      {"record_function", RecordFunction, METH_VARARGS, nullptr},
      {"register_hook", RegisterHook, METH_VARARGS, nullptr},
      {"remove_hook", RemoveHook, METH_VARARGS, nullptr},
      {"set_saved_tensors_hooks", SetSavedTensorsHooks, METH_O, nullptr},
      {"share", Share, METH_VARARGS, nullptr},
      {"open_shared", OpenShared, METH_VARARGS, nullptr},
      {"publish", Publish, METH_VARARGS, nullptr},
      {"lookup", Lookup, METH_VARARGS, nullptr},
      {"unpublish", Unpublish, METH_VARARGS, nullptr},
      {"published", ListPublished, METH_NOARGS, nullptr},
      {"set_node_attributes", SetNodeAttributes, METH_O, nullptr},
      {"saved_of", SavedOf, METH_O,
       "saved_of(node, /)\n--\n\n"
       "(op, attributes, ((parameter, tensor, leaf), ...)) of a grad_fn."},
      {"leaf_of", LeafOf, METH_O,
       "leaf_of(node, /)\n--\n\nThe identity_of() a leaf's node; 0: gone."},
      {"identity_of", IdentityOf, METH_O,
       "identity_of(tensor, /)\n--\n\n"
       "A number that no other tensor has while this one lives."},
      {"restore_output", RestoreOutput, METH_VARARGS, nullptr},
      {"grad", Grad, METH_VARARGS, nullptr},
      {"depends_on_others", DependsOnOthers, METH_VARARGS, nullptr},
  };
  AppendSessionFunctions(functions);
  AppendFactoryFunctions(functions);
  AppendDlpackFunctions(functions);
  functions->push_back({nullptr, nullptr, 0, nullptr});
  return functions->data();
}

bool Fill(PyObject* module) {
  InitSourceLines();
  client::g_interrupt_pending = InterruptPending;
  return ImportErrorClasses() && InitOpFunctions() && InitAutograd() &&
         InitBufferType() && AddDTypes(module) && AddSizeType(module) &&
         AddSessionType(module) && AddRandomStreamType(module) &&
         AddTensorType(module) && AddOpsModule(module) &&
         PyModule_AddFunctions(module, ModuleFunctions()) == 0 &&
         InitOverrides(module) && AddClientApi(module) &&
         PyModule_AddStringConstant(module, "__version__", kVersion) == 0;
}

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "holdfast._C",
                        "Holdfast's client: tensors, ops, sessions.",
                        -1,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};

}  // namespace
}  // namespace holdfast::python

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&holdfast::python::g_module);
  if (module == nullptr) return nullptr;
  if (!holdfast::python::Fill(module)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
