// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ParseOpRow: the grammar of a signature in ops.def.
//
//   signature := "(" [param {", " param}] ")" " -> " outputs
//   param     := "*" | type " " name ["=" default]
//   type      := base ["[" [digits] "]"] ["?"] ["!"]
//   outputs   := "Tensor" | "(" ["Tensor " name {", Tensor " name}] ")"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

absl::Status Bad(absl::string_view why, absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, " at \"", where.substr(0, 40), "\""));
}

bool IsIdentifier(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// Takes letters, digits and underscores off the front.
absl::string_view TakeWord(absl::string_view* text) {
  size_t n = 0;
  while (n < text->size() &&
         (absl::ascii_isalnum((*text)[n]) || (*text)[n] == '_')) {
    ++n;
  }
  absl::string_view word = text->substr(0, n);
  text->remove_prefix(n);
  return word;
}

struct BaseType {
  absl::string_view name;
  ParamKind single;
  ParamKind list;  // equal to `single`: no list form
};

constexpr BaseType kBaseTypes[] = {
    {"Tensor", ParamKind::kTensor, ParamKind::kTensorList},
    {"Operand", ParamKind::kOperand, ParamKind::kOperand},
    {"int", ParamKind::kInt, ParamKind::kInts},
    {"float", ParamKind::kFloat, ParamKind::kFloat},
    {"bool", ParamKind::kBool, ParamKind::kBool},
    {"Scalar", ParamKind::kScalar, ParamKind::kScalar},
    {"str", ParamKind::kStr, ParamKind::kStr},
    {"dtype", ParamKind::kDType, ParamKind::kDType},
};

absl::Status ParseType(absl::string_view* text, OpParam* param) {
  const absl::string_view start = *text;
  const absl::string_view word = TakeWord(text);
  const BaseType* base = nullptr;
  for (const BaseType& b : kBaseTypes) {
    if (b.name == word) base = &b;
  }
  if (base == nullptr) return Bad("unknown type", start);
  param->kind = base->single;
  if (absl::ConsumePrefix(text, "[")) {
    if (base->list == base->single) return Bad("type has no list form", start);
    param->kind = base->list;
    const absl::string_view count = TakeWord(text);
    if (!count.empty()) {
      if (param->kind != ParamKind::kInts ||
          !absl::SimpleAtoi(count, &param->repeat) || param->repeat < 1 ||
          param->repeat > kMaxRank) {
        return Bad("bad list length", start);
      }
    }
    if (!absl::ConsumePrefix(text, "]")) return Bad("expected ]", *text);
  }
  param->nullable = absl::ConsumePrefix(text, "?");
  param->mutated = absl::ConsumePrefix(text, "!");
  if (param->nullable) {
    if (param->kind == ParamKind::kTensorList) {
      return Bad("a tensor list cannot be None", start);
    }
    if (param->kind == ParamKind::kTensor) param->kind = ParamKind::kOptTensor;
    if (param->kind == ParamKind::kOperand) {
      param->kind = ParamKind::kOptOperand;
    }
  }
  if (param->mutated && param->kind != ParamKind::kTensor &&
      param->kind != ParamKind::kTensorList) {
    return Bad("only a tensor can be written", start);
  }
  return absl::OkStatus();
}

// Takes a number: an integer when it is written as one.
bool TakeNumber(absl::string_view* text, AttrValue* value) {
  size_t n = 0;
  while (n < text->size() && (absl::ascii_isalnum((*text)[n]) ||
                              (*text)[n] == '.' || (*text)[n] == '-')) {
    ++n;
  }
  const absl::string_view token = text->substr(0, n);
  int64_t i = 0;
  double d = 0;
  if (absl::SimpleAtoi(token, &i)) {
    *value = i;
  } else if (absl::SimpleAtod(token, &d)) {
    *value = d;
  } else {
    return false;
  }
  text->remove_prefix(n);
  return true;
}

bool TakeValue(absl::string_view* text, AttrValue* value) {
  if (absl::ConsumePrefix(text, "None")) {
    *value = std::monostate();
  } else if (absl::ConsumePrefix(text, "True")) {
    *value = true;
  } else if (absl::ConsumePrefix(text, "False")) {
    *value = false;
  } else if (absl::ConsumePrefix(text, "'")) {
    const size_t end = text->find('\'');
    if (end == absl::string_view::npos) return false;
    *value = std::string(text->substr(0, end));
    text->remove_prefix(end + 1);
  } else if (absl::ConsumePrefix(text, "[")) {
    Dims list;
    while (!absl::ConsumePrefix(text, "]")) {
      AttrValue entry;
      if (!list.empty() && !absl::ConsumePrefix(text, ",")) return false;
      if (!TakeNumber(text, &entry)) return false;
      const int64_t* i = std::get_if<int64_t>(&entry);
      if (i == nullptr) return false;
      list.push_back(*i);
    }
    *value = std::move(list);
  } else {
    return TakeNumber(text, value);
  }
  return true;
}

bool IsTensorKind(ParamKind kind) {
  return kind == ParamKind::kTensor || kind == ParamKind::kOptTensor ||
         kind == ParamKind::kTensorList || kind == ParamKind::kOperand ||
         kind == ParamKind::kOptOperand;
}
bool IsOperandKind(ParamKind kind) {
  return kind == ParamKind::kOperand || kind == ParamKind::kOptOperand;
}

absl::Status ParseDefault(absl::string_view* text, OpParam* param) {
  const absl::string_view start = *text;
  AttrValue value;
  if (!TakeValue(text, &value)) return Bad("bad default", start);
  param->has_default = true;
  if (IsNone(value)) {
    if (!param->nullable) return Bad("None needs a `?` type", start);
    return absl::OkStatus();
  }
  if (IsTensorKind(param->kind)) {
    return Bad("a tensor's default can only be None", start);
  }
  // CheckAttr and Attrs::Set define what fits and its stored form; apply them
  // through a schema of this one parameter.
  OpSchema single;
  single.name = param->name;
  single.num_attrs = 1;
  single.params.push_back(*param);
  single.attr_params.push_back(0);
  if (!CheckAttr(single, 0, value).ok()) {
    return Bad("default of the wrong type", start);
  }
  Attrs stored(&single);
  stored.Set(0, std::move(value));
  param->default_value = stored.Get(0);
  if (param->kind == ParamKind::kFloat) {
    param->default_value = AttrAsDouble(param->default_value);
  }
  return absl::OkStatus();
}

absl::Status AddParam(OpParam param, OpSchema* schema) {
  for (const OpParam& other : schema->params) {
    if (other.name == param.name) {
      return Bad("parameter named twice", param.name);
    }
  }
  const int index = static_cast<int>(schema->params.size());
  if (IsTensorKind(param.kind)) {
    param.tensor_slot = schema->num_tensors++;
    schema->tensor_params.push_back(index);
    if (param.kind == ParamKind::kTensorList) ++schema->num_lists;
  }
  if (!IsTensorKind(param.kind) || IsOperandKind(param.kind)) {
    param.attr_slot = schema->num_attrs++;
    schema->attr_params.push_back(index);
  }
  if (schema->params.size() >= 32) return Bad("too many parameters", "");
  if (param.attr_slot >= 0 && !param.has_default &&
      !IsOperandKind(param.kind)) {
    schema->required_attrs |= 1u << param.attr_slot;
  }
  schema->params.push_back(std::move(param));
  return absl::OkStatus();
}

absl::Status ParseParams(absl::string_view* text, OpSchema* schema) {
  if (!absl::ConsumePrefix(text, "(")) return Bad("expected (", *text);
  bool keyword_only = false;
  bool default_seen = false;
  bool first = true;
  while (!absl::ConsumePrefix(text, ")")) {
    if (!first && !absl::ConsumePrefix(text, ", ")) {
      return Bad("expected , or )", *text);
    }
    first = false;
    if (absl::ConsumePrefix(text, "*")) {
      if (keyword_only) return Bad("second *", *text);
      keyword_only = true;
      continue;
    }
    OpParam param;
    param.keyword_only = keyword_only;
    if (absl::Status s = ParseType(text, &param); !s.ok()) return s;
    if (!absl::ConsumePrefix(text, " ")) return Bad("expected a name", *text);
    const absl::string_view name = TakeWord(text);
    if (!IsIdentifier(name)) return Bad("expected a name", name);
    param.name = std::string(name);
    if (absl::ConsumePrefix(text, "=")) {
      if (absl::Status s = ParseDefault(text, &param); !s.ok()) return s;
      default_seen = true;
    } else if (default_seen && !keyword_only) {
      return Bad("parameter without default after one with", name);
    }
    if (absl::Status s = AddParam(std::move(param), schema); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ParseOutputs(absl::string_view text, OpSchema* schema) {
  if (!absl::ConsumePrefix(&text, " -> ")) return Bad("expected ->", text);
  schema->num_outputs = 0;
  if (absl::ConsumePrefix(&text, "Tensor")) {
    schema->num_outputs = 1;
  } else {
    if (!absl::ConsumePrefix(&text, "(")) return Bad("expected Tensor", text);
    while (!absl::ConsumePrefix(&text, ")")) {
      if (schema->num_outputs > 0 && !absl::ConsumePrefix(&text, ", ")) {
        return Bad("expected , or )", text);
      }
      if (!absl::ConsumePrefix(&text, "Tensor ")) {
        return Bad("expected Tensor", text);
      }
      if (!IsIdentifier(TakeWord(&text))) return Bad("expected a name", text);
      ++schema->num_outputs;
    }
  }
  if (!text.empty()) return Bad("text after the outputs", text);
  return absl::OkStatus();
}

// What the flags promise about the signature.
absl::Status CheckFlags(const OpSchema& schema) {
  if (schema.num_lists != 0 && schema.num_lists != schema.num_tensors) {
    return Bad("tensor lists do not mix with tensors", schema.signature);
  }
  bool mutated = false;
  for (const OpParam& param : schema.params) mutated |= param.mutated;
  const bool writes = schema.has(kMutates) || schema.has(kInplaceOnly);
  if (mutated != writes) {
    return Bad("`!` goes with kMutates or kInplaceOnly", schema.signature);
  }
  if (schema.has(kMutates) != (schema.num_outputs == 0)) {
    return Bad("kMutates rows, and only they, have no outputs",
               schema.signature);
  }
  if (schema.has(kInplace) || schema.has(kInplaceOnly) || schema.has(kView)) {
    // An in-place form may write the first tensor of its only list.
    const bool one_input = !schema.params.empty() &&
                           schema.params[0].tensor_slot == 0 &&
                           (schema.num_lists == 0 ||
                            (schema.num_lists == 1 && !schema.has(kView)));
    if (!one_input || schema.num_outputs != 1) {
      return Bad("in-place forms and views have input 0 and one output",
                 schema.signature);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpSchema> ParseOpRow(absl::string_view name,
                                    absl::string_view signature,
                                    uint32_t flags) {
  if (!IsIdentifier(name)) return Bad("bad op name", name);
  OpSchema schema;
  schema.id = OpId::kCount;
  schema.name = std::string(name);
  schema.signature = std::string(signature);
  schema.flags = flags;
  absl::string_view rest = signature;
  if (absl::Status s = ParseParams(&rest, &schema); !s.ok()) return s;
  if (absl::Status s = ParseOutputs(rest, &schema); !s.ok()) return s;
  if (absl::Status s = CheckFlags(schema); !s.ok()) return s;
  uint32_t operands = 0;
  for (const OpParam& param : schema.params) {
    if (IsOperandKind(param.kind)) operands |= 1u << param.tensor_slot;
  }
  schema.promoted_inputs =
      operands != 0 ? operands
                    : static_cast<uint32_t>((1ull << schema.num_tensors) - 1);
  return schema;
}

}  // namespace holdfast
