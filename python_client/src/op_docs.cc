// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What help() says of the op table's functions: the row's line, what the
// function takes beside the row's parameters, and an example. Tests run the
// examples (python_client/tests/test_op_help.py).

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "python_client/src/op_function.h"

namespace holdfast::python {
namespace {

// What Python's overloads take beside the row (holdfast/elementwise.py).
struct Extra {
  absl::string_view op, parameter, text;
};
constexpr Extra kExtras[] = {
    {"add", "alpha=1", "alpha: what other is multiplied by first."},
    {"sub", "alpha=1", "alpha: what other is multiplied by first."},
    {"div", "rounding_mode=None",
     "rounding_mode: None, 'trunc' (towards zero) or 'floor'."},
    {"round", "decimals=0", "decimals: digits behind the point that stay."},
};

// Those that programs use most. A function that has one here has a page of the
// same name in PyTorch's documentation.
struct Example {
  absl::string_view op, text;
};
constexpr Example kExamples[] = {
    {"abs", ">>> torch.abs(torch.tensor([-1, 2]))\ntensor([1, 2])"},
    {"add",
     ">>> torch.add(torch.tensor([1, 2]), torch.tensor([[10], [20]]))\n"
     "tensor([[11, 12],\n        [21, 22]])\n"
     ">>> torch.add(torch.tensor([1, 2]), 10, alpha=3)\ntensor([31, 32])"},
    {"all",
     ">>> torch.all(torch.tensor([[1, 0], [1, 1]]), dim=1)\n"
     "tensor([False,  True])"},
    {"amax",
     ">>> torch.amax(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([5, 4])"},
    {"amin",
     ">>> torch.amin(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([1, 3])"},
    {"any",
     ">>> torch.any(torch.tensor([[0, 0], [0, 1]]), dim=1)\n"
     "tensor([False,  True])"},
    {"argmax",
     ">>> torch.argmax(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([1, 0])"},
    {"argmin",
     ">>> torch.argmin(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([0, 1])"},
    {"cat",
     ">>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])\n"
     "tensor([1, 2, 3])"},
    {"clamp",
     ">>> torch.clamp(torch.tensor([-1, 2, 5]), min=0, max=3)\n"
     "tensor([0, 2, 3])"},
    {"cumsum",
     ">>> torch.cumsum(torch.tensor([1, 2, 3]), dim=0)\n"
     "tensor([1, 3, 6])"},
    {"div",
     ">>> torch.div(torch.tensor([7, -7]), 2)\ntensor([ 3.5000, -3.5000])\n"
     ">>> torch.div(torch.tensor([7, -7]), 2, rounding_mode='floor')\n"
     "tensor([ 3, -4])"},
    {"eq", ">>> torch.eq(torch.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"exp",
     ">>> torch.exp(torch.tensor([0., 1.]))\n"
     "tensor([1.0000, 2.7183])"},
    {"eye", ">>> torch.eye(2)\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"flip",
     ">>> torch.flip(torch.tensor([1, 2, 3]), [0])\n"
     "tensor([3, 2, 1])"},
    {"full", ">>> torch.full((2, 2), 7)\ntensor([[7, 7],\n        [7, 7]])"},
    {"gather",
     ">>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1,\n"
     "...              torch.tensor([[0, 0], [1, 0]]))\n"
     "tensor([[1, 1],\n        [4, 3]])"},
    {"gt", ">>> torch.gt(torch.tensor([1, 2]), 1)\ntensor([False,  True])"},
    {"index_select",
     ">>> torch.index_select(torch.tensor([5, 6, 7]), 0, "
     "torch.tensor([2, 0]))\ntensor([7, 5])"},
    {"log",
     ">>> torch.log(torch.tensor([1., 10.]))\n"
     "tensor([0.0000, 2.3026])"},
    {"lt", ">>> torch.lt(torch.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"matmul",
     ">>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))\n"
     "tensor([3, 7])"},
    {"maximum",
     ">>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 4]))"
     "\ntensor([3, 5])"},
    {"mean",
     ">>> torch.mean(torch.tensor([[1., 2.], [3., 4.]]), dim=0)\n"
     "tensor([2., 3.])"},
    {"minimum",
     ">>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 4]))"
     "\ntensor([1, 4])"},
    {"mul",
     ">>> torch.mul(torch.tensor([1, 2]), torch.tensor([[10], [20]]))\n"
     "tensor([[10, 20],\n        [20, 40]])"},
    {"ne", ">>> torch.ne(torch.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"neg", ">>> torch.neg(torch.tensor([1, -2]))\ntensor([-1,  2])"},
    {"nonzero",
     ">>> torch.nonzero(torch.tensor([0, 3, 4]))\n"
     "tensor([[1],\n        [2]])"},
    {"permute",
     ">>> tuple(torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape)\n"
     "(4, 2, 3)"},
    {"pow", ">>> torch.pow(torch.tensor([1, 2, 3]), 2)\ntensor([1, 4, 9])"},
    {"prod", ">>> torch.prod(torch.tensor([2, 3]))\ntensor(6)"},
    {"reciprocal",
     ">>> torch.reciprocal(torch.tensor([2., 4.]))\n"
     "tensor([0.5000, 0.2500])"},
    {"round",
     ">>> torch.round(torch.tensor([1.25, 2.5]))\ntensor([1., 2.])\n"
     ">>> torch.round(torch.tensor([1.23]), decimals=1)\n"
     "tensor([1.2000])"},
    {"scatter",
     ">>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), "
     "torch.tensor([5., 6.]))\ntensor([6., 0., 5.])"},
    {"sigmoid",
     ">>> torch.sigmoid(torch.tensor([0., 2.]))\n"
     "tensor([0.5000, 0.8808])"},
    {"softmax",
     ">>> torch.softmax(torch.tensor([0., 0.]), dim=0)\n"
     "tensor([0.5000, 0.5000])"},
    {"sqrt", ">>> torch.sqrt(torch.tensor([4., 9.]))\ntensor([2., 3.])"},
    {"squeeze",
     ">>> tuple(torch.squeeze(torch.ones(2, 1, 3)).shape)\n"
     "(2, 3)"},
    {"sub", ">>> torch.sub(torch.tensor([5, 6]), 1, alpha=2)\ntensor([3, 4])"},
    {"sum",
     ">>> torch.sum(torch.tensor([[1, 2], [3, 4]]), dim=1, "
     "keepdim=True)\ntensor([[3],\n        [7]])"},
    {"tanh",
     ">>> torch.tanh(torch.tensor([0., 1.]))\n"
     "tensor([0.0000, 0.7616])"},
    {"transpose",
     ">>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)\n"
     "tensor([[1, 3],\n        [2, 4]])"},
    {"tril",
     ">>> torch.tril(torch.ones(2, 2))\n"
     "tensor([[1., 0.],\n        [1., 1.]])"},
    {"triu",
     ">>> torch.triu(torch.ones(2, 2))\n"
     "tensor([[1., 1.],\n        [0., 1.]])"},
    {"unsqueeze",
     ">>> tuple(torch.unsqueeze(torch.ones(2), 0).shape)\n"
     "(1, 2)"},
    {"where",
     ">>> torch.where(torch.tensor([True, False]), torch.tensor([1, 2]), 0)\n"
     "tensor([1, 0])"},
};

const Extra* ExtraOf(const OpSchema& schema) {
  for (const Extra& extra : kExtras) {
    if (extra.op == schema.name) return &extra;
  }
  return nullptr;
}

const Example* ExampleOf(const OpSchema& schema) {
  for (const Example& example : kExamples) {
    if (example.op == schema.name) return &example;
  }
  return nullptr;
}

// A result that the caller gives: what is no view of the operands.
bool TakesOut(const OpSchema& schema, bool inplace, bool method) {
  return !inplace && !method && !schema.has(kView) && schema.num_outputs > 0;
}

bool Creates(const OpSchema& schema) { return schema.num_tensors == 0; }

bool Broadcasts(const OpSchema& schema) {
  int operands = 0;
  for (const OpParam& param : schema.params) {
    if (param.kind == ParamKind::kOperand) ++operands;
  }
  return schema.has(kElementwise) && operands > 1;
}

}  // namespace

std::vector<std::string> ExtraParameters(const OpSchema& schema, bool inplace,
                                         bool method) {
  std::vector<std::string> more;
  if (const Extra* extra = ExtraOf(schema)) {
    more.emplace_back(extra->parameter);
  }
  if (schema.has(kRandom)) more.push_back("generator=None");
  if (Creates(schema)) {
    more.push_back("device=None");
    more.push_back("requires_grad=False");
  }
  if (TakesOut(schema, inplace, method)) more.push_back("out=None");
  return more;
}

std::string OpHelp(const OpSchema& schema, bool inplace, bool method) {
  std::vector<std::string> parts;
  if (inplace && !schema.has(kInplaceOnly)) {
    parts.push_back(absl::StrCat(schema.doc, "\n\nIn place: input holds the ",
                                 "result, and is returned."));
  } else {
    parts.push_back(schema.doc);
  }
  std::vector<absl::string_view> sentences;
  if (Broadcasts(schema)) {
    sentences.push_back(
        "Operands are tensors or numbers. Their shapes are broadcast, and "
        "their "
        "types\npromoted, as PyTorch's.");
  }
  if (schema.has(kView)) {
    sentences.push_back("A view: it shares input's memory.");
  }
  if (const Extra* extra = ExtraOf(schema)) sentences.push_back(extra->text);
  if (TakesOut(schema, inplace, method)) {
    sentences.push_back(
        "out: a tensor that takes the result, and is returned.");
  }
  if (!sentences.empty()) parts.push_back(absl::StrJoin(sentences, "\n"));
  if (const Example* example = ExampleOf(schema); example && !inplace) {
    parts.push_back(absl::StrCat(example->text));
    parts.push_back(
        absl::StrCat("https://docs.pytorch.org/docs/stable/generated/torch.",
                     schema.name, ".html"));
  }
  return absl::StrJoin(parts, "\n\n");
}

}  // namespace holdfast::python
