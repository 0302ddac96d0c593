// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Op calls in one line, for tests: inputs as text ("f32[2,3]", "-" for an
// absent one), attributes by name, and the outcome as text:
//
//   Infer("add", {"f32[2,3]", "i64[3]"})               "f32[2,3]"
//   Infer("add", {"f32[2,3]", "-"}, {{"other", 2.5}})  "f32[2,3]"
//   Infer("transpose", {"f32[2,3]"}, {{"dim0", 0}, {"dim1", 1}})
//                                                      "f32[3,2]{1,3}&0"
//   Infer("view", {"f32[6]"}, {{"size", Dims{4}}})
//                                      "INVALID_ARGUMENT: [view] shape ..."
//
// Strides follow in braces where they are not row-major, "@3" is an offset,
// "&0" says that the output shares input 0's storage.
// Thread-safety: pure functions.
#ifndef HOLDFAST_OPS_INFER_TESTING_H_
#define HOLDFAST_OPS_INFER_TESTING_H_

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast {

inline DType DTypeOfShortName(absl::string_view name) {
  for (int i = 1; i < kDTypeLimit; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (DTypeShortName(dtype) == name) return dtype;
  }
  std::abort();
}

inline Dims ParseDims(absl::string_view text) {
  Dims dims;
  for (absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(part, &value)) std::abort();
    dims.push_back(value);
  }
  return dims;
}

// "f32[2,3]", "f32[3,2]{1,3}", "f32[3,2]{1,3}@4".
inline TensorSpec ParseSpec(absl::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  TensorSpec spec =
      ContiguousSpec(DTypeOfShortName(text.substr(0, open)),
                     ParseDims(text.substr(open + 1, close - open - 1)));
  text.remove_prefix(close + 1);
  if (absl::ConsumePrefix(&text, "{")) {
    const size_t end = text.find('}');
    spec.strides = ParseDims(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (absl::ConsumePrefix(&text, "@")) {
    if (!absl::SimpleAtoi(text, &spec.offset)) std::abort();
  }
  return spec;
}

inline std::string OutputText(const OutputSpec& output) {
  const TensorSpec& spec = output.spec;
  std::string text = spec.ToString();
  if (!spec.contiguous()) {
    absl::StrAppend(&text, "{", absl::StrJoin(spec.strides, ","), "}");
  }
  if (spec.offset != 0) absl::StrAppend(&text, "@", spec.offset);
  if (output.alias >= 0) absl::StrAppend(&text, "&", output.alias);
  return text;
}

// An attribute with the conversions that a test wants to write.
struct TestAttr {
  absl::string_view name;
  AttrValue value;

  TestAttr(absl::string_view n, AttrValue v) : name(n), value(std::move(v)) {}
  TestAttr(absl::string_view n, bool v) : name(n), value(v) {}
  TestAttr(absl::string_view n, int v) : name(n), value(int64_t{v}) {}
  TestAttr(absl::string_view n, int64_t v) : name(n), value(v) {}
  TestAttr(absl::string_view n, double v) : name(n), value(v) {}
  TestAttr(absl::string_view n, const char* v)
      : name(n), value(std::string(v)) {}
};

// One call, kept together with what it points to.
struct TestCall {
  TestCall(absl::string_view op, const std::vector<std::string>& inputs,
           std::initializer_list<TestAttr> values = {})
      : attrs(FindOp(op)) {
    for (const TestAttr& v : values) attrs.Set(v.name, v.value);
    specs.reserve(inputs.size());
    for (const std::string& text : inputs) {
      specs.push_back(text == "-" ? TensorSpec{} : ParseSpec(text));
      pointers.push_back(text == "-" ? nullptr : &specs.back());
    }
  }

  TestCall(const TestCall&) = delete;  // pointers into specs
  TestCall& operator=(const TestCall&) = delete;

  std::string Run(bool inplace = false) const {
    OutputSpecs out;
    const absl::Status status = InferOp(attrs, pointers, inplace, &out);
    if (!status.ok()) return status.ToString();
    return absl::StrJoin(out, " ", [](std::string* s, const OutputSpec& o) {
      s->append(OutputText(o));
    });
  }

  Attrs attrs;
  std::vector<TensorSpec> specs;
  std::vector<const TensorSpec*> pointers;
};

inline std::string Infer(absl::string_view op,
                         const std::vector<std::string>& inputs,
                         std::initializer_list<TestAttr> attrs = {}) {
  return TestCall(op, inputs, attrs).Run();
}

inline std::string InferInplace(absl::string_view op,
                                const std::vector<std::string>& inputs,
                                std::initializer_list<TestAttr> attrs = {}) {
  return TestCall(op, inputs, attrs).Run(/*inplace=*/true);
}

}  // namespace holdfast

#endif  // HOLDFAST_OPS_INFER_TESTING_H_
