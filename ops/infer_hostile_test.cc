// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every op under random calls, most of them nonsense: whatever a client sends,
// inference neither overflows nor reads out of bounds (the sanitizer builds
// watch), and what it accepts is a valid call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "ops/infer.h"
#include "ops/infer_testing.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

constexpr int kCallsPerOp = 4000;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int Below(int n) { return static_cast<int>(engine_() % n); }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(static_cast<int>(from.size()))];
  }

  // Mostly plausible, sometimes hostile.
  int64_t Int() {
    static const std::vector<int64_t> kHostile = {
        std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max() / 2 + 1,
        std::numeric_limits<int64_t>::min() + 1,
        int64_t{1} << 58,
        int64_t{1} << 46,
        int64_t{1} << 32,
        int64_t{1} << 31,
        -(int64_t{1} << 31),
        100,
        -100};
    return Below(8) == 0 ? Pick(kHostile) : Below(9) - 3;
  }
  Dims IntList() {
    Dims list;
    const int length = Below(20) == 0 ? Below(kMaxListLength + 1) : Below(6);
    for (int i = 0; i < length; ++i) {
      list.push_back(Below(4) == 0 ? Int() : 1 + Below(4));
    }
    return list;
  }
  DType AnyDType() {
    static const std::vector<DType> kUsual = {
        DType::kFloat32, DType::kFloat32, DType::kFloat64,
        DType::kInt64,   DType::kInt64,   DType::kInt32,
        DType::kUInt8,   DType::kBool,    DType::kFloat16};
    return Pick(kUsual);
  }
  // A valid spec: contiguous, permuted, expanded or with gaps.
  TensorSpec Spec(const TensorSpec* like) {
    if (like != nullptr && Below(2) == 0) return *like;
    Dims shape;
    for (int rank = Below(6); rank > 0; --rank) {
      static const std::vector<int64_t> kSizes = {0, 1, 1, 2,      3,
                                                  4, 5, 8, 1 << 20};
      shape.push_back(Pick(kSizes));
    }
    if (!CheckShape(DType::kFloat64, shape).ok()) shape.clear();
    TensorSpec spec = ContiguousSpec(AnyDType(), shape);
    if (like != nullptr && Below(2) == 0) spec.dtype = like->dtype;
    if (Below(3) == 0) {
      std::vector<int> order(shape.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
      std::shuffle(order.begin(), order.end(), engine_);
      TensorSpec permuted = spec;
      for (size_t i = 0; i < order.size(); ++i) {
        permuted.shape[i] = spec.shape[order[i]];
        permuted.strides[i] = spec.strides[order[i]];
      }
      spec = permuted;
    }
    for (int64_t& stride : spec.strides) {
      if (Below(8) == 0) stride = Below(2) == 0 ? 0 : stride * 2;
    }
    spec.offset = Below(3) == 0 ? Below(1000) : 0;
    return CheckFits(spec, kMaxTensorBytes).ok() ? spec : TensorSpec{};
  }
  AttrValue Value(const OpParam& param) {
    if (param.nullable && Below(4) == 0) return std::monostate();
    switch (param.kind) {
      case ParamKind::kInt:
        return Int();
      case ParamKind::kInts: {
        if (param.repeat == 0) return IntList();
        Dims list;
        for (int i = 0; i < param.repeat; ++i) {
          list.push_back(Below(6) == 0 ? Int() : Below(4));
        }
        return list;
      }
      case ParamKind::kBool:
        return Below(2) == 0;
      case ParamKind::kStr:
        return Pick<std::string>({"mean", "sum", "none", "", "\xff"});
      case ParamKind::kDType:
        return AnyDType();
      default:
        break;
    }
    switch (Below(3)) {
      case 0:
        return Below(2) == 0;
      case 1:
        return Int();
      default:
        return Pick<double>(
            {0.0, 0.5, -1.0, 1e300, -1e300, 1e-300, HUGE_VAL, std::nan("")});
    }
  }

 private:
  std::mt19937_64 engine_;
};

// First and last place that a tensor reaches.
std::pair<int64_t, int64_t> Reach(const TensorSpec& spec) {
  int64_t last = spec.offset;
  for (int i = 0; i < spec.rank(); ++i) {
    last += (spec.shape[i] - 1) * spec.strides[i];
  }
  return {spec.offset, last};
}

void CheckAccepted(const OpSchema& op, const std::vector<TensorSpec>& specs,
                   const std::vector<const TensorSpec*>& inputs, bool inplace,
                   const OutputSpecs& out) {
  ASSERT_EQ(static_cast<int>(out.size()), op.num_outputs);
  for (const OutputSpec& output : out) {
    TensorSpec spec = output.spec;
    if (op.has_any(kUnknownSizes)) {  // the rest is for the kernel to tell
      std::replace(spec.shape.begin(), spec.shape.end(), kUnknownSize,
                   int64_t{1});
    }
    ASSERT_TRUE(CheckFits(spec, kMaxTensorBytes).ok())
        << output.spec.ToString();
    if (!op.has(kView)) {
      ASSERT_TRUE(CheckShape(spec.dtype, spec.shape).ok())
          << output.spec.ToString();
    }
    ASSERT_TRUE(IsValidDType(static_cast<int>(output.spec.dtype)));
    if (inplace) {
      ASSERT_EQ(output.spec, specs[0]);
      ASSERT_EQ(output.alias, 0);
    } else if (op.has(kView)) {
      ASSERT_EQ(output.alias, 0);
      ASSERT_EQ(RealType(output.spec.dtype), RealType(inputs[0]->dtype));
      if (output.spec.dtype != inputs[0]->dtype) continue;  // view_as_real
      if (op.id == OpId::as_strided || output.spec.numel() == 0) continue;
      const auto [first, last] = Reach(output.spec);
      const auto [input_first, input_last] = Reach(*inputs[0]);
      ASSERT_GE(first, input_first);
      ASSERT_LE(last, input_last);
    } else {
      ASSERT_EQ(output.alias, -1);
      ASSERT_EQ(output.spec.offset, 0);
      ASSERT_EQ(output.spec.strides, ContiguousStrides(output.spec.shape));
    }
  }
}

void CheckRefused(const OpSchema& op, bool inplace, const absl::Status& status,
                  const OutputSpecs& out) {
  ASSERT_TRUE(out.empty());
  ASSERT_TRUE(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kOutOfRange ||
              status.code() == absl::StatusCode::kUnimplemented)
      << status;
  ASSERT_TRUE(absl::StartsWith(status.message(),
                               "[" + op.name + (inplace ? "_] " : "] ")))
      << status;
  ASSERT_TRUE(absl::EndsWith(status.message(), ".")) << status;
  ASSERT_LT(status.message().size(), 2000u) << status;
}

// True if the call was accepted.
bool RunCall(const Attrs& attrs, const std::vector<TensorSpec>& specs,
             const std::vector<const TensorSpec*>& inputs, bool inplace) {
  ResultType(attrs, inputs);
  OutputSpecs out;
  const absl::Status status = InferOp(attrs, inputs, inplace, &out);
  if (status.ok()) {
    CheckAccepted(attrs.schema(), specs, inputs, inplace, out);
  } else {
    CheckRefused(attrs.schema(), inplace, status, out);
  }
  return status.ok();
}

class HostileTest : public testing::TestWithParam<int> {};

TEST_P(HostileTest, RandomCalls) {
  const OpSchema& op = AllOps()[GetParam()];
  Random random(GetParam() + 1);
  int accepted = 0;
  for (int n = 0; n < kCallsPerOp; ++n) {
    size_t count = op.num_tensors;
    if (op.num_lists > 0) count *= random.Below(3);
    if (random.Below(100) == 0) count = random.Below(5);
    std::vector<TensorSpec> specs;
    std::vector<const TensorSpec*> inputs;
    specs.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      specs.push_back(random.Spec(i == 0 ? nullptr : &specs[0]));
    }
    const bool lists = op.num_lists > 0;
    for (size_t i = 0; i < count; ++i) {
      const bool absent = random.Below(lists ? 50 : 8) == 0;
      inputs.push_back(absent ? nullptr : &specs[i]);
    }
    Attrs attrs(&op);
    for (int slot = 0; slot < op.num_attrs; ++slot) {
      const OpParam& param = op.params[op.attr_params[slot]];
      const bool required = (op.required_attrs >> slot & 1) != 0;
      if (random.Below(required ? 50 : 3) == 0) continue;
      AttrValue value = random.Value(param);
      ASSERT_TRUE(CheckAttr(op, slot, value).ok());
      attrs.Set(slot, std::move(value));
    }
    const bool inplace =
        op.has(kInplaceOnly) || (op.has(kInplace) && random.Below(3) == 0);
    accepted += RunCall(attrs, specs, inputs, inplace) ? 1 : 0;
    if (HasFatalFailure()) return;
  }
  RecordProperty("accepted", accepted);
}

// Calls with so many conditions that random ones never meet them: valid ones,
// with one number changed.
TEST(AlmostValidTest, OneNumberIsWrong) {
  const TestCall kCalls[] = {
      {"conv2d",
       {"f32[2,4,8,8]", "f32[6,2,3,3]", "f32[6]"},
       {{"stride", 2}, {"padding", 1}, {"dilation", 1}, {"groups", 2}}},
      {"conv2d_backward_input",
       {"f32[2,6,4,4]", "f32[6,2,3,3]"},
       {{"input_size", Dims{2, 4, 8, 8}},
        {"stride", 2},
        {"padding", 1},
        {"dilation", 1},
        {"groups", 2}}},
      {"conv2d_backward_weight",
       {"f32[2,6,4,4]", "f32[2,4,8,8]"},
       {{"weight_size", Dims{6, 2, 3, 3}},
        {"stride", 2},
        {"padding", 1},
        {"dilation", 1},
        {"groups", 2}}},
      {"max_pool2d",
       {"f32[2,4,8,8]"},
       {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}, {"dilation", 2}}},
      {"max_pool2d_backward",
       {"f32[2,4,4,4]", "i64[2,4,4,4]"},
       {{"input_size", Dims{2, 4, 8, 8}}}},
      {"max_pool2d_gather", {"f32[2,4,8,8]", "i64[2,4,4,4]"}},
      {"avg_pool2d",
       {"f32[2,4,8,8]"},
       {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}}},
      {"avg_pool2d_backward",
       {"f32[2,4,4,4]"},
       {{"input_size", Dims{2, 4, 8, 8}},
        {"kernel_size", 3},
        {"stride", 2},
        {"padding", 1},
        {"ceil_mode", false},
        {"count_include_pad", true}}},
      {"linear", {"f32[2,3]", "f32[4,3]", "f32[4]"}},
      {"scatter", {"f32[3,4]", "i64[2,3]", "f32[2,3]"}, {{"dim", 0}}},
      {"index_mask", {"f32[2,3,4]", "bool[3]"}, {{"dim", 1}}},
      {"mask_put", {"f32[2,3,4]", "bool[3]", "f32[2,1,4]"}, {{"dim", 1}}},
      {"index", {"f32[2,3,4]", "i64[5]", "i64[2,1]"}, {{"dims", Dims{0, 2}}}},
      {"index_put",
       {"f32[2,3,4]", "f32[2,5,1]", "i64[5]", "i64[2,1]"},
       {{"dims", Dims{0, 2}}}},
      {"scatter_reduce",
       {"f32[3,4]", "i64[2,3]", "f32[2,3]"},
       {{"dim", 0}, {"reduce", "sum"}}},
      {"index_add", {"f32[3,4]", "i64[2]", "f32[2,4]"}, {{"dim", 0}}},
      {"slice_backward",
       {"f32[2,3]"},
       {{"input_size", Dims{2, 8}}, {"dim", 1}, {"start", 1}, {"step", 2}}},
      {"select_backward",
       {"f32[2]"},
       {{"input_size", Dims{2, 8}}, {"dim", 1}, {"index", 7}}},
      {"nll_loss", {"f32[4,9]", "i64[4]", "f32[9]"}},
      {"nll_loss_backward",
       {"f32[]", "i64[4]", "f32[9]", "f32[]"},
       {{"input_size", Dims{4, 9}},
        {"reduction", "mean"},
        {"ignore_index", -100}}},
  };
  Random random(7);
  for (const TestCall& call : kCalls) {
    const OpSchema& op = call.attrs.schema();
    SCOPED_TRACE(op.name);
    ASSERT_TRUE(RunCall(call.attrs, call.specs, call.pointers, false));
    int accepted = 0;
    for (int n = 0; n < kCallsPerOp; ++n) {
      Attrs attrs = call.attrs;
      std::vector<TensorSpec> specs = call.specs;
      std::vector<const TensorSpec*> inputs;
      if (random.Below(3) == 0 && op.num_attrs > 0) {
        const int slot = random.Below(op.num_attrs);
        AttrValue value = attrs.Get(slot);
        if (Dims* list = std::get_if<Dims>(&value); list && !list->empty()) {
          (*list)[random.Below(static_cast<int>(list->size()))] = random.Int();
        } else {
          value = random.Value(op.params[op.attr_params[slot]]);
        }
        attrs.Set(slot, std::move(value));
      } else {
        TensorSpec& spec = specs[random.Below(static_cast<int>(specs.size()))];
        if (spec.rank() > 0 && random.Below(2) == 0) {
          spec.shape[random.Below(spec.rank())] = random.Below(12);
          spec.strides = ContiguousStrides(spec.shape);
        } else {
          spec = random.Spec(nullptr);
        }
      }
      for (const TensorSpec& spec : specs) inputs.push_back(&spec);
      accepted += RunCall(attrs, specs, inputs, false) ? 1 : 0;
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(accepted, kCallsPerOp / 200);
    EXPECT_LT(accepted, kCallsPerOp);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, HostileTest, testing::Range(0, kNumOps),
                         [](const testing::TestParamInfo<int>& info) {
                           return AllOps()[info.param].name;
                         });

}  // namespace
}  // namespace holdfast
