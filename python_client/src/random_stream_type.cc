// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/random_stream_type.h"

#include <new>
#include <utility>

namespace holdfast::python {
namespace {

using client::RandomPlace;
using client::RandomStream;

struct PyRandomStream {
  PyObject_HEAD
      // Null: the session's own stream.
      std::shared_ptr<RandomStream>
          stream;
};

PyTypeObject* g_type;

std::shared_ptr<RandomStream>& StreamOf(PyObject* self) {
  return reinterpret_cast<PyRandomStream*>(self)->stream;
}

// A stream of its own, at seed 0.
PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
  auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = alloc(type, 0);
  if (self == nullptr) return nullptr;
  new (&StreamOf(self))
      std::shared_ptr<RandomStream>(std::make_shared<RandomStream>());
  return self;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  using Pointer = std::shared_ptr<RandomStream>;
  StreamOf(self).~Pointer();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* Place(PyObject* self, PyObject*) {
  if (StreamOf(self) == nullptr) Py_RETURN_NONE;
  const RandomPlace place = StreamOf(self)->place();
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(place.seed),
                       static_cast<unsigned long long>(place.offset));
}

PyObject* Move(PyObject* self, PyObject* args) {
  PyObject *seed = nullptr, *offset = nullptr;
  RandomPlace place;
  if (!PyArg_ParseTuple(args, "OO", &seed, &offset) ||
      !AsWord(seed, &place.seed) || !AsWord(offset, &place.offset)) {
    return nullptr;
  }
  if (StreamOf(self) == nullptr) {
    PyErr_SetString(PyExc_TypeError, "the session's own stream is not here");
    return nullptr;
  }
  StreamOf(self)->Move(place);
  Py_RETURN_NONE;
}

PyObject* StandForSession(PyObject* self, PyObject*) {
  StreamOf(self).reset();
  Py_RETURN_NONE;
}

PyMethodDef g_methods[] = {
    {"_place", Place, METH_NOARGS,
     "(seed, offset), or None for the session's own stream."},
    {"_move", Move, METH_VARARGS,
     "_move($self, seed, offset, /)\n--\n\nGoes on from there."},
    {"_stand_for_session", StandForSession, METH_NOARGS,
     "From now on the object names the session's own stream."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_methods, g_methods},
    {Py_tp_doc, const_cast<char*>("A stream of random numbers.")},
    {0, nullptr},
};
PyType_Spec g_spec = {"holdfast._C.RandomStream", sizeof(PyRandomStream), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, g_slots};

}  // namespace

bool AddRandomStreamType(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  return g_type != nullptr &&
         PyModule_AddObjectRef(module, "RandomStream",
                               reinterpret_cast<PyObject*>(g_type)) == 0;
}

bool AsRandomStream(PyObject* object, std::shared_ptr<RandomStream>* stream) {
  if (object == Py_None) {
    stream->reset();
    return true;
  }
  if (!PyObject_TypeCheck(object, g_type)) {
    PyRef type(PyObject_GetAttrString(
        reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
    if (type) {
      PyErr_Format(PyExc_TypeError,
                   "argument 'generator' must be a holdfast.Generator, not %U",
                   type.get());
    }
    return false;
  }
  *stream = StreamOf(object);
  return true;
}

bool AsWord(PyObject* object, uint64_t* word) {
  PyRef index(PyNumber_Index(object));
  if (!index) return false;
  *word = PyLong_AsUnsignedLongLongMask(index.get());
  return PyErr_Occurred() == nullptr;
}

}  // namespace holdfast::python
