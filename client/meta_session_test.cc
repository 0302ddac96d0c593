// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/meta_session.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

class MetaSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto session = OpenMetaSession();
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
  }

  // REQUIRES: an op of one output whose attributes have defaults.
  absl::StatusOr<Tensor> Apply(OpId id, std::vector<Tensor> inputs) {
    const Attrs attrs(&AllOps()[static_cast<size_t>(id)]);
    Tensor output;
    absl::Status status =
        session_->Apply(attrs, inputs, false, true, absl::MakeSpan(&output, 1));
    if (!status.ok()) return status;
    return output;
  }

  Tensor Make(std::vector<int64_t> shape) {
    const std::vector<float> data(
        static_cast<size_t>(NumElements(Dims(shape.begin(), shape.end()))));
    return *session_->Put(DType::kFloat32, shape, data.data(), 0, nullptr);
  }

  std::shared_ptr<Session> session_;
};

TEST_F(MetaSessionTest, OpsHaveSizesAndTypes) {
  const auto product = Apply(OpId::matmul, {Make({2000, 3}), Make({3, 4})});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ((*product)->spec().ToString(), "f32[2000,4]");
  EXPECT_EQ(Apply(OpId::matmul, {Make({2, 3}), Make({2, 3})}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MetaSessionTest, ReadsFailAndWaitsEnd) {
  const Tensor tensor = Make({2});
  const auto read = session_->StartRead(tensor, false);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto value = session_->WaitRead(*read, nullptr);
  EXPECT_EQ(value.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(value.status().message().find("to_empty"), std::string::npos);
  EXPECT_TRUE(session_->Synchronize(nullptr).ok());
}

TEST_F(MetaSessionTest, GradientsAreNamed) {
  const Tensor tensor = Make({2});
  ASSERT_TRUE(session_->SetRequiresGrad(tensor, true).ok());
  const auto sum = Apply(OpId::exp, {tensor});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_TRUE((*sum)->requires_grad);
}

TEST_F(MetaSessionTest, KnowsWhatItIs) {
  EXPECT_TRUE(IsMeta(*session_));
  EXPECT_EQ(session_->device(), "meta");
  EXPECT_TRUE(session_->Close(false).ok());
}

}  // namespace
}  // namespace holdfast::client
