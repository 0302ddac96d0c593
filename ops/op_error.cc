// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Long lists of parameters would bury the message.
constexpr size_t kListedTensors = 4;

std::string DescribeList(SpecList list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size() && i < kListedTensors; ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "",
                    list[i] == nullptr ? "None" : list[i]->ToString());
  }
  if (list.size() > kListedTensors) {
    absl::StrAppend(&text, ", ... (", list.size(), " in all)");
  }
  return text + "]";
}

// So would long lists of numbers, and long texts.
constexpr size_t kListedNumbers = 64;
constexpr size_t kListedBytes = 512;

std::string DescribeAttr(const AttrValue& value) {
  if (const Dims* list = std::get_if<Dims>(&value);
      list != nullptr && list->size() > kListedNumbers) {
    const Dims first(list->begin(), list->begin() + kListedNumbers);
    std::string text = AttrToString(first);
    text.pop_back();
    return absl::StrCat(text, ",... (", list->size(), " in all)]");
  }
  if (const std::string* text = std::get_if<std::string>(&value);
      text != nullptr && text->size() > kListedBytes) {
    return absl::StrCat(AttrToString(text->substr(0, kListedBytes)), "... (",
                        text->size(), " bytes in all)");
  }
  return AttrToString(value);
}

// "input=f32[2,3], other=2.5": tensors, numbers and the attributes that the
// call set, in signature order. Works for malformed calls too.
std::string Describe(const Attrs& attrs, SpecList inputs) {
  const OpSchema& schema = attrs.schema();
  const size_t per_list =
      schema.num_lists > 0 ? inputs.size() / schema.num_lists : 0;
  std::string text;
  for (const OpParam& param : schema.params) {
    std::string value;
    if (param.kind == ParamKind::kTensorList) {
      value =
          DescribeList(inputs.subspan(param.tensor_slot * per_list, per_list));
    } else if (param.tensor_slot >= 0 &&
               param.tensor_slot < static_cast<int>(inputs.size()) &&
               inputs[param.tensor_slot] != nullptr) {
      value = inputs[param.tensor_slot]->ToString();
    } else if (param.attr_slot >= 0 && attrs.IsSet(param.attr_slot)) {
      value = DescribeAttr(attrs.Get(param.attr_slot));
    } else {
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : ", ", param.name, "=", value);
  }
  return text;
}

}  // namespace

absl::Status OpErrorAs(absl::StatusCode code, const Attrs& attrs,
                       SpecList inputs, absl::string_view message) {
  const std::string got = Describe(attrs, inputs);
  absl::ConsumeSuffix(&message, ".");
  return absl::Status(code,
                      absl::StrCat("[", attrs.schema().name, "] ", message,
                                   got.empty() ? "" : ". Got ", got, "."));
}

absl::Status OpError(const Attrs& attrs, SpecList inputs,
                     absl::string_view message) {
  return OpErrorAs(absl::StatusCode::kInvalidArgument, attrs, inputs, message);
}

}  // namespace holdfast
