// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a client says and learns of named tensors.
#ifndef HOLDFAST_CLIENT_PUBLISHED_H_
#define HOLDFAST_CLIENT_PUBLISHED_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/tensor.h"

namespace holdfast::client {

struct PublishOptions {
  bool durable = false;          // return when it is on disk
  bool writable = false;         // the tensors themselves, not copies
  bool readable_by_all = false;  // every user
  std::vector<std::string> readers;
  std::string structure;  // the language layer's, given back by Lookup
};

// One version of a name.
struct Published {
  std::string name;
  std::string owner;
  uint64_t version = 0;
  bool durable = false;
  bool writable = false;
  bool saved = false;  // this version is on disk
  bool readable_by_all = false;
  std::vector<std::string> readers;  // known to the owner
  uint64_t tensor_count = 0;
  uint64_t bytes = 0;  // of memory
  double time = 0;     // of publishing, seconds since 1970
};

struct FoundTensor {
  std::string key;
  Tensor tensor;
  bool requires_grad = false;  // as it was published
};

struct Found {
  Published published;
  std::string structure;
  std::vector<FoundTensor> tensors;
};

// What an op's node keeps for backward (wire::SavedOf).
struct SavedTensor {
  std::string parameter;
  Tensor tensor;  // an alias of what was saved, without its history
  // The leaf that it is, to be compared and not looked at; 0: no leaf.
  uintptr_t leaf = 0;
};
struct SavedTensors {
  std::vector<SavedTensor> tensors;
  std::string attributes;  // "dim=[1]\n", ...
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_PUBLISHED_H_
