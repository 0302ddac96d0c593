// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/op_schema.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "ops/op_id.h"

namespace holdfast {
namespace {

std::string ParseError(absl::string_view signature, uint32_t flags = kNone) {
  absl::StatusOr<OpSchema> schema = ParseOpRow("op", signature, flags);
  return schema.ok() ? "" : std::string(schema.status().message());
}

TEST(OpTableTest, EveryRowHoldsTogether) {
  ASSERT_EQ(AllOps().size(), static_cast<size_t>(kNumOps));
  std::set<std::string> names;
  for (int i = 0; i < kNumOps; ++i) {
    const OpSchema& op = AllOps()[i];
    SCOPED_TRACE(op.name);
    EXPECT_EQ(static_cast<int>(op.id), i);
    EXPECT_EQ(&GetOp(op.id), &op);
    EXPECT_EQ(FindOp(op.name), &op);
    EXPECT_TRUE(names.insert(op.name).second);
    EXPECT_NE(op.infer, nullptr);
    EXPECT_GE(op.since, 1);
    EXPECT_FALSE(op.doc.empty());
    EXPECT_EQ(op.doc.back(), '.');
    EXPECT_EQ(static_cast<int>(op.tensor_params.size()), op.num_tensors);
    EXPECT_EQ(static_cast<int>(op.attr_params.size()), op.num_attrs);
    for (int slot = 0; slot < op.num_tensors; ++slot) {
      EXPECT_EQ(op.params[op.tensor_params[slot]].tensor_slot, slot);
    }
    for (int slot = 0; slot < op.num_attrs; ++slot) {
      const OpParam& param = op.params[op.attr_params[slot]];
      EXPECT_EQ(param.attr_slot, slot);
      // Defaults pass the check that values from clients pass.
      if (param.has_default) {
        EXPECT_TRUE(CheckAttr(op, slot, param.default_value).ok());
      }
    }
    // In-place names are a form of an op, never ops.
    EXPECT_NE(op.name.back(), '_');
  }
}

TEST(OpTableTest, UnknownNames) {
  EXPECT_EQ(FindOp(""), nullptr);
  EXPECT_EQ(FindOp("add_"), nullptr);
  EXPECT_EQ(FindOp("no_such_op"), nullptr);
}

TEST(OpTableTest, Slots) {
  const OpSchema& conv = GetOp(OpId::conv2d);
  EXPECT_EQ(conv.num_tensors, 3);
  EXPECT_EQ(conv.num_attrs, 4);
  EXPECT_EQ(conv.num_outputs, 1);
  EXPECT_EQ(conv.params[2].kind, ParamKind::kOptTensor);
  EXPECT_EQ(conv.params[3].repeat, 2);
  EXPECT_EQ(conv.params[3].default_value, AttrValue(Dims{1, 1}));
  EXPECT_EQ(conv.required_attrs, 0u);

  const OpSchema& add = GetOp(OpId::add);
  EXPECT_EQ(add.params[1].kind, ParamKind::kOperand);
  EXPECT_EQ(add.params[1].tensor_slot, 1);
  EXPECT_EQ(add.params[1].attr_slot, 1);
  EXPECT_EQ(add.promoted_inputs, 0b11u);
  EXPECT_EQ(add.required_attrs, 0u);

  const OpSchema& where = GetOp(OpId::where);
  EXPECT_EQ(where.promoted_inputs, 0b110u);

  const OpSchema& adam = GetOp(OpId::adam);
  EXPECT_EQ(adam.num_lists, 4);
  EXPECT_EQ(adam.num_outputs, 0);
  EXPECT_TRUE(adam.params[0].mutated);
  EXPECT_FALSE(adam.params[1].mutated);
  EXPECT_TRUE(adam.params[4].keyword_only);
  EXPECT_EQ(adam.params[7].default_value, AttrValue(1e-8));
  // lr and step have no defaults.
  EXPECT_EQ(adam.required_attrs, 0b10000001u);

  const OpSchema& pool = GetOp(OpId::max_pool2d);
  EXPECT_EQ(pool.num_outputs, 2);
  EXPECT_TRUE(pool.params[2].nullable);
  EXPECT_EQ(pool.params[2].repeat, 2);
}

TEST(ParseOpRowTest, EveryType) {
  absl::StatusOr<OpSchema> schema = ParseOpRow(
      "op",
      "(Tensor a, Tensor? b, Operand c, Operand? d=None, int e=-3, "
      "int? f=None, int[] g=[1,2], int[3]? h=7, *, float i=1, bool j=True, "
      "Scalar k=2, str l='x, y', dtype? m=None, float n) -> (Tensor o, "
      "Tensor p)",
      kNone);
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->num_tensors, 4);
  EXPECT_EQ(schema->num_attrs, 12);
  EXPECT_EQ(schema->num_outputs, 2);
  EXPECT_EQ(schema->params[3].kind, ParamKind::kOptOperand);
  EXPECT_EQ(schema->params[4].default_value, AttrValue(int64_t{-3}));
  EXPECT_EQ(schema->params[6].default_value, AttrValue(Dims{1, 2}));
  EXPECT_EQ(schema->params[7].default_value, AttrValue(Dims{7, 7, 7}));
  EXPECT_FALSE(schema->params[7].keyword_only);
  EXPECT_TRUE(schema->params[8].keyword_only);
  EXPECT_EQ(schema->params[8].default_value, AttrValue(1.0));
  EXPECT_EQ(schema->params[10].default_value, AttrValue(int64_t{2}));
  EXPECT_EQ(schema->params[11].default_value, AttrValue(std::string("x, y")));
  EXPECT_EQ(schema->required_attrs, 1u << 11);
}

TEST(ParseOpRowTest, EmptyParameters) {
  absl::StatusOr<OpSchema> schema = ParseOpRow("op", "() -> Tensor", kNone);
  ASSERT_TRUE(schema.ok());
  EXPECT_TRUE(schema->params.empty());
}

TEST(ParseOpRowTest, MalformedRowsSayWhatIsWrong) {
  EXPECT_EQ(ParseError("(Tensor a) -> Tensor"), "");
  EXPECT_NE(ParseError(""), "");
  EXPECT_NE(ParseError("(Tensor a"), "");
  EXPECT_NE(ParseError("(Tensor a)"), "");
  EXPECT_NE(ParseError("(Tensor a) -> int"), "");
  EXPECT_NE(ParseError("(Tensor a) -> Tensor x"), "");
  EXPECT_NE(ParseError("(Tensor a,Tensor b) -> Tensor"), "");
  EXPECT_NE(ParseError("(Tensr a) -> Tensor"), "");
  EXPECT_NE(ParseError("(Tensor) -> Tensor"), "");
  EXPECT_NE(ParseError("(Tensor 2a) -> Tensor"), "");
  EXPECT_NE(ParseError("(Tensor a, Tensor a) -> Tensor"), "");
  EXPECT_NE(ParseError("(float[] a) -> Tensor"), "");
  EXPECT_NE(ParseError("(int[0] a) -> Tensor"), "");
  EXPECT_NE(ParseError("(int[x] a) -> Tensor"), "");
  EXPECT_NE(ParseError("(int[2 a) -> Tensor"), "");
  EXPECT_NE(ParseError("(int a=1.5) -> Tensor"), "");
  EXPECT_NE(ParseError("(int a=None) -> Tensor"), "");
  EXPECT_NE(ParseError("(int a=) -> Tensor"), "");
  EXPECT_NE(ParseError("(bool a=1) -> Tensor"), "");
  EXPECT_NE(ParseError("(str a='x) -> Tensor"), "");
  EXPECT_NE(ParseError("(int[2] a=[1,2,3]) -> Tensor"), "");
  EXPECT_NE(ParseError("(int[] a=[1,) -> Tensor"), "");
  EXPECT_NE(ParseError("(Operand a=3) -> Tensor"), "");
  EXPECT_NE(ParseError("(int a=1, int b) -> Tensor"), "");
  EXPECT_NE(ParseError("(*, int a, *, int b) -> Tensor"), "");
  EXPECT_NE(ParseError("(Tensor[]? a) -> Tensor"), "");
  EXPECT_NE(ParseError("(int! a) -> Tensor"), "");
  EXPECT_NE(ParseOpRow("bad name", "(Tensor a) -> Tensor", kNone).status(),
            absl::OkStatus());
  EXPECT_EQ(ParseError("(Tensr a) -> Tensor"),
            "unknown type at \"Tensr a) -> Tensor\"");
}

TEST(ParseOpRowTest, FlagsAndSignatureAgree) {
  EXPECT_NE(ParseError("(Tensor! a) -> Tensor"), "");
  EXPECT_EQ(ParseError("(Tensor! a) -> Tensor", kInplaceOnly), "");
  EXPECT_NE(ParseError("(Tensor a) -> Tensor", kInplaceOnly), "");
  EXPECT_EQ(ParseError("(Tensor[]! a) -> ()", kMutates), "");
  EXPECT_NE(ParseError("(Tensor[]! a) -> Tensor", kMutates), "");
  EXPECT_NE(ParseError("(Tensor a) -> ()"), "");
  EXPECT_NE(ParseError("(Tensor[] a, Tensor b) -> Tensor"), "");
  EXPECT_NE(ParseError("(int a) -> Tensor", kInplace), "");
  EXPECT_NE(ParseError("(Tensor a) -> (Tensor b, Tensor c)", kView), "");
}

TEST(FingerprintTest, ChangesWithEveryMeaningfulField) {
  std::vector<OpSchema> rows = {
      *ParseOpRow("first", "(Tensor a) -> Tensor", kNone),
      *ParseOpRow("second", "(Tensor a, int b=1) -> Tensor", kNoGrad)};
  const uint64_t base = FingerprintOf(rows);
  EXPECT_EQ(base, FingerprintOf(rows));

  std::vector<OpSchema> changed = rows;
  changed[0].name = "First";
  EXPECT_NE(FingerprintOf(changed), base);
  changed = rows;
  changed[1] = *ParseOpRow("second", "(Tensor a, int b=2) -> Tensor", kNoGrad);
  EXPECT_NE(FingerprintOf(changed), base);
  changed = rows;
  changed[1].flags = kNone;
  EXPECT_NE(FingerprintOf(changed), base);
  changed = {rows[1], rows[0]};
  EXPECT_NE(FingerprintOf(changed), base);
  changed = {rows[0]};
  EXPECT_NE(FingerprintOf(changed), base);
  // Text that moves across a field's border.
  changed = rows;
  changed[0].name = "first(";
  changed[0].signature = "Tensor a) -> Tensor";
  EXPECT_NE(FingerprintOf(changed), base);
  // Documentation may change freely.
  changed = rows;
  changed[0].doc = "Something else.";
  EXPECT_EQ(FingerprintOf(changed), base);
}

TEST(FingerprintTest, OfTheTable) {
  EXPECT_EQ(OpTableFingerprint(), FingerprintOf(AllOps()));
  EXPECT_NE(OpTableFingerprint(), 0u);
}

class CheckAttrTest : public testing::Test {
 protected:
  bool Ok(absl::string_view op, absl::string_view name, AttrValue value) {
    const OpSchema& schema = *FindOp(op);
    for (const OpParam& param : schema.params) {
      if (param.name != name) continue;
      status_ = CheckAttr(schema, param.attr_slot, value);
      return status_.ok();
    }
    ADD_FAILURE() << op << " has no " << name;
    return false;
  }

  absl::Status status_;
  const AttrValue none_, yes_{true}, one_{int64_t{1}}, half_{0.5},
      f32_{DType::kFloat32}, list_{Dims{1, 2}}, text_{std::string("x")};
};

TEST_F(CheckAttrTest, Int) {
  EXPECT_TRUE(Ok("cumsum", "dim", one_));
  for (const AttrValue& v : {none_, yes_, half_, f32_, list_, text_}) {
    EXPECT_FALSE(Ok("cumsum", "dim", v)) << AttrToString(v);
  }
  EXPECT_TRUE(Ok("argmax", "dim", none_));
}

TEST_F(CheckAttrTest, Ints) {
  EXPECT_TRUE(Ok("sum", "dim", one_));
  EXPECT_TRUE(Ok("sum", "dim", list_));
  EXPECT_TRUE(Ok("sum", "dim", none_));
  EXPECT_FALSE(Ok("view", "size", none_));
  for (const AttrValue& v : {yes_, half_, f32_, text_}) {
    EXPECT_FALSE(Ok("view", "size", v)) << AttrToString(v);
  }
  EXPECT_TRUE(Ok("view", "size", Dims(kMaxListLength, 1)));
  EXPECT_FALSE(Ok("view", "size", Dims(kMaxListLength + 1, 1)));
  // A hostile list does not come back in the message.
  EXPECT_FALSE(Ok("view", "size", Dims(100000, 1)));
  EXPECT_LT(status_.message().size(), 200u);
}

TEST_F(CheckAttrTest, PairsHaveOneOrTwoEntries) {
  EXPECT_TRUE(Ok("conv2d", "stride", one_));
  EXPECT_TRUE(Ok("conv2d", "stride", Dims{1}));
  EXPECT_TRUE(Ok("conv2d", "stride", Dims{1, 2}));
  EXPECT_FALSE(Ok("conv2d", "stride", Dims{}));
  EXPECT_FALSE(Ok("conv2d", "stride", Dims{1, 2, 3}));
}

TEST_F(CheckAttrTest, NumbersAndFloats) {
  for (const AttrValue& v : {yes_, one_, half_}) {
    EXPECT_TRUE(Ok("add", "other", v)) << AttrToString(v);
    EXPECT_TRUE(Ok("full", "fill_value", v)) << AttrToString(v);
    EXPECT_TRUE(Ok("sgd", "lr", v)) << AttrToString(v);
  }
  for (const AttrValue& v : {none_, f32_, list_, text_}) {
    EXPECT_FALSE(Ok("add", "other", v)) << AttrToString(v);
    EXPECT_FALSE(Ok("full", "fill_value", v)) << AttrToString(v);
    EXPECT_FALSE(Ok("sgd", "lr", v)) << AttrToString(v);
  }
  EXPECT_TRUE(Ok("clamp", "min", none_));
}

TEST_F(CheckAttrTest, BoolStrDType) {
  EXPECT_TRUE(Ok("sum", "keepdim", yes_));
  EXPECT_FALSE(Ok("sum", "keepdim", one_));
  EXPECT_TRUE(Ok("nll_loss", "reduction", text_));
  EXPECT_FALSE(Ok("nll_loss", "reduction", one_));
  EXPECT_TRUE(Ok("to", "dtype", f32_));
  EXPECT_FALSE(Ok("to", "dtype", none_));
  EXPECT_TRUE(Ok("sum", "dtype", none_));
  EXPECT_FALSE(Ok("to", "dtype", static_cast<DType>(0)));
  EXPECT_FALSE(Ok("to", "dtype", static_cast<DType>(99)));
}

TEST_F(CheckAttrTest, Slots) {
  const OpSchema& schema = GetOp(OpId::cumsum);
  EXPECT_FALSE(CheckAttr(schema, -1, one_).ok());
  EXPECT_FALSE(CheckAttr(schema, 2, one_).ok());
  EXPECT_FALSE(CheckAttr(schema, std::numeric_limits<int>::max(), one_).ok());
}

TEST_F(CheckAttrTest, Message) {
  EXPECT_FALSE(Ok("conv2d", "stride", half_));
  EXPECT_EQ(status_.message(),
            "[conv2d] argument 'stride' must be an int or a list of 2 ints. "
            "Got 0.5.");
}

}  // namespace
}  // namespace holdfast
