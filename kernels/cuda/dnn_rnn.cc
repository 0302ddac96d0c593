// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dnn_rnn.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/dnn_plan.h"

namespace holdfast::cuda {
namespace {

// Of a program whose sizes change all the time; then they are made again.
constexpr size_t kMostEntries = 4096;

// A descriptor, destroyed with it.
template <typename T>
using Owned = std::unique_ptr<T, cudnnStatus_t (*)(T*)>;

// Keeps the first failure; what comes after it is not called.
class Calls {
 public:
  template <typename F, typename... Args>
  void Run(const char* name, F function, Args... args) {
    if (status_ != CUDNN_STATUS_SUCCESS) return;
    status_ = function(args...);
    name_ = name;
  }
  template <typename T>
  Owned<T> Make(const char* name, cudnnStatus_t (*create)(T**),
                cudnnStatus_t (*destroy)(T*)) {
    T* made = nullptr;
    Run(name, create, &made);
    return Owned<T>(status_ == CUDNN_STATUS_SUCCESS ? made : nullptr, destroy);
  }
  void Refuse(const char* name) {
    if (ok()) {
      status_ = CUDNN_STATUS_NOT_SUPPORTED;
      name_ = name;
    }
  }
  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  // Of a problem that cuDNN does not compute; functions as old as these say of
  // some such that a parameter is bad.
  bool refused() const {
    const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status_));
    return category == CUDNN_STATUS_NOT_SUPPORTED ||
           category == CUDNN_STATUS_BAD_PARAM;
  }
  absl::Status Told(const DnnLibrary& dnn) const {
    if (ok()) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("[cuda] ", name_, ": ", dnn.cudnnGetErrorString(status_)));
  }

 private:
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  const char* name_ = "";
};

cudnnRNNMode_t DnnMode(RecurrentMode mode) {
  switch (mode) {
    case RecurrentMode::kLstm:
      return CUDNN_LSTM;
    case RecurrentMode::kGru:
      return CUDNN_GRU;
    case RecurrentMode::kRelu:
      return CUDNN_RNN_RELU;
    default:
      return CUDNN_RNN_TANH;
  }
}

cudnnMathType_t MathOf(const RnnProblem& p) {
  if (p.dtype == DType::kFloat16 || p.dtype == DType::kBFloat16) {
    return CUDNN_TENSOR_OP_MATH;
  }
  return p.dtype == DType::kFloat32 && !p.tf32 ? CUDNN_FMA_MATH
                                               : CUDNN_DEFAULT_MATH;
}

cudnnForwardMode_t ForwardMode(const RnnProblem& p) {
  return p.save ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
}

bool IsGated(const RnnProblem& p) {
  return p.mode == RecurrentMode::kLstm || p.mode == RecurrentMode::kGru;
}

int64_t ItemBytes(const RnnProblem& p) {
  return static_cast<int64_t>(ItemSize(p.dtype));
}

}  // namespace

bool RnnProblem::InRange() const {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (int64_t size : {steps, batch, inputs, hidden}) {
    if (size < 1 || size > kMost) return false;
  }
  return batch <= kMost / hidden;  // a state's steps are 32-bit, too
}

std::vector<WeightPart> MergeParts(std::vector<WeightPart> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const WeightPart& a, const WeightPart& b) {
              return std::tie(a.weight, a.from) < std::tie(b.weight, b.from);
            });
  std::vector<WeightPart> merged;
  for (const WeightPart& part : parts) {
    if (!merged.empty()) {
      WeightPart& last = merged.back();
      if (last.weight == part.weight && last.from + last.bytes == part.from &&
          last.to + last.bytes == part.to) {
        last.bytes += part.bytes;
        continue;
      }
    }
    merged.push_back(part);
  }
  return merged;
}

// What cuDNN needs of a problem for one of its algorithms.
class DnnRecurrent::Plan {
 public:
  // Null where cuDNN has none.
  static std::unique_ptr<Plan> Make(const DnnLibrary& dnn,
                                    const DnnRnnLibrary& rnn,
                                    const RnnProblem& problem,
                                    cudnnRNNAlgo_t algorithm) {
    Calls calls;
    std::unique_ptr<Plan> plan(new Plan(rnn, problem, &calls));
    const cudnnDataType_t type = DnnType(problem.dtype);
    const cudnnDataType_t computed =
        problem.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    // cuDNN wants a descriptor of the dropout that there is not.
    calls.Run("cudnnSetDropoutDescriptor", rnn.cudnnSetDropoutDescriptor,
              plan->dropout_.get(), dnn.handle, 0.0f, nullptr, size_t{0}, 0ull);
    const int hidden = static_cast<int>(problem.hidden);
    const int batch = static_cast<int>(problem.batch);
    calls.Run("cudnnSetRNNDescriptor_v8", rnn.cudnnSetRNNDescriptor_v8,
              plan->rnn_.get(), algorithm, DnnMode(problem.mode),
              problem.bias ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
              CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, computed,
              MathOf(problem), static_cast<int>(problem.inputs), hidden, hidden,
              1, plan->dropout_.get(),
              problem.packed ? CUDNN_RNN_PADDED_IO_DISABLED
                             : CUDNN_RNN_PADDED_IO_ENABLED);
    const int sizes[] = {1, batch, hidden},
              strides[] = {batch * hidden, hidden, 1};
    calls.Run("cudnnSetTensorNdDescriptor", rnn.cudnnSetTensorNdDescriptor,
              plan->state_.get(), type, 3, sizes, strides);
    const std::vector<int32_t> full(problem.batch,
                                    static_cast<int32_t>(problem.steps));
    plan->rows_ = plan->DescribeRows(full, &calls);
    calls.Run("cudnnGetRNNWeightSpaceSize", rnn.cudnnGetRNNWeightSpaceSize,
              dnn.handle, plan->rnn_.get(), &plan->weights_);
    plan->temporary_ = plan->Temporary(dnn, plan->rows_, &calls);
    return calls.ok() ? std::move(plan) : nullptr;
  }

  // Of the input's and the output's rows.
  struct Rows {
    Owned<cudnnRNNDataStruct> x{nullptr, nullptr}, y{nullptr, nullptr};
  };
  Rows DescribeRows(absl::Span<const int32_t> lengths, Calls* calls) const {
    Rows rows;
    const auto describe = [&](int64_t width) {
      auto made = calls->Make("cudnnCreateRNNDataDescriptor",
                              rnn_library_.cudnnCreateRNNDataDescriptor,
                              rnn_library_.cudnnDestroyRNNDataDescriptor);
      calls->Run(
          "cudnnSetRNNDataDescriptor", rnn_library_.cudnnSetRNNDataDescriptor,
          made.get(), DnnType(problem_.dtype),
          problem_.packed ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
                          : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
          static_cast<int>(problem_.steps), static_cast<int>(problem_.batch),
          static_cast<int>(width), lengths.data(), nullptr);
      return made;
    };
    rows.x = describe(problem_.inputs);
    rows.y = describe(problem_.hidden);
    return rows;
  }
  struct Bytes {
    size_t workspace = 0, reserve = 0;
  };
  Bytes Temporary(const DnnLibrary& dnn, const Rows& rows, Calls* calls) const {
    Bytes bytes;
    calls->Run("cudnnGetRNNTempSpaceSizes",
               rnn_library_.cudnnGetRNNTempSpaceSizes, dnn.handle, rnn_.get(),
               ForwardMode(problem_), rows.x.get(), &bytes.workspace,
               &bytes.reserve);
    return bytes;
  }

  // Where the weights are in the weight space that begins at `space`.
  const std::vector<WeightPart>& Parts(const DnnLibrary& dnn, char* space,
                                       Calls* calls) {
    if (!parts_.empty()) return parts_;
    auto matrix = MakeTensor(calls), bias = MakeTensor(calls);
    std::vector<WeightPart> parts;
    const int64_t gates = problem_.gates();
    for (int64_t id = 0; id < 2 * gates && calls->ok(); ++id) {
      void *matrix_at = nullptr, *bias_at = nullptr;
      calls->Run("cudnnGetRNNWeightParams",
                 rnn_library_.cudnnGetRNNWeightParams, dnn.handle, rnn_.get(),
                 0, weights_, space, static_cast<int>(id), matrix.get(),
                 &matrix_at, bias.get(), &bias_at);
      const bool recurrent = id >= gates;
      const int64_t columns = recurrent ? problem_.hidden : problem_.inputs;
      const auto add = [&](int weight, cudnnTensorStruct* descriptor, void* at,
                           int64_t rows, int64_t width) {
        WeightPart part;
        part.weight = weight;
        part.bytes = rows * width * ItemBytes(problem_);
        part.from = id % gates * part.bytes;
        part.to = static_cast<char*>(at) - space;
        CheckPart(descriptor, at, part, rows * width, calls);
        parts.push_back(part);
      };
      add(recurrent ? 1 : 0, matrix.get(), matrix_at, problem_.hidden, columns);
      if (problem_.bias) {
        add(recurrent ? 3 : 2, bias.get(), bias_at, problem_.hidden, 1);
      }
    }
    if (calls->ok()) {
      parts_ = MergeParts(std::move(parts));
      covered_ = 0;
      for (const WeightPart& part : parts_) covered_ += part.bytes;
    }
    return parts_;
  }

  const RnnProblem& problem() const { return problem_; }
  cudnnRNNStruct* rnn() const { return rnn_.get(); }
  // Of the hidden state and of an LSTM's cells.
  cudnnTensorStruct* state() const { return state_.get(); }
  cudnnTensorStruct* cells() const {
    return problem_.mode == RecurrentMode::kLstm ? state_.get() : nullptr;
  }
  const Rows& rows() const { return rows_; }
  size_t weights() const { return weights_; }  // bytes of the weight space
  bool has_gaps() const { return covered_ != static_cast<int64_t>(weights_); }
  const Bytes& temporary() const { return temporary_; }

 private:
  Plan(const DnnRnnLibrary& rnn, const RnnProblem& problem, Calls* calls)
      : rnn_library_(rnn),
        problem_(problem),
        dropout_(calls->Make("cudnnCreateDropoutDescriptor",
                             rnn.cudnnCreateDropoutDescriptor,
                             rnn.cudnnDestroyDropoutDescriptor)),
        rnn_(calls->Make("cudnnCreateRNNDescriptor",
                         rnn.cudnnCreateRNNDescriptor,
                         rnn.cudnnDestroyRNNDescriptor)),
        state_(MakeTensor(calls)) {}

  Owned<cudnnTensorStruct> MakeTensor(Calls* calls) const {
    return calls->Make("cudnnCreateTensorDescriptor",
                       rnn_library_.cudnnCreateTensorDescriptor,
                       rnn_library_.cudnnDestroyTensorDescriptor);
  }
  // A matrix that is not as large as it should be, or not in the space, would
  // be copied to a wrong place.
  void CheckPart(cudnnTensorStruct* descriptor, const void* at,
                 const WeightPart& part, int64_t elements, Calls* calls) const {
    constexpr int kMostDims = 8;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = 0, sizes[kMostDims] = {}, strides[kMostDims] = {};
    calls->Run("cudnnGetTensorNdDescriptor",
               rnn_library_.cudnnGetTensorNdDescriptor, descriptor, kMostDims,
               &type, &rank, sizes, strides);
    if (!calls->ok()) return;
    int64_t product = 1;
    for (int d = 0; d < std::min(rank, kMostDims); ++d) product *= sizes[d];
    if (at == nullptr || type != DnnType(problem_.dtype) ||
        product != elements || part.to < 0 ||
        part.to + part.bytes > static_cast<int64_t>(weights_)) {
      calls->Refuse("cudnnGetRNNWeightParams");
    }
  }

  const DnnRnnLibrary& rnn_library_;
  const RnnProblem problem_;
  Owned<cudnnDropoutStruct> dropout_;
  Owned<cudnnRNNStruct> rnn_;
  Owned<cudnnTensorStruct> state_;
  Rows rows_;  // of samples of full length
  size_t weights_ = 0;
  Bytes temporary_;
  std::vector<WeightPart> parts_;
  int64_t covered_ = 0;
};

// One call of a plan: its memory.
class DnnRecurrent::Call {
 public:
  Call(const DnnLibrary& dnn, CudaContext& context, Plan& plan)
      : dnn_(dnn), context_(context), plan_(plan) {}

  Calls& calls() { return calls_; }
  const Plan& plan() const { return plan_; }
  const Plan::Rows& rows() const {
    return plan_.problem().packed ? packed_ : plan_.rows();
  }
  void* weights() const { return weights_; }
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return temporary_.workspace; }

  // The weights in cuDNN's order, and memory for it to work in. What cuDNN
  // refuses is in calls().
  absl::Status Prepare(absl::Span<const int32_t> lengths, const RnnLayer& layer,
                       bool backward) {
    temporary_ = plan_.temporary();
    if (plan_.problem().packed) {
      packed_ = plan_.DescribeRows(lengths, &calls_);
      temporary_ = plan_.Temporary(dnn_, packed_, &calls_);
    }
    if (!calls_.ok()) return absl::OkStatus();
    if (plan_.problem().save && temporary_.reserve > layer.reserve_bytes) {
      if (!backward) {
        calls_.Refuse("cudnnGetRNNTempSpaceSizes");
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "[rnn_layer_backward] reserve must be what rnn_layer made of these "
          "tensors, of at least ",
          temporary_.reserve, " bytes. Got ", layer.reserve_bytes, "."));
    }
    weights_ = Scratch(plan_.weights());
    workspace_ = Scratch(temporary_.workspace);
    if (weights_ == nullptr || workspace_ == nullptr) return NoScratch();
    parts_ = &plan_.Parts(dnn_, weights_, &calls_);
    if (!calls_.ok()) return absl::OkStatus();
    absl::Status status;
    if (plan_.has_gaps()) {
      status = context_.FillBytes(weights_, 0, plan_.weights());
    }
    for (const WeightPart& part : *parts_) {
      if (!status.ok()) break;
      const char* const from =
          static_cast<const char*>(layer.weights[part.weight]);
      status = context_.CopyOnDevice(weights_ + part.to, from + part.from,
                                     part.bytes);
    }
    return status;
  }
  // What is in cuDNN's order at `space`, into tensors.
  absl::Status CopyOut(const char* space, void* const* tensors) {
    for (const WeightPart& part : *parts_) {
      char* const to = static_cast<char*>(tensors[part.weight]);
      absl::Status status =
          context_.CopyOnDevice(to + part.from, space + part.to, part.bytes);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  char* Scratch(size_t bytes) {
    return static_cast<char*>(context_.Scratch(std::max<size_t>(bytes, 1)));
  }
  // `data`, or as many zeros.
  absl::Status OrZeros(const void** data, int64_t bytes) {
    if (*data != nullptr) return absl::OkStatus();
    char* const zeros = Scratch(bytes);
    if (zeros == nullptr) return NoScratch();
    *data = zeros;
    return context_.FillBytes(zeros, 0, bytes);
  }

 private:
  const DnnLibrary& dnn_;
  CudaContext& context_;
  Plan& plan_;
  Calls calls_;
  Plan::Rows packed_;
  Plan::Bytes temporary_;
  const std::vector<WeightPart>* parts_ = nullptr;
  char *weights_ = nullptr, *workspace_ = nullptr;
};

DnnRecurrent::DnnRecurrent(const DnnLibrary& dnn, const DnnRnnLibrary& rnn,
                           DnnDeviceTraits device)
    : dnn_(dnn), rnn_(rnn), device_(device) {}

DnnRecurrent::~DnnRecurrent() = default;

// The persistent algorithms keep weights on the chip from step to step. Where
// they are worth it, and work, PyTorch's authors have measured.
std::vector<cudnnRNNAlgo_t> DnnRecurrent::Algorithms(
    const RnnProblem& p) const {
  std::vector<cudnnRNNAlgo_t> all;
  if (!p.packed && p.dtype != DType::kFloat64) {
    const int64_t small =
        IsGated(p) ? (p.save ? 128 : 192) : (p.save ? 256 : 384);
    if (p.hidden <= small) {
      all.push_back(CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H);
    } else if (p.dtype == DType::kFloat16 && p.mode != RecurrentMode::kGru &&
               p.hidden % 128 == 0 && p.hidden <= 1024 && p.inputs % 128 == 0 &&
               p.batch % 8 == 0 && p.batch <= 128 &&
               (IsGated(p) || p.batch < 96 || p.hidden < 896) &&
               device_.major >= 8 && device_.processors >= 98) {
      all.push_back(CUDNN_RNN_ALGO_PERSIST_STATIC);
    }
  }
  all.push_back(CUDNN_RNN_ALGO_STANDARD);
  return all;
}

DnnRecurrent::Entry& DnnRecurrent::Find(const RnnProblem& p) {
  const Key key = {p.mode,  p.dtype, p.bias,   p.packed, p.save,
                   p.steps, p.batch, p.inputs, p.hidden};
  if (entries_.size() >= kMostEntries && entries_.count(key) == 0) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      it = it->second.refused ? std::next(it) : entries_.erase(it);
    }
  }
  Entry& entry = entries_[key];
  Ways& ways = entry.ways[p.tf32];
  if (ways.known || entry.refused) return entry;
  ways.known = true;
  for (cudnnRNNAlgo_t algorithm : Algorithms(p)) {
    std::unique_ptr<Plan> plan = Plan::Make(dnn_, rnn_, p, algorithm);
    if (plan == nullptr) continue;
    ways.reserve = std::max(ways.reserve, plan->temporary().reserve);
    ways.plans.push_back(std::move(plan));
  }
  return entry;
}

std::optional<size_t> DnnRecurrent::ReserveBytes(const RnnProblem& problem) {
  if (!problem.InRange()) return std::nullopt;
  const Entry& entry = Find(problem);
  const Ways& ways = entry.ways[problem.tf32];
  if (entry.refused || ways.plans.empty()) return std::nullopt;
  return ways.reserve;
}

absl::StatusOr<bool> DnnRecurrent::Try(
    CudaContext& context, const RnnProblem& problem,
    absl::FunctionRef<absl::Status(Call& call)> run) {
  if (!problem.InRange()) return false;
  Calls stream;
  stream.Run("cudnnSetStream", dnn_.cudnnSetStream, dnn_.handle,
             static_cast<cudaStream_t>(context.stream()));
  if (!stream.ok()) return stream.Told(dnn_);
  Entry& entry = Find(problem);
  std::vector<std::unique_ptr<Plan>>& plans = entry.ways[problem.tf32].plans;
  while (!entry.refused && !plans.empty()) {
    Call call(dnn_, context, *plans.front());
    absl::Status status = run(call);
    if (!status.ok()) return status;
    if (call.calls().ok()) {
      entry.worked = true;
      return true;
    }
    // Whom it has refused nothing so far may still be computed otherwise.
    if (!call.calls().refused() || entry.worked) return call.calls().Told(dnn_);
    plans.erase(plans.begin());
  }
  entry.refused = true;
  return false;
}

absl::StatusOr<bool> DnnRecurrent::Forward(CudaContext& context,
                                           const RnnProblem& problem,
                                           absl::Span<const int32_t> lengths,
                                           const RnnLayer& layer,
                                           const RnnResults& results) {
  return Try(context, problem, [&](Call& call) -> absl::Status {
    absl::Status status = call.Prepare(lengths, layer, /*backward=*/false);
    if (!status.ok() || !call.calls().ok()) return status;
    const Plan& plan = call.plan();
    call.calls().Run("cudnnRNNForward", rnn_.cudnnRNNForward, dnn_.handle,
                     plan.rnn(), ForwardMode(problem), nullptr,
                     call.rows().x.get(), layer.input, call.rows().y.get(),
                     layer.output, plan.state(), layer.h0, results.hn,
                     plan.cells(), layer.c0, results.cn, plan.weights(),
                     call.weights(), call.workspace_bytes(), call.workspace(),
                     layer.reserve_bytes, layer.reserve);
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> DnnRecurrent::Backward(CudaContext& context,
                                            const RnnProblem& problem,
                                            absl::Span<const int32_t> lengths,
                                            const RnnLayer& layer,
                                            const RnnGradients& gradients) {
  int64_t rows = problem.steps * problem.batch;
  if (problem.packed) {
    rows = 0;
    for (int32_t length : lengths) rows += length;
  }
  const int64_t item = ItemBytes(problem);
  const bool lstm = problem.mode == RecurrentMode::kLstm;
  const bool weights = gradients.weights[0] != nullptr;
  return Try(context, problem, [&](Call& call) -> absl::Status {
    absl::Status status = call.Prepare(lengths, layer, /*backward=*/true);
    if (!status.ok() || !call.calls().ok()) return status;
    RnnGradients g = gradients;
    const int64_t state = problem.batch * problem.hidden * item;
    status = call.OrZeros(&g.output, rows * problem.hidden * item);
    if (status.ok()) status = call.OrZeros(&g.hn, state);
    if (status.ok() && lstm) status = call.OrZeros(&g.cn, state);
    if (!status.ok()) return status;
    // The gradient writes to the reserve, which may be asked for it again.
    char* const reserve = call.Scratch(layer.reserve_bytes);
    char* const sums = weights ? call.Scratch(call.plan().weights()) : nullptr;
    if (g.input == nullptr) {
      g.input = call.Scratch(rows * problem.inputs * item);
    }
    if (reserve == nullptr || g.input == nullptr ||
        (weights && sums == nullptr)) {
      return NoScratch();
    }
    status = context.CopyOnDevice(reserve, layer.reserve, layer.reserve_bytes);
    if (!status.ok()) return status;
    const Plan& plan = call.plan();
    call.calls().Run(
        "cudnnRNNBackwardData_v8", rnn_.cudnnRNNBackwardData_v8, dnn_.handle,
        plan.rnn(), nullptr, call.rows().y.get(), layer.output, g.output,
        call.rows().x.get(), g.input, plan.state(), layer.h0, g.hn, g.h0,
        plan.cells(), layer.c0, g.cn, g.c0, plan.weights(), call.weights(),
        call.workspace_bytes(), call.workspace(), layer.reserve_bytes, reserve);
    if (!weights || !call.calls().ok()) return absl::OkStatus();
    // It adds to what is there.
    status = context.FillBytes(sums, 0, plan.weights());
    if (!status.ok()) return status;
    call.calls().Run("cudnnRNNBackwardWeights_v8",
                     rnn_.cudnnRNNBackwardWeights_v8, dnn_.handle, plan.rnn(),
                     CUDNN_WGRAD_MODE_ADD, nullptr, call.rows().x.get(),
                     layer.input, plan.state(), layer.h0, call.rows().y.get(),
                     layer.output, plan.weights(), sums, call.workspace_bytes(),
                     call.workspace(), layer.reserve_bytes, reserve);
    if (!call.calls().ok()) return absl::OkStatus();
    return call.CopyOut(sums, g.weights);
  });
}

}  // namespace holdfast::cuda
