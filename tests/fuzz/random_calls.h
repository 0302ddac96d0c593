// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random programs as a client may send them: ops of the table on tensors of all
// kinds, with attributes that are mostly sensible and now and then absurd,
// in-place writes of views, and gradients of gradients. The same seed gives the
// same program.
// Thread-safety: none.
#ifndef HOLDFAST_TESTS_FUZZ_RANDOM_CALLS_H_
#define HOLDFAST_TESTS_FUZZ_RANDOM_CALLS_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/op_schema.h"
#include "proto/holdfast.pb.h"

namespace holdfast {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Next() { return engine_(); }
  // 0 .. n - 1; n > 0.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(high - low + 1));
  }
  bool Percent(int n) { return Below(100) < static_cast<uint64_t>(n); }
  template <typename C>
  const auto& Pick(const C& from) {
    return from[Below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Where commands go, and what they are answered.
class CommandTarget {
 public:
  virtual ~CommandTarget() = default;
  // False: the session has ended, and with it the program.
  virtual bool Apply(const v1::Command& command) = 0;
  // The latest read's; without spec where there is none.
  virtual const v1::ReadResult& last_read() const = 0;
};

// A tensor that the program knows of.
struct Known {
  uint64_t handle = 0;
  DType dtype = DType::kFloat32;
  Dims shape;
  bool leaf = false;  // that requires a gradient
};

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, CommandTarget* target)
      : random_(seed), target_(target) {}

  // Calls of `op`, and gradients through them.
  void RunFor(const OpSchema& op);
  // Everything is released. False: the session had ended.
  bool End();

  // Calls that were answered with tensors, and all of them.
  uint64_t accepted() const { return accepted_; }
  uint64_t calls() const { return calls_; }

 private:
  bool Send(const v1::Command& command);
  // Of one that inference may like: close to the program's own.
  Dims Shape();
  Dims ShapeFor(const OpSchema& op, const OpParam& param);
  DType AnyDType();
  // `first`: of all the call's tensors.
  DType DTypeFor(const OpParam& param, bool first);
  Known Put(DType dtype, const Dims& shape, bool leaf);
  // A call without tensors, or of one: the result if there is any.
  Known Call(OpId op, std::initializer_list<uint64_t> inputs,
             const std::vector<std::pair<const char*, AttrValue>>& attrs,
             bool record);
  // The same elements or some of them, seen otherwise.
  Known ViewOf(const Known& tensor);
  Known Tensor(const OpSchema& op, const OpParam& param, bool first);
  int64_t Integer(absl::string_view name);
  double Number();
  AttrValue Attribute(const OpSchema& op, const OpParam& param);
  // The outputs that came.
  std::vector<Known> CallOp(const OpSchema& op);
  // What the handle is; handle 0: it is none.
  Known Look(uint64_t handle);
  // Gradients of `roots` for the leaves so far.
  std::vector<Known> Backward(const std::vector<Known>& roots, bool create);

  Random random_;
  CommandTarget* const target_;
  bool ended_ = false;
  Dims base_;                      // what shapes are close to
  DType dtype_ = DType::kFloat32;  // of most of the call's tensors
  int64_t sizes_[26] = {};         // of recipes, by letter
  int64_t in_list_ = 1;            // tensors of each list of the call
  uint64_t next_handle_ = 1;
  uint64_t read_id_ = 0;
  uint64_t calls_ = 0, accepted_ = 0;
  std::vector<Known> pool_;
  std::vector<uint64_t> live_;  // handles to release
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_RANDOM_CALLS_H_
