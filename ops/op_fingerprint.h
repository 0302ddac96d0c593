// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpFingerprint: what tells two op tables apart. FNV-1a, 64 bits, of names,
// signatures and flags in the table's order. Thread-safety: a plain value.
#ifndef HOLDFAST_OPS_OP_FINGERPRINT_H_
#define HOLDFAST_OPS_OP_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace holdfast {

class OpFingerprint {
 public:
  explicit OpFingerprint(size_t num_ops) { AddInt(num_ops); }

  void Add(absl::string_view name, absl::string_view signature,
           uint32_t flags) {
    AddText(name);
    AddText(signature);
    AddInt(flags);
  }
  uint64_t value() const { return hash_; }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  void AddInt(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      AddByte(static_cast<uint8_t>(value >> shift));
    }
  }
  // Lengths go in as well, so that text cannot move from one field to the next
  // unnoticed.
  void AddText(absl::string_view text) {
    AddInt(text.size());
    for (char c : text) AddByte(static_cast<uint8_t>(c));
  }

  uint64_t hash_ = 0xcbf29ce484222325;
};

// OpTableFingerprint() (ops/op_schema.h) for who has the rows alone: a device's
// library is compiled from them, without the table and its inference.
uint64_t OpRowsFingerprint();

}  // namespace holdfast

#endif  // HOLDFAST_OPS_OP_FINGERPRINT_H_
