// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// KeptTensors: what is left of a session when its clients are away, for the
// disk and back.
#ifndef HOLDFAST_SERVER_EXEC_KEPT_TENSORS_H_
#define HOLDFAST_SERVER_EXEC_KEPT_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "ops/ref_counted.h"
#include "ops/tensor_spec.h"
#include "server/exec/tensor.h"

namespace holdfast {

struct KeptTensors {
  struct Item {
    std::string name;
    TensorSpec spec;
    bool requires_grad = false;
    RefPtr<Storage> storage;
  };
  std::string session;  // its name
  std::string user;
  std::string client;  // the last one, for people
  std::vector<Item> items;
  PhiloxState random;
  uint64_t next_handle = 1;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_KEPT_TENSORS_H_
