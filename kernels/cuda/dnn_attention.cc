// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dnn_attention.h"

#include <limits>

namespace holdfast::cuda {
namespace {

using Sizes = std::vector<int64_t>;

// Adds operations whose results are tensors of their own, virtual unless said
// otherwise: they are never in memory.
class Builder {
 public:
  Builder(const AttentionProblem& problem, DnnGraph* graph)
      : p_(problem),
        graph_(*graph),
        element_(DnnType(problem.dtype)),
        rows_{problem.n, problem.h, problem.l, 1},
        scores_{problem.n, problem.h, problem.l, problem.s} {}

  const Sizes& rows() const { return rows_; }
  cudnnDataType_t element() const { return element_; }

  DnnDescriptor Memory(int64_t id, cudnnDataType_t type,
                       const Sizes& sizes) const {
    return graph_.Tensor(id, DnnPacked(type, sizes));
  }
  // [rows, columns] per head, or its transpose.
  DnnDescriptor Matrices(int64_t id, const AttentionProblem::Steps& steps,
                         int64_t rows, int64_t columns,
                         bool transposed = false) {
    DnnLayout layout = LayoutOf(steps, rows, columns);
    if (transposed) Transpose(&layout);
    return graph_.Tensor(id, layout);
  }
  DnnDescriptor Number(int64_t id) {
    return graph_.Tensor(id, DnnPacked(CUDNN_DATA_FLOAT, {1, 1, 1, 1}),
                         DnnGraph::Place::kNumber);
  }
  DnnDescriptor Virtual(cudnnDataType_t type, const Sizes& sizes) {
    return Virtual(DnnPacked(type, sizes));
  }
  DnnDescriptor Scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return Virtual(type, scores_);
  }

  void Pointwise(cudnnPointwiseMode_t mode, const DnnDescriptor& x,
                 const DnnDescriptor* b, const DnnDescriptor& y,
                 cudnnDataType_t computed = CUDNN_DATA_FLOAT,
                 const DnnDescriptor* condition = nullptr, int64_t axis = -1) {
    DnnDescriptor how(graph_.dnn(), CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    how.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &computed);
    if (axis >= 0) how.Set(CUDNN_ATTR_POINTWISE_AXIS, {axis});
    how.Finalize();
    DnnDescriptor operation(graph_.dnn(),
                            CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (condition != nullptr) {
      operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *condition);
    }
    operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    graph_.Add(std::move(operation));
  }
  void Binary(cudnnPointwiseMode_t mode, const DnnDescriptor& x,
              const DnnDescriptor& b, const DnnDescriptor& y) {
    Pointwise(mode, x, &b, y);
  }
  void Unary(cudnnPointwiseMode_t mode, const DnnDescriptor& x,
             const DnnDescriptor& y) {
    Pointwise(mode, x, nullptr, y);
  }

  void Matmul(const DnnDescriptor& a, const DnnDescriptor& b,
              const DnnDescriptor& c) {
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    DnnDescriptor how(graph_.dnn(), CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    how.Finalize();
    DnnDescriptor operation(graph_.dnn(),
                            CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    graph_.Add(std::move(operation));
  }

  void Reduce(cudnnReduceTensorOp_t op, const DnnDescriptor& x,
              const DnnDescriptor& y) {
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    DnnDescriptor how(graph_.dnn(), CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
            1, &op);
    how.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    how.Finalize();
    DnnDescriptor operation(graph_.dnn(),
                            CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    graph_.Add(std::move(operation));
  }

  // The transpose of `x`, of the layout `layout`, in the elements' type.
  DnnDescriptor Transposed(const DnnDescriptor& x, DnnLayout layout) {
    Transpose(&layout);
    layout.type = element_;
    DnnDescriptor y = Virtual(layout);
    DnnDescriptor operation(graph_.dnn(),
                            CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    graph_.Add(std::move(operation));
    return y;
  }
  DnnDescriptor TransposedScores(const DnnDescriptor& x) {
    return Transposed(x, DnnPacked(element_, scores_));
  }
  // `keys` lie transposed already.
  DnnDescriptor TransposedKeys(const DnnDescriptor& keys) {
    DnnLayout layout = LayoutOf(p_.key_steps, p_.s, p_.e);
    Transpose(&layout);
    return Transposed(keys, layout);
  }

  // query key', scaled.
  DnnDescriptor ScaledScores(const DnnDescriptor& query,
                             const DnnDescriptor& keys) {
    const DnnDescriptor products = Scores();
    Matmul(query, keys, products);
    DnnDescriptor scaled = Scores();
    Binary(CUDNN_POINTWISE_MUL, products, Number(AttentionProblem::kScale),
           scaled);
    return scaled;
  }

  // Scores of keys after the row's own are hidden.
  DnnDescriptor Masked(DnnDescriptor scores) {
    if (!p_.causal) return scores;
    const DnnDescriptor row = Scores(CUDNN_DATA_INT32);
    const DnnDescriptor column = Scores(CUDNN_DATA_INT32);
    const DnnDescriptor seen = Scores(CUDNN_DATA_BOOLEAN);
    DnnDescriptor masked = Scores();
    Pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, row, CUDNN_DATA_FLOAT,
              nullptr, 2);
    Pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, column,
              CUDNN_DATA_FLOAT, nullptr, 3);
    Pointwise(CUDNN_POINTWISE_CMP_GE, row, &column, seen, CUDNN_DATA_BOOLEAN);
    const DnnDescriptor hidden = Number(AttentionProblem::kHidden);
    Pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, &hidden, masked,
              CUDNN_DATA_FLOAT, &seen);
    return masked;
  }

 private:
  static void Transpose(DnnLayout* layout) {
    std::swap(layout->sizes[2], layout->sizes[3]);
    std::swap(layout->strides[2], layout->strides[3]);
  }
  DnnLayout LayoutOf(const AttentionProblem::Steps& steps, int64_t rows,
                     int64_t columns) const {
    return {element_,
            {p_.n, p_.h, rows, columns},
            {steps.sample, steps.head, steps.row, 1}};
  }
  DnnDescriptor Virtual(const DnnLayout& layout) {
    return graph_.Tensor(next_id_++, layout, DnnGraph::Place::kVirtual);
  }

  const AttentionProblem& p_;
  DnnGraph& graph_;
  const cudnnDataType_t element_;
  const Sizes rows_, scores_;
  int64_t next_id_ = AttentionProblem::kFirstVirtual;
};

void DescribeForward(const AttentionProblem& p, Builder& b) {
  using P = AttentionProblem;
  const DnnDescriptor scores = b.Masked(
      b.ScaledScores(b.Matrices(P::kQuery, p.query, p.l, p.e),
                     b.Matrices(P::kKey, p.key_steps, p.s, p.e, true)));
  const DnnDescriptor max = b.Virtual(CUDNN_DATA_FLOAT, b.rows());
  b.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, max);
  const DnnDescriptor lowered = b.Scores(), exponentials = b.Scores();
  b.Binary(CUDNN_POINTWISE_SUB, scores, max, lowered);
  b.Unary(CUDNN_POINTWISE_EXP, lowered, exponentials);
  const DnnDescriptor sum = b.Virtual(CUDNN_DATA_FLOAT, b.rows());
  b.Reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  const DnnDescriptor log = b.Virtual(CUDNN_DATA_FLOAT, b.rows());
  b.Unary(CUDNN_POINTWISE_LOG, sum, log);
  b.Binary(CUDNN_POINTWISE_ADD, max, log,
           b.Memory(P::kLogSumExp, CUDNN_DATA_FLOAT, b.rows()));
  const DnnDescriptor weights = b.Scores(b.element());
  b.Binary(CUDNN_POINTWISE_DIV, exponentials, sum, weights);
  b.Matmul(weights, b.Matrices(P::kValue, p.value, p.s, p.v),
           b.Memory(P::kOutput, b.element(), {p.n, p.h, p.l, p.v}));
}

void DescribeBackward(const AttentionProblem& p, Builder& b) {
  using P = AttentionProblem;
  const DnnDescriptor query = b.Matrices(P::kQuery, p.query, p.l, p.e);
  const DnnDescriptor keys = b.Matrices(P::kKey, p.key_steps, p.s, p.e, true);
  const DnnDescriptor values = b.Matrices(P::kValue, p.value, p.s, p.v, true);
  const DnnDescriptor d = b.Matrices(P::kOutputGrad, p.output_grad, p.l, p.v);
  const Sizes of_output = {p.n, p.h, p.l, p.v};
  // What all gradients of a row's scores have in common.
  const DnnDescriptor product = b.Virtual(CUDNN_DATA_FLOAT, of_output);
  b.Binary(CUDNN_POINTWISE_MUL, d, b.Memory(P::kOutput, b.element(), of_output),
           product);
  const DnnDescriptor sum = b.Virtual(CUDNN_DATA_FLOAT, b.rows());
  b.Reduce(CUDNN_REDUCE_TENSOR_ADD, product, sum);
  const DnnDescriptor row_sums =
      b.Memory(P::kRowSums, CUDNN_DATA_FLOAT, b.rows());
  b.Binary(CUDNN_POINTWISE_MUL, sum, b.Number(P::kOne), row_sums);
  // The weights, and from them the value's gradient.
  DnnDescriptor lowered = b.Scores();
  b.Binary(CUDNN_POINTWISE_SUB, b.ScaledScores(query, keys),
           b.Memory(P::kLogSumExp, CUDNN_DATA_FLOAT, b.rows()), lowered);
  const DnnDescriptor masked = b.Masked(std::move(lowered));
  const DnnDescriptor weights = b.Scores();
  b.Unary(CUDNN_POINTWISE_EXP, masked, weights);
  b.Matmul(b.TransposedScores(weights), d,
           b.Memory(P::kValueGrad, b.element(), {p.n, p.h, p.s, p.v}));
  // The scores' gradients, and from them the key's and the query's.
  const DnnDescriptor of_weights = b.Scores(), centred = b.Scores(),
                      weighted = b.Scores(), grads = b.Scores();
  b.Matmul(d, values, of_weights);
  b.Binary(CUDNN_POINTWISE_SUB, of_weights, row_sums, centred);
  b.Binary(CUDNN_POINTWISE_MUL, centred, weights, weighted);
  b.Binary(CUDNN_POINTWISE_MUL, weighted, b.Number(P::kScale), grads);
  b.Matmul(b.TransposedScores(grads), query,
           b.Memory(P::kKeyGrad, b.element(), {p.n, p.h, p.s, p.e}));
  const Sizes of_query = {p.n, p.h, p.l, p.e};
  const DnnDescriptor sums =
      b.Memory(P::kQuerySums, CUDNN_DATA_FLOAT, of_query);
  b.Matmul(grads, b.TransposedKeys(keys), sums);
  b.Unary(CUDNN_POINTWISE_IDENTITY, sums,
          b.Memory(P::kQueryGrad, b.element(), of_query));
}

}  // namespace

DnnProblem::Key AttentionProblem::key() const {
  Key key = {kDnnAttention,
             backward,
             causal,
             static_cast<int64_t>(dtype),
             n,
             h,
             l,
             s,
             e,
             v,
             numerics.deterministic};
  for (const Steps& steps : {query, key_steps, value, output_grad}) {
    key.insert(key.end(), {steps.sample, steps.head, steps.row});
  }
  return key;
}

bool AttentionProblem::Allows(cudnnBackendNumericalNote_t note) const {
  return note != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
         !numerics.deterministic;
}

float AttentionProblem::HiddenScore(size_t cudnn_version) {
  return cudnn_version < 91000 ? std::numeric_limits<float>::lowest()
                               : -std::numeric_limits<float>::infinity();
}

bool AttentionProblem::IsSound(size_t cudnn_version) const {
  // 9.10.0 and 9.10.1 compute wrong results, and up to 9.15 so does a backward
  // whose last block of keys is not full, unless it is masked. One row with a
  // mask is refused by some.
  if (cudnn_version == 91000 || cudnn_version == 91001) return false;
  if (backward && s % 128 != 0 && cudnn_version <= 91500) return false;
  return l > 1 && s > 1;
}

void AttentionProblem::Describe(DnnGraph* graph) const {
  Builder builder(*this, graph);
  if (backward) {
    DescribeBackward(*this, builder);
  } else {
    DescribeForward(*this, builder);
  }
}

}  // namespace holdfast::cuda
