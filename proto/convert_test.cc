// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <string>

#include "ops/op_schema.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TensorSpec RoundTrip(const TensorSpec& spec) {
  wire::TensorSpec message;
  SpecToProto(spec, &message);
  // Through bytes, as on the wire.
  wire::TensorSpec parsed;
  EXPECT_TRUE(parsed.ParseFromString(message.SerializeAsString()));
  absl::StatusOr<TensorSpec> result = SpecFromProto(parsed);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : TensorSpec{};
}

TEST(SpecTest, RoundTrips) {
  TensorSpec spec = ContiguousSpec(DType::kInt64, {2, 3});
  EXPECT_EQ(RoundTrip(spec), spec);
  spec.strides = {1, 2};
  spec.offset = 7;
  EXPECT_EQ(RoundTrip(spec), spec);
  EXPECT_EQ(RoundTrip(ContiguousSpec(DType::kBool, {})),
            ContiguousSpec(DType::kBool, {}));
  EXPECT_EQ(RoundTrip(ContiguousSpec(DType::kFloat32, {0, 5})),
            ContiguousSpec(DType::kFloat32, {0, 5}));
}

TEST(SpecTest, RowMajorStridesAreLeftOut) {
  wire::TensorSpec message;
  message.add_shape(99);  // what was there goes
  SpecToProto(ContiguousSpec(DType::kFloat32, {2, 3}), &message);
  EXPECT_EQ(message.shape_size(), 2);
  EXPECT_EQ(message.strides_size(), 0);
  EXPECT_EQ(message.dtype(), wire::DTYPE_FLOAT32);
}

TEST(SpecTest, DTypeNumbersAreTheProtocols) {
  for (int i = 1; i < kDTypeLimit; ++i) {
    std::string name = wire::DType_Name(static_cast<wire::DType>(i));
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, "dtype_" + std::string(DTypeName(static_cast<DType>(i))));
  }
  EXPECT_EQ(wire::DType_ARRAYSIZE, kDTypeLimit);
}

wire::TensorSpec Message(int dtype, std::initializer_list<int64_t> shape,
                         std::initializer_list<int64_t> strides = {},
                         int64_t offset = 0) {
  wire::TensorSpec message;
  message.set_dtype(static_cast<wire::DType>(dtype));
  message.mutable_shape()->Add(shape.begin(), shape.end());
  message.mutable_strides()->Add(strides.begin(), strides.end());
  message.set_offset(offset);
  return message;
}

TEST(SpecTest, HostileMessages) {
  EXPECT_TRUE(SpecFromProto(Message(9, {2, 3})).ok());
  for (int dtype : {0, -1, kDTypeLimit, 1 << 30}) {
    EXPECT_FALSE(SpecFromProto(Message(dtype, {2})).ok()) << dtype;
  }
  EXPECT_TRUE(SpecFromProto(Message(12, {2})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {-1})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {kMax, kMax})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {0, kMax, kMax})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2, 3}, {1})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {}, {1})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2}, {-1})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2}, {kMin})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2}, {kMax})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {1}, {kMax})).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2}, {1}, -1)).ok());
  EXPECT_FALSE(SpecFromProto(Message(9, {2}, {1}, kMax)).ok());
  wire::TensorSpec deep = Message(9, {});
  for (int i = 0; i < 100000; ++i) deep.add_shape(1);
  EXPECT_FALSE(SpecFromProto(deep).ok());
  wire::TensorSpec strides = Message(9, {2});
  for (int i = 0; i < 100000; ++i) strides.add_strides(1);
  EXPECT_FALSE(SpecFromProto(strides).ok());
}

// Sends attributes through bytes.
absl::StatusOr<Attrs> RoundTrip(const Attrs& attrs) {
  wire::OpCall call;
  AttrsToProto(attrs, call.mutable_attrs());
  wire::OpCall parsed;
  EXPECT_TRUE(parsed.ParseFromString(call.SerializeAsString()));
  Attrs result(&attrs.schema());
  if (absl::Status s = AttrsFromProto(parsed.attrs(), &result); !s.ok()) {
    return s;
  }
  return result;
}

TEST(AttrsTest, EveryKindRoundTrips) {
  Attrs sum(FindOp("sum"));
  sum.Set("dim", Dims{-1, 0});
  sum.Set("keepdim", true);
  sum.Set("dtype", DType::kFloat64);
  absl::StatusOr<Attrs> back = RoundTrip(sum);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->Ints("dim"), (Dims{-1, 0}));
  EXPECT_TRUE(back->Bool("keepdim"));
  EXPECT_EQ(back->DTypeOr("dtype", DType::kBool), DType::kFloat64);

  Attrs loss(FindOp("nll_loss"));
  loss.Set("reduction", std::string("sum"));
  loss.Set("ignore_index", kMin);
  back = RoundTrip(loss);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->Str("reduction"), "sum");
  EXPECT_EQ(back->Int("ignore_index"), kMin);
}

TEST(AttrsTest, NumbersKeepTheirTypeAndBits) {
  for (const AttrValue& value :
       {AttrValue(true), AttrValue(int64_t{1}), AttrValue(1.0), AttrValue(kMax),
        AttrValue(-0.0), AttrValue(HUGE_VAL)}) {
    Attrs add(FindOp("add"));
    add.Set("other", value);
    absl::StatusOr<Attrs> back = RoundTrip(add);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->Get("other"), value);
  }
}

TEST(AttrsTest, UnsetAndNoneDiffer) {
  Attrs clamp(FindOp("clamp"));
  clamp.Set("max", std::monostate());
  wire::OpCall call;
  AttrsToProto(clamp, call.mutable_attrs());
  ASSERT_EQ(call.attrs_size(), 1);
  EXPECT_EQ(call.attrs(0).slot(), 1u);
  EXPECT_TRUE(call.attrs(0).none());
  absl::StatusOr<Attrs> back = RoundTrip(clamp);
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE(back->IsSet(0));
  EXPECT_TRUE(back->IsSet(1));
}

TEST(AttrsTest, EmptyListIsAList) {
  Attrs view(FindOp("view"));
  const Dims empty;
  view.Set("size", empty);
  absl::StatusOr<Attrs> back = RoundTrip(view);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->IsSet(0));
  EXPECT_EQ(back->Ints("size"), Dims{});
}

TEST(AttrsTest, OneIntForAListIsNormalised) {
  WireAttrs messages;
  wire::Attr* message = messages.Add();
  message->set_slot(0);
  message->set_i(3);
  Attrs conv(FindOp("conv2d"));
  ASSERT_TRUE(AttrsFromProto(messages, &conv).ok());
  EXPECT_EQ(conv.Ints("stride"), (Dims{3, 3}));
}

std::string DecodeError(absl::string_view op, const WireAttrs& messages) {
  Attrs attrs(FindOp(op));
  const absl::Status status = AttrsFromProto(messages, &attrs);
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(AttrsTest, HostileMessages) {
  WireAttrs messages;
  wire::Attr* message = messages.Add();
  message->set_slot(0);
  EXPECT_THAT(DecodeError("cumsum", messages), HasSubstr("must have a value"));
  message->set_f(0.5);
  EXPECT_THAT(DecodeError("cumsum", messages),
              HasSubstr("[cumsum] argument 'dim' must be an int. Got 0.5."));
  message->set_none(true);
  EXPECT_THAT(DecodeError("cumsum", messages), HasSubstr("Got None."));
  message->set_i(0);
  for (uint32_t slot : {2u, 1000u, 0x80000000u, 0xffffffffu}) {
    message->set_slot(slot);
    EXPECT_THAT(DecodeError("cumsum", messages),
                HasSubstr("[cumsum] an attribute slot must be below 2"));
  }
  EXPECT_THAT(DecodeError("relu", messages), HasSubstr("must be below 0"));
  message->set_slot(0);
  *messages.Add() = *message;
  EXPECT_THAT(DecodeError("cumsum", messages), HasSubstr("given once"));

  WireAttrs dtype;
  dtype.Add()->set_dtype(static_cast<wire::DType>(77));
  EXPECT_THAT(DecodeError("to", dtype), HasSubstr("[to] dtype must be one"));
  dtype.Mutable(0)->set_dtype(wire::DTYPE_INVALID);
  EXPECT_THAT(DecodeError("to", dtype), HasSubstr("[to] dtype must be one"));

  WireAttrs list;
  wire::IntList* ints = list.Add()->mutable_ints();
  for (int i = 0; i < 100000; ++i) ints->add_values(1);
  EXPECT_THAT(DecodeError("view", list),
              HasSubstr("a list must have at most 128 entries. Got 100000."));
}

TEST(StatusTest, RoundTripsWithOrigin) {
  absl::Status status = absl::OutOfRangeError("[select] index. Got 5.");
  SetErrorOrigin({"select", 42}, &status);
  wire::Status message;
  StatusToProto(status, &message);
  EXPECT_EQ(message.code(), static_cast<int>(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(message.op(), "select");
  EXPECT_EQ(message.op_sequence(), 42u);
  const absl::Status back = StatusFromProto(message);
  EXPECT_EQ(back.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(back.message(), status.message());
  EXPECT_EQ(GetErrorOrigin(back).op, "select");
  EXPECT_EQ(GetErrorOrigin(back).op_sequence, 42u);
  EXPECT_EQ(back, status);
}

TEST(StatusTest, WithoutOrigin) {
  wire::Status message;
  message.set_op("old");
  StatusToProto(absl::InternalError("x"), &message);
  EXPECT_EQ(message.op(), "");
  EXPECT_EQ(GetErrorOrigin(StatusFromProto(message)).op_sequence, 0u);
  EXPECT_EQ(GetErrorOrigin(absl::OkStatus()).op, "");
}

TEST(StatusTest, OkIsTheEmptyMessage) {
  wire::Status message;
  message.set_message("old");
  StatusToProto(absl::OkStatus(), &message);
  EXPECT_EQ(message.ByteSizeLong(), 0u);
  EXPECT_TRUE(StatusFromProto(message).ok());
  absl::Status ok;
  SetErrorOrigin({"add", 1}, &ok);
  EXPECT_EQ(ok, absl::OkStatus());
}

TEST(StatusTest, UnknownCodesAndBytes) {
  wire::Status message;
  for (int code : {17, 1000, -1, std::numeric_limits<int32_t>::min()}) {
    message.set_code(code);
    EXPECT_EQ(StatusFromProto(message).code(), absl::StatusCode::kUnknown);
  }
  StatusToProto(absl::InvalidArgumentError("bad \xff byte"), &message);
  EXPECT_EQ(message.message(), "bad \\xff byte");
  std::string bytes;
  EXPECT_TRUE(message.SerializeToString(&bytes));
  EXPECT_TRUE(message.ParseFromString(bytes));
}

}  // namespace
}  // namespace holdfast
