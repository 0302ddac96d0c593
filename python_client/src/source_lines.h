// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which line of the user's program submitted an op. Execution errors arrive
// later, at a read; this is how they still name the line that caused them.
// Kept in a bounded ring for the ops that can fail on data and for recorded
// ones, whose gradient may fail; for every op with HOLDFAST_SOURCE_LINES=1.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_SOURCE_LINES_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_SOURCE_LINES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "python_client/src/python.h"

namespace holdfast::python {

struct SourceLine {
  std::string filename;
  int number = 0;
  // What the message says of the op, and what it is to say: see Reword.
  std::vector<std::pair<std::string, std::string>> wording;
};

// Reads HOLDFAST_SOURCE_LINES, and where the package lies: frames of its own
// files are not the user's.
void InitSourceLines();
bool NoteEveryLine();

// (callable or None): called with the number of every op, for anomaly mode.
PyObject* SetNoteOps(PyObject* module, PyObject* callable);

// Remembers the caller's line for op number `sequence`. Never fails.
void NoteSourceLine(uint64_t sequence);
bool FindSourceLine(uint64_t sequence, SourceLine* line);
// A line in a reader's words (holdfast.errors.place): "train.py:12", in a
// notebook "Cell In [7], line 2: y = a[i]". Never fails.
std::string PlaceText(const std::string& filename, int number);
// PlaceText of the caller's line; "" where there is none. Never fails.
std::string CallersLine();

// (result, ((old, new), ...)) -> result, of the op that was submitted last: if
// it fails, its message has `new` for each `old`. For functions that are made
// of another op, which the user has not called.
PyObject* Reword(PyObject* module, PyObject* args);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_SOURCE_LINES_H_
