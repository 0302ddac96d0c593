// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// WriteSteps: the places where writing state can be cut off or be held up. For
// tests, which let the process die at each of them, or the disk take its time;
// a running daemon counts, no more.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_STATE_WRITE_STEPS_H_
#define HOLDFAST_SERVER_STATE_WRITE_STEPS_H_

namespace holdfast {

// Call before each change of the disk. With HOLDFAST_TEST_DIE_AT_WRITE_STEP=n
// the n-th call, from 1, ends the process by SIGKILL. `what` is logged then.
// With HOLDFAST_TEST_HOLD_WRITE_STEPS=path it waits while that file is there.
void WriteStep(const char* what);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_STATE_WRITE_STEPS_H_
