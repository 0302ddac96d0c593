# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""OpInfos that the device does not pass, by kind of run, each with the reason in one
sentence. One that passes, all its samples, fails the run: take it off."""

FAILURES = {
    "float32": {},
    "bfloat16": {},
    "int64": {},
    "grad": {},
    "gradgrad": {},
    "errors": {},
}
