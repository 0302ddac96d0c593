// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inference mode: memory made while a thread is in it never takes part in
// gradients. Thread-safety: the mode is the calling thread's own.
#ifndef HOLDFAST_CLIENT_INFERENCE_MODE_H_
#define HOLDFAST_CLIENT_INFERENCE_MODE_H_

namespace holdfast::client {

bool InferenceMode();
bool SetInferenceMode(bool on);  // returns what it was

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_INFERENCE_MODE_H_
