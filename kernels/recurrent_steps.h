// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of rnn_layer and its gradient, for every device. Rows are packed:
// step t has the first sizes[t] samples of the batch, sorted by length; the
// state of a sample stays as it is when its rows are over.
// Thread-safety: plain values.
#ifndef HOLDFAST_KERNELS_RECURRENT_STEPS_H_
#define HOLDFAST_KERNELS_RECURRENT_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/attrs.h"
#include "ops/op_schema.h"
#include "ops/tensor_spec.h"

namespace holdfast {

enum class RecurrentMode { kTanh, kRelu, kLstm, kGru };

inline RecurrentMode ReadRecurrentMode(const Attrs& attrs) {
  const std::string& mode = attrs.Str("mode");
  return mode == "lstm"   ? RecurrentMode::kLstm
         : mode == "gru"  ? RecurrentMode::kGru
         : mode == "relu" ? RecurrentMode::kRelu
                          : RecurrentMode::kTanh;
}

// Values that the own kernels save of each row: the gates that the gradient
// needs, and the cells.
inline int64_t RecurrentGatesSaved(RecurrentMode mode, int64_t hidden) {
  const bool gated =
      mode == RecurrentMode::kLstm || mode == RecurrentMode::kGru;
  return gated ? 4 * hidden : 0;
}

// Elements of rnn_layer's `reserve` as the own kernels fill it: the gates of
// all rows, then an LSTM's cells. It is even; what a library fills is odd
// (kernels/cuda/recurrent.cc).
inline int64_t RecurrentReserve(RecurrentMode mode, int64_t rows,
                                int64_t hidden) {
  const int64_t cells = mode == RecurrentMode::kLstm ? hidden : 0;
  const int64_t n = rows * (RecurrentGatesSaved(mode, hidden) + cells);
  return n + n % 2;
}

// The same of an op's inputs.
inline int64_t RecurrentReserve(const Attrs& attrs, const TensorSpec& input,
                                const TensorSpec& h0) {
  const int64_t rows =
      input.rank() == 3 ? input.shape[0] * input.shape[1] : input.shape[0];
  return RecurrentReserve(ReadRecurrentMode(attrs), rows, h0.shape[1]);
}

// Bits of rnn_layer_backward's `wanted`.
inline constexpr int64_t kRnnInputGrad = 1, kRnnWeightGrads = 2;

// What the gradient says of a reserve that is not the layer's.
inline absl::Status CheckReserve(const Attrs& attrs, int64_t wanted,
                                 const TensorSpec& reserve) {
  if (reserve.numel() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("[", attrs.schema().name, "] reserve must have the ", wanted,
                   " elements that rnn_layer saves here with save=True. Got ",
                   reserve.ToString(), "."));
}

struct RecurrentSteps {
  RecurrentMode mode = RecurrentMode::kTanh;
  int64_t batch = 0, hidden = 0, gates = 1;
  bool reverse = false;
  std::vector<int64_t> sizes;   // samples of each step
  std::vector<int64_t> starts;  // first row of each step

  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
  int64_t width() const { return gates * hidden; }
  bool lstm() const { return mode == RecurrentMode::kLstm; }
  bool gru() const { return mode == RecurrentMode::kGru; }
  int64_t rows() const {
    return count() == 0 ? 0 : starts.back() + sizes.back();
  }
  // Gates that forward saves of each row.
  int64_t saved() const { return RecurrentGatesSaved(mode, hidden); }
  // The i-th step to compute, and the one whose state it starts from; -1: the
  // initial state.
  int64_t Step(int64_t i) const { return reverse ? count() - 1 - i : i; }
  int64_t Before(int64_t t) const {
    const int64_t before = reverse ? t + 1 : t - 1;
    return before < count() ? before : -1;
  }
  // The row of sample b there; -1: its initial state.
  int64_t RowBefore(int64_t t, int64_t b) const {
    const int64_t before = Before(t);
    return before < 0 || b >= sizes[before] ? -1 : starts[before] + b;
  }

  // Steps of each sample.
  std::vector<int32_t> Lengths() const {
    std::vector<int32_t> lengths(batch, 0);
    int64_t b = 0;  // samples from here on are over before step t + 1
    for (int64_t t = count() - 1; t >= 0; --t) {
      for (; b < sizes[t]; ++b) lengths[b] = static_cast<int32_t>(t + 1);
    }
    return lengths;
  }
  // For each row the one whose place it has when every sample's steps come in
  // the opposite order; which is its own inverse.
  std::vector<int64_t> TurnedRows() const {
    const std::vector<int32_t> lengths = Lengths();
    std::vector<int64_t> turned(rows());
    for (int64_t t = 0; t < count(); ++t) {
      for (int64_t b = 0; b < sizes[t]; ++b) {
        turned[starts[t] + b] = starts[lengths[b] - 1 - t] + b;
      }
    }
    return turned;
  }

  // `rows`: the input. `packed`: how many sizes there are, -1 where
  // every step has the whole batch. size(t) is called once for each t: sizes
  // come from a client.
  template <typename Size>
  absl::Status Read(const Attrs& attrs, const TensorSpec& rows,
                    const TensorSpec& h0, int64_t packed, Size size);
};

template <typename Size>
absl::Status RecurrentSteps::Read(const Attrs& attrs, const TensorSpec& rows,
                                  const TensorSpec& h0, int64_t packed,
                                  Size size_of) {
  mode = ReadRecurrentMode(attrs);
  gates = lstm() ? 4 : gru() ? 3 : 1;
  reverse = attrs.Bool("reverse");
  batch = h0.shape[0];
  hidden = h0.shape[1];
  const int64_t steps = packed < 0 ? rows.shape[0] : packed;
  int64_t row = 0, last = batch;
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t size = packed < 0 ? batch : size_of(t);
    if (packed >= 0 &&
        (size < 1 || size > last || size > rows.shape[0] - row)) {
      return absl::OutOfRangeError(absl::StrCat(
          "[", attrs.schema().name, "] batch_sizes must be in [1, ", last,
          "] and add up to ", rows.shape[0], " rows. Got ", size, " at step ",
          t, "."));
    }
    sizes.push_back(size);
    starts.push_back(row);
    row += size;
    last = size;
  }
  if (packed >= 0 && row != rows.shape[0]) {
    return absl::OutOfRangeError(
        absl::StrCat("[", attrs.schema().name, "] batch_sizes must add up to ",
                     rows.shape[0], " rows. Got ", row, "."));
  }
  return absl::OkStatus();
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_RECURRENT_STEPS_H_
