// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/publish_binding.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/session.h"
#include "python_client/src/array_mirror.h"
#include "python_client/src/default_session.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Found;
using client::Published;
using client::Session;
using client::Tensor;

namespace {

// The default session, kept while the call waits. Null with an error set.
std::shared_ptr<Session> OpenedSession() {
  return DefaultSession() == nullptr ? nullptr : CurrentSession();
}

bool AsText(PyObject* object, std::string* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (data == nullptr) return false;
  text->assign(data, static_cast<size_t>(size));
  return true;
}

bool AsTexts(PyObject* tuple, std::vector<std::string>* texts) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    if (!AsText(PyTuple_GetItem(tuple, i), &texts->emplace_back())) {
      return false;
    }
  }
  return true;
}

PyObject* Text(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "replace");
}

PyObject* VersionTuple(const Published& version) {
  PyRef readers(PyTuple_New(static_cast<Py_ssize_t>(version.readers.size())));
  if (!readers) return nullptr;
  for (size_t i = 0; i < version.readers.size(); ++i) {
    PyObject* reader = Text(version.readers[i]);
    if (reader == nullptr ||
        PyTuple_SetItem(readers.get(), static_cast<Py_ssize_t>(i), reader) <
            0) {
      return nullptr;
    }
  }
  PyRef name(Text(version.name)), owner(Text(version.owner));
  if (!name || !owner) return nullptr;
  const auto flag = [](bool value) { return value ? Py_True : Py_False; };
  return Py_BuildValue("(OOKKKOOOdOO)", name.get(), owner.get(),
                       static_cast<unsigned long long>(version.version),
                       static_cast<unsigned long long>(version.tensor_count),
                       static_cast<unsigned long long>(version.bytes),
                       flag(version.durable), flag(version.writable),
                       flag(version.saved), version.time,
                       flag(version.readable_by_all), readers.get());
}

}  // namespace

PyObject* Publish(PyObject*, PyObject* args) {
  const char *name = nullptr, *structure = nullptr;
  Py_ssize_t name_size = 0, structure_size = 0;
  PyObject *keys = nullptr, *objects = nullptr, *readers = nullptr;
  int durable = 0, writable = 0, all = 0;
  if (!PyArg_ParseTuple(args, "s#O!O!y#pppO!", &name, &name_size, &PyTuple_Type,
                        &keys, &PyTuple_Type, &objects, &structure,
                        &structure_size, &durable, &writable, &all,
                        &PyTuple_Type, &readers)) {
    return nullptr;
  }
  client::PublishOptions options;
  options.durable = durable != 0;
  options.writable = writable != 0;
  options.readable_by_all = all != 0;
  options.structure.assign(structure, static_cast<size_t>(structure_size));
  std::vector<std::string> texts;
  if (!AsTexts(readers, &options.readers) || !AsTexts(keys, &texts)) {
    return nullptr;
  }
  if (PyTuple_Size(objects) != PyTuple_Size(keys)) {
    PyErr_SetString(PyExc_ValueError, "as many tensors as keys are expected");
    return nullptr;
  }
  const std::shared_ptr<Session> session = OpenedSession();
  if (session == nullptr) return nullptr;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (size_t i = 0; i < texts.size(); ++i) {
    PyObject* object = PyTuple_GetItem(objects, static_cast<Py_ssize_t>(i));
    if (!IsTensor(object)) {
      PyErr_SetString(PyExc_TypeError, "publish() takes tensors");
      return nullptr;
    }
    tensors.emplace_back(std::move(texts[i]), TensorOf(object));
    const Tensor& tensor = tensors.back().second;
    // An array that shows the tensor may have been written.
    if (IsMirrored(tensor) && !PullMirrors({&tensor, 1})) return nullptr;
  }
  const std::string text(name, static_cast<size_t>(name_size));
  absl::StatusOr<Published> version;
  {
    ScopedGilRelease unlocked;
    version = session->Publish(text, tensors, options, Interrupted);
  }
  if (!version.ok()) return RaiseStatus(version.status());
  return VersionTuple(*version);
}

PyObject* Lookup(PyObject*, PyObject* args) {
  const char *name = nullptr, *owner = nullptr;
  Py_ssize_t name_size = 0, owner_size = 0;
  unsigned long long number = 0;
  if (!PyArg_ParseTuple(args, "s#Ks#", &name, &name_size, &number, &owner,
                        &owner_size)) {
    return nullptr;
  }
  const std::shared_ptr<Session> session = OpenedSession();
  if (session == nullptr) return nullptr;
  const std::string text(name, static_cast<size_t>(name_size));
  const std::string user(owner, static_cast<size_t>(owner_size));
  absl::StatusOr<Found> found;
  {
    ScopedGilRelease unlocked;
    found = session->Lookup(text, number, user, Interrupted);
  }
  if (!found.ok()) return RaiseStatus(found.status());
  PyRef version(VersionTuple(found->published));
  PyRef list(PyList_New(0));
  if (!version || !list) return nullptr;
  for (client::FoundTensor& item : found->tensors) {
    PyRef key(Text(item.key)), tensor(WrapTensor(std::move(item.tensor)));
    if (!key || !tensor) return nullptr;
    PyRef entry(Py_BuildValue("(OOO)", key.get(), tensor.get(),
                              item.requires_grad ? Py_True : Py_False));
    if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
  }
  return Py_BuildValue("(Oy#O)", version.get(), found->structure.data(),
                       static_cast<Py_ssize_t>(found->structure.size()),
                       list.get());
}

PyObject* Unpublish(PyObject*, PyObject* args) {
  const char* name = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "s#", &name, &size)) return nullptr;
  const std::shared_ptr<Session> session = OpenedSession();
  if (session == nullptr) return nullptr;
  const std::string text(name, static_cast<size_t>(size));
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = session->Unpublish(text, Interrupted);
  }
  if (!status.ok()) return RaiseStatus(status);
  Py_RETURN_NONE;
}

PyObject* ListPublished(PyObject*, PyObject*) {
  const std::shared_ptr<Session> session = OpenedSession();
  if (session == nullptr) return nullptr;
  absl::StatusOr<std::vector<Published>> all;
  {
    ScopedGilRelease unlocked;
    all = session->ListPublished(Interrupted);
  }
  if (!all.ok()) return RaiseStatus(all.status());
  PyRef list(PyList_New(0));
  if (!list) return nullptr;
  for (const Published& version : *all) {
    PyRef tuple(VersionTuple(version));
    if (!tuple || PyList_Append(list.get(), tuple.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace holdfast::python
