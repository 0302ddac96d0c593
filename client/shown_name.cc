// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/shown_name.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/user_code.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

// Overloads that have other names, or other numbers than 0. kPlain is what
// `NameOf` gives.
enum Overload : uint8_t {
  kPlain = 0,
  kNumberOne,    // of the same name: MeanBackward1
  kReflected,    // a number was the first operand
  kFolded,       // leading dimensions were folded for the product, with a bias
  kProduct,      // ... without one
  kFoldedPlain,  // ... of more than two dimensions
  kVector,       // matrix times vector
  kDot,
  kLayer,   // group_norm over the last dimensions
  kLinear,  // resample2d's modes; nearest is kPlain
  kCubic,
};

Overload OfLinear(absl::Span<const Tensor> inputs) {
  const bool folded = inputs[0]->spec().rank() > 2;
  if (inputs.size() > 2 && inputs[2]) return folded ? kFolded : kPlain;
  return folded ? kFoldedPlain : kProduct;
}

Overload OfMatmul(absl::Span<const Tensor> inputs) {
  const int left = inputs[0]->spec().rank();
  const int right = inputs[1]->spec().rank();
  if (left > 2 || right > 2) return kFoldedPlain;
  if (left == 1 && right == 1) return kDot;
  return left == 2 && right == 1 ? kVector : kPlain;
}

Overload OfResample(const Attrs& attrs) {
  const std::string& mode = attrs.Str("mode");
  if (mode == "linear") return kLinear;
  return mode == "cubic" ? kCubic : kPlain;
}

struct Name {
  OpId op;
  const char* name;
};

// PyTorch's names that are not made of the op's own, whatever the overload.
constexpr Name kNames[] = {
    {OpId::avg_pool2d, "AvgPool2DBackward0"},
    {OpId::batch_norm, "NativeBatchNormBackward0"},
    {OpId::constant_pad, "ConstantPadNdBackward0"},
    {OpId::conv2d, "ConvolutionBackward0"},
    {OpId::conv3d, "ConvolutionBackward0"},
    {OpId::dropout, "MulBackward0"},
    {OpId::im2col, "Im2ColBackward0"},
    {OpId::index_mask, "IndexBackward0"},
    {OpId::linalg_cdist, "CdistBackward0"},
    {OpId::linalg_cholesky, "LinalgCholeskyExBackward0"},
    {OpId::linalg_solve, "LinalgSolveExBackward0"},
    {OpId::log1p, "Log1PBackward0"},
    {OpId::max_pool2d, "MaxPool2DWithIndicesBackward0"},
    {OpId::softsign, "DivBackward0"},
    {OpId::to, "ToCopyBackward0"},
    {OpId::vector_norm, "LinalgVectorNormBackward0"},
};

// linear() and matmul(), by how PyTorch computes them.
const char* NameOfProduct(OpId op, uint8_t overload) {
  switch (overload) {
    case kFolded:
      return "ViewBackward0";
    case kFoldedPlain:
      return "UnsafeViewBackward0";
    case kVector:
      return "MvBackward0";
    case kDot:
      return "DotBackward0";
    default:
      return op == OpId::linear && overload == kPlain ? "AddmmBackward0"
                                                      : "MmBackward0";
  }
}

// PyTorch's name of a call that is not made of the op's own; null: it is.
const char* KnownName(OpId op, uint8_t overload) {
  for (const Name& known : kNames) {
    if (known.op == op) return known.name;
  }
  switch (op) {
    case OpId::div:  // 1 / x is x.reciprocal() * 1
      return overload == kReflected ? "MulBackward0" : nullptr;
    case OpId::group_norm:
      return overload == kLayer ? "NativeLayerNormBackward0"
                                : "NativeGroupNormBackward0";
    case OpId::linear:
    case OpId::matmul:
      return NameOfProduct(op, overload);
    case OpId::resample2d:
      return overload == kLinear  ? "UpsampleBilinear2DBackward1"
             : overload == kCubic ? "UpsampleBicubic2DBackward1"
                                  : "UpsampleNearest2DBackward1";
    case OpId::sub:
      return overload == kReflected ? "RsubBackward1" : nullptr;
    default:
      return nullptr;
  }
}

// A node that only grad_fn shows.
RefPtr<GraphNode> Pretended(const char* name, GraphEdges next) {
  RefPtr<GraphNode> node = MakeRef<GraphNode>();
  node->op = OpId::as_strided;  // no leaf
  node->shown = std::make_unique<ShownFunction>();
  node->shown->name = name;
  node->shown->next = std::move(next);
  return node;
}

// Whether Pretended() made it: an op's node has inputs.
bool IsPretended(const GraphNode& node) {
  return node.shown && node.op == OpId::as_strided && node.inputs.empty();
}

}  // namespace

uint8_t ShownOverload(const Attrs& attrs, absl::Span<const Tensor> inputs) {
  switch (attrs.schema().id) {
    case OpId::mean:
    case OpId::squeeze:
    case OpId::sum:
      return attrs.None("dim") ? kPlain : kNumberOne;
    case OpId::clamp:
      return kNumberOne;
    case OpId::pow:
      return inputs.size() > 1 && inputs[1] ? kNumberOne : kPlain;
    case OpId::scatter:
      return inputs.size() > 2 && inputs[2] ? kPlain : kNumberOne;
    case OpId::div:
    case OpId::sub:
      return inputs[0] ? kPlain : kReflected;
    case OpId::group_norm:
      return attrs.Int("normalized_dims") > 0 ? kLayer : kPlain;
    case OpId::linear:
      return OfLinear(inputs);
    case OpId::matmul:
      return OfMatmul(inputs);
    case OpId::resample2d:
      return OfResample(attrs);
    default:
      return kPlain;
  }
}

RefPtr<GraphNode> ShownNode(const TensorState& tensor) {
  const RefPtr<GraphNode>& written = tensor.storage()->written_by;
  const RefPtr<GraphNode>& node = tensor.node;
  const bool made = !tensor.is_leaf && node;
  if (!written || (!made && tensor.requires_grad)) return made ? node : nullptr;
  // A view made after the write knows it.
  if (made &&
      (node == written || absl::c_linear_search(node->inputs, written))) {
    return node;
  }
  const bool view =
      made && node->op != OpId::kCount && GetOp(node->op).has(kView);
  GraphEdges next;
  AddGraphEdges(tensor, &next);
  return Pretended(view ? "AsStridedBackward0" : "torch::autograd::CopySlices",
                   std::move(next));
}

GraphEdges ShownInputs(const GraphNode& node) {
  if (node.shown) return node.shown->next;
  // Edges to aliases' writes would make it more.
  const size_t count = node.overload == kPlain ? 3 : 2;
  const bool flat = node.overload == kPlain || node.overload == kProduct;
  if (node.op != OpId::linear || !flat || node.inputs.size() != count) {
    return node.inputs;
  }
  // addmm(bias, input, weight.t())
  GraphEdges edges;
  if (count == 3) edges.push_back(node.inputs[2]);
  edges.push_back(node.inputs[0]);
  edges.push_back(node.inputs[1] ? Pretended("TBackward0", {node.inputs[1]})
                                 : nullptr);
  return edges;
}

bool SameShown(const GraphNode& a, const GraphNode& b) {
  if (&a == &b) return true;
  if (!IsPretended(a) || !IsPretended(b)) return false;
  return a.shown->name == b.shown->name && a.shown->next == b.shown->next;
}

size_t ShownHash(const GraphNode& node) {
  if (!IsPretended(node)) return absl::HashOf(&node);
  size_t hash = absl::HashOf(node.shown->name);
  for (const RefPtr<GraphNode>& next : node.shown->next) {
    hash = absl::HashOf(hash, next.get());
  }
  return hash;
}

std::string ShownName(const GraphNode& node) {
  if (node.function) return absl::StrCat(node.function->name(), "Backward");
  if (node.is_leaf()) return "torch::autograd::AccumulateGrad";
  if (node.shown) return node.shown->name;
  if (node.op == OpId::kCount) return "ReleasedFunctionBackward";
  if (const char* known = KnownName(node.op, node.overload)) return known;
  // "index_select" -> "IndexSelectBackward0", PyTorch's style.
  std::string name;
  bool upper = true;
  for (const char c : GetOp(node.op).name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name.push_back(upper ? absl::ascii_toupper(c) : c);
    upper = false;
  }
  return absl::StrCat(name, "Backward", node.overload == kNumberOne ? 1 : 0);
}

}  // namespace holdfast::client
