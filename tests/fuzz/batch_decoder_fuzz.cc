// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a batch: the decoder gives what protobuf's parser gives. One
// decoder takes them all, so that what an input leaves behind is tested too.
#include <cstdint>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "server/transport/batch_decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using holdfast::v1::Batch;
  static const google::protobuf::LogSilencer silence;
  (void)silence;
  static auto* const decoder = new holdfast::BatchDecoder;
  const char* data = reinterpret_cast<const char*>(bytes);
  const Batch* decoded = decoder->Decode(data, size);
  Batch expected;
  const bool good = expected.ParseFromArray(data, static_cast<int>(size));
  if (good != (decoded != nullptr)) __builtin_trap();
  if (good && decoded->SerializeAsString() != expected.SerializeAsString()) {
    __builtin_trap();
  }
  return 0;
}
