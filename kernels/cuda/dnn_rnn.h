// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DnnRecurrent: one layer and one direction of a recurrent network by cuDNN's
// functions for those, which are not of its graph API. What they need of a
// problem is made once and kept.
//
// cuDNN keeps a layer's weights in one piece of memory, in an order of its own:
// they are copied there for each call, and gradients from there. It keeps what
// the gradient needs in a reserve of a size that it chooses.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_RNN_H_
#define HOLDFAST_KERNELS_CUDA_DNN_RNN_H_

#include <cudnn_adv.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/recurrent_steps.h"
#include "ops/dtype.h"

namespace holdfast::cuda {

struct DnnLibrary;
struct DnnRnnLibrary;

struct RnnProblem {
  RecurrentMode mode = RecurrentMode::kLstm;
  DType dtype = DType::kFloat32;
  bool bias = true;     // both
  bool packed = false;  // lengths differ
  bool save = true;     // for the gradient
  bool tf32 = false;    // float32 factors may be rounded to TF32
  int64_t steps = 1, batch = 1, inputs = 1, hidden = 1;

  // Whether sizes are such that cuDNN can be asked at all.
  bool InRange() const;
  // cuDNN's matrices of each kind, input's and hidden state's.
  int64_t gates() const {
    return mode == RecurrentMode::kLstm  ? 4
           : mode == RecurrentMode::kGru ? 3
                                         : 1;
  }
};

// A layer's tensors in device memory, without gaps. Weights: ih, hh, bias_ih,
// bias_hh; null where the layer has none.
inline constexpr int kRnnWeights = 4;
struct RnnLayer {
  const void *input = nullptr, *h0 = nullptr, *c0 = nullptr;
  const void* weights[kRnnWeights] = {};
  void* output = nullptr;
  void* reserve = nullptr;
  size_t reserve_bytes = 0;
};
struct RnnResults {
  void *hn = nullptr, *cn = nullptr;
};
// Gradients that come, null for zeros, and that are computed. `weights` of null
// are not.
struct RnnGradients {
  const void *output = nullptr, *hn = nullptr, *cn = nullptr;
  void *input = nullptr, *h0 = nullptr, *c0 = nullptr;
  void* weights[kRnnWeights] = {};
};

// Bytes `from` of weight number `weight` on are at `to` of the weight space.
struct WeightPart {
  int weight = 0;
  int64_t from = 0, to = 0, bytes = 0;

  bool operator==(const WeightPart& other) const {
    return std::tie(weight, from, to, bytes) ==
           std::tie(other.weight, other.from, other.to, other.bytes);
  }
};
// As few copies as do the same.
std::vector<WeightPart> MergeParts(std::vector<WeightPart> parts);

// The device of a context, as far as ways to compute are chosen by it.
struct DnnDeviceTraits {
  int major = 0, processors = 0;
};

class DnnRecurrent {
 public:
  // Both must outlive it.
  DnnRecurrent(const DnnLibrary& dnn, const DnnRnnLibrary& rnn,
               DnnDeviceTraits device);
  ~DnnRecurrent();

  // Bytes of reserve that any way of cuDNN's fits; none where it has no way to
  // compute the problem, and own kernels do.
  std::optional<size_t> ReserveBytes(const RnnProblem& problem);

  // On the context's stream. `lengths`: of each sample; looked at where rows
  // are packed. False: own kernels have to do it, and for a problem whose
  // forward said so its backward says so, too.
  absl::StatusOr<bool> Forward(CudaContext& context, const RnnProblem& problem,
                               absl::Span<const int32_t> lengths,
                               const RnnLayer& layer,
                               const RnnResults& results);
  absl::StatusOr<bool> Backward(CudaContext& context, const RnnProblem& problem,
                                absl::Span<const int32_t> lengths,
                                const RnnLayer& layer,
                                const RnnGradients& gradients);

 private:
  class Plan;
  class Call;
  // Ways to compute a problem, the most promising first.
  struct Ways {
    bool known = false;
    std::vector<std::unique_ptr<Plan>> plans;
    size_t reserve = 0;  // bytes that fit all of them
  };
  // With and without `tf32`, which is not in the key: a session may change it
  // between a layer and its gradient.
  struct Entry {
    Ways ways[2];
    bool worked = false;
    // cuDNN took the problem, and refused it when it was first to compute it.
    // Reserves of such are the own kernels'; that is never forgotten.
    bool refused = false;
  };
  using Key = std::tuple<RecurrentMode, DType, bool, bool, bool, int64_t,
                         int64_t, int64_t, int64_t>;

  Entry& Find(const RnnProblem& problem);
  std::vector<cudnnRNNAlgo_t> Algorithms(const RnnProblem& problem) const;
  // `run` with one way after the other until one is not refused.
  absl::StatusOr<bool> Try(CudaContext& context, const RnnProblem& problem,
                           absl::FunctionRef<absl::Status(Call& call)> run);

  const DnnLibrary& dnn_;
  const DnnRnnLibrary& rnn_;
  const DnnDeviceTraits device_;
  std::map<Key, Entry> entries_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_RNN_H_
