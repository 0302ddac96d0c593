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
#include "python_client/src/op_examples.h"
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
