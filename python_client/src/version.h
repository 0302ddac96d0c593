// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the client tells the daemon about itself.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_VERSION_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_VERSION_H_

namespace holdfast::python {

// Same number as holdfast/version.py; a test compares them.
inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kClientName[] = "holdfast-python 0.1.0";

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_VERSION_H_
