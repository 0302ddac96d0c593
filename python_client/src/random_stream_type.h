// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// holdfast._C.RandomStream: what `generator=` of a random op takes. The class
// that programs use, holdfast.Generator, derives from it in Python.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_RANDOM_STREAM_TYPE_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_RANDOM_STREAM_TYPE_H_

#include <memory>

#include "client/random_stream.h"
#include "python_client/src/python.h"

namespace holdfast::python {

bool AddRandomStreamType(PyObject* module);

// The stream of a Python object: null for None and for an object that stands
// for the session's own. False with TypeError set for anything else. Shared,
// since a wait may let another thread drop the object.
bool AsRandomStream(PyObject* object,
                    std::shared_ptr<client::RandomStream>* stream);

// A 64-bit number out of any Python int: its low bits, so that negative seeds
// work. False with a Python error set.
bool AsWord(PyObject* object, uint64_t* word);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_RANDOM_STREAM_TYPE_H_
