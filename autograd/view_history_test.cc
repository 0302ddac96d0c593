// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes through views of one tensor: what its gradient and theirs become.
#include "autograd/view_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/engine.h"
#include "autograd/reference_sink.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;

class ViewHistoryTest : public testing::Test {
 protected:
  RefPtr<ViewHistory> HistoryOf(const Value& whole) {
    return MakeRef<ViewHistory>(whole->spec(), whole->GradientEdge());
  }
  Value MulBy(const Value& a, double number, bool inplace = false) {
    return RunAll(sink_, OpId::mul, {a, nullptr}, {{"other", number}},
                  inplace)[0];
  }
  Value View(const Value& of, const Dims& size, const Dims& stride,
             int64_t offset) {
    return RunOne(
        sink_, OpId::as_strided, {of},
        {{"size", size}, {"stride", stride}, {"storage_offset", offset}});
  }
  // `value` as it is after all writes: with the history that `edge` says.
  Value Now(const Value& value, const Edge& edge) {
    Value now = sink_.Alias(value);
    if (edge) now->SetHistory(edge.node, edge.output);
    return now;
  }
  Value Read(const ViewHistory& history, const Value& view) {
    absl::StatusOr<Edge> edge = history.ReadView(view->spec());
    EXPECT_TRUE(edge.ok()) << edge.status();
    return Now(view, *edge);
  }
  void Write(ViewHistory& history, const Value& written) {
    const absl::Status status =
        history.WriteView(written->spec(), written->GradientEdge(), sink_);
    EXPECT_TRUE(status.ok()) << status;
  }
  // d(weights . root) / d leaf
  Doubles Gradient(const Value& root, Doubles weights, const Value& leaf) {
    const Value weight =
        NewTensor(DType::kFloat64, root->spec().shape, std::move(weights));
    BackwardOptions options;
    options.retain_graph = true;
    auto result =
        RunBackward(sink_, {&root, 1}, {&weight, 1}, {&leaf, 1}, options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok() || !(*result)[0]) return {};
    return AsReference((*result)[0]).Read().v;
  }

  ReferenceSink sink_;
  const Value leaf_ = NewLeaf({4}, {1, 2, 3, 4});
};

TEST_F(ViewHistoryTest, AWriteThroughAViewReachesTheWhole) {
  const Value whole = MulBy(leaf_, 2);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  const Value view = View(whole, {2}, {1}, 1);
  Write(*history, MulBy(view, 10, /*inplace=*/true));
  EXPECT_EQ(history->writes(), 1u);
  EXPECT_THAT(AsReference(whole).Read().v, ElementsAre(2, 40, 60, 8));
  EXPECT_THAT(Gradient(Now(whole, history->edge()), {1, 2, 3, 4}, leaf_),
              ElementsAre(2, 40, 60, 8));
}

TEST_F(ViewHistoryTest, OtherViewsReadTheirOwnFromTheWhole) {
  const Value whole = MulBy(leaf_, 2);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  const Value left = View(whole, {2}, {1}, 0);
  const Value odd = View(whole, {2}, {2}, 1);
  Write(*history, MulBy(left, 10, /*inplace=*/true));
  EXPECT_THAT(Gradient(Read(*history, odd), {1, 3}, leaf_),
              ElementsAre(0, 20, 0, 6));
  // And a write through that one is seen by the first.
  Write(*history, MulBy(Read(*history, odd), 5, /*inplace=*/true));
  EXPECT_EQ(history->writes(), 2u);
  EXPECT_THAT(Gradient(Read(*history, left), {1, 1}, leaf_),
              ElementsAre(20, 100, 0, 0));
}

TEST_F(ViewHistoryTest, AWriteToTheWholeReachesItsViews) {
  const Value whole = MulBy(leaf_, 2);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  const Value view = View(whole, {3}, {1}, 1);
  history->WriteWhole(MulBy(whole, 7, /*inplace=*/true)->GradientEdge());
  EXPECT_THAT(Gradient(Read(*history, view), {1, 0, 2}, leaf_),
              ElementsAre(0, 14, 0, 28));
}

TEST_F(ViewHistoryTest, AConstantJoinsTheGraphWhenAViewIsWritten) {
  const Value buffer = NewTensor(DType::kFloat64, {2, 2}, {5, 5, 5, 5});
  const RefPtr<ViewHistory> history = HistoryOf(buffer);
  const Value column = View(buffer, {2}, {2}, 1);
  const Value row = View(buffer, {2}, {1}, 0);
  EXPECT_FALSE(history->edge());
  EXPECT_FALSE(Read(*history, row)->requires_grad());
  const Value two = NewLeaf({2}, {1, 2});
  Write(*history, RunAll(sink_, OpId::mul, {column, two}, {}, true)[0]);
  EXPECT_THAT(Gradient(Now(buffer, history->edge()), {1, 2, 3, 4}, two),
              ElementsAre(10, 20));
  EXPECT_THAT(Gradient(Read(*history, row), {1, 3}, two), ElementsAre(15, 0));
}

TEST_F(ViewHistoryTest, AWholeWithoutRowMajorOrder) {
  // [2, 2], column by column: the whole has no strides in terms of its own
  // elements.
  const Value whole = View(MulBy(leaf_, 2), {2, 2}, {1, 2}, 0);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  const Value row = View(whole, {2}, {2}, 1);  // elements 1 and 3
  Write(*history, MulBy(row, 10, /*inplace=*/true));
  EXPECT_THAT(Gradient(Now(whole, history->edge()), {1, 2, 3, 4}, leaf_),
              ElementsAre(2, 60, 4, 80));
  EXPECT_THAT(Gradient(Read(*history, View(whole, {2}, {1}, 0)), {1, 1}, leaf_),
              ElementsAre(2, 20, 0, 0));
}

TEST_F(ViewHistoryTest, AnEmptyViewChangesNothing) {
  const Value whole = MulBy(leaf_, 2);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  const RefPtr<Node> before = history->edge().node;
  Write(*history, MulBy(View(whole, {0}, {1}, 0), 3, /*inplace=*/true));
  EXPECT_EQ(history->edge().node, before);
  EXPECT_EQ(history->writes(), 1u);
}

TEST_F(ViewHistoryTest, LeavesAreKnown) {
  EXPECT_TRUE(HistoryOf(leaf_)->leaf_requires_grad());
  EXPECT_FALSE(HistoryOf(MulBy(leaf_, 2))->leaf_requires_grad());
  const Value constant = NewTensor(DType::kFloat64, {1}, {0});
  const RefPtr<ViewHistory> history = HistoryOf(constant);
  EXPECT_FALSE(history->leaf_requires_grad());
  constant->SetLeafRequiresGrad(true);
  history->SetLeaf(constant->GradientEdge());
  EXPECT_TRUE(history->leaf_requires_grad());
}

TEST_F(ViewHistoryTest, WhatHasNoGradientIsRefusedByName) {
  const Value whole = MulBy(leaf_, 2);
  const RefPtr<ViewHistory> history = HistoryOf(whole);
  TensorSpec other = whole->spec();
  other.dtype = DType::kFloat32;
  EXPECT_THAT(
      std::string(
          history->WriteView(other, whole->GradientEdge(), sink_).message()),
      HasSubstr("views of another dtype"));
  EXPECT_FALSE(history->ReadView(other).ok());
  TensorSpec wide = whole->spec();
  wide.strides = {0};
  EXPECT_THAT(
      std::string(
          history->WriteView(wide, whole->GradientEdge(), sink_).message()),
      HasSubstr("whose elements may share memory"));
  EXPECT_EQ(history->writes(), 0u);
}

}  // namespace
}  // namespace holdfast
