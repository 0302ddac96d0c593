// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/graph.h"

#include <vector>

#include "client/fake_connection_test.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"

namespace holdfast::client {
namespace {

using ::testing::Test;

class GraphTest : public Test {
 protected:
  RefPtr<GraphNode> Leaf() {
    tensors_.push_back(MakeTensor(session_, tensors_.size() + 1));
    RefPtr<GraphNode> node = MakeRef<GraphNode>();
    node->tensor = tensors_.back().get();
    return node;
  }
  static RefPtr<GraphNode> OpNode(
      std::initializer_list<RefPtr<GraphNode>> inputs) {
    RefPtr<GraphNode> node = MakeRef<GraphNode>();
    node->op = OpId::add;
    node->inputs.assign(inputs.begin(), inputs.end());
    return node;
  }

  const std::shared_ptr<Session> session_ =
      MakeFakeSession(std::make_shared<FakeConnection::Peer>(), {});
  std::vector<Tensor> tensors_;
};

TEST_F(GraphTest, EachLeafOnceInOrderOfTheirUse) {
  const auto a = Leaf(), b = Leaf(), c = Leaf(), unused = Leaf();
  const auto left = OpNode({b, a});
  const auto root = OpNode({left, OpNode({left, c}), a});
  const Reach reach = FindReach({root}, {});
  EXPECT_EQ(reach.tensors,
            (std::vector<TensorState*>{b->tensor, a->tensor, c->tensor}));
  EXPECT_EQ(reach.path.size(), 3u);
  EXPECT_FALSE(reach.released);
}

TEST_F(GraphTest, DeadLeavesAndNullEdgesDoNotCount) {
  const auto a = Leaf(), dead = Leaf();
  dead->tensor = nullptr;
  const Reach reach = FindReach({OpNode({a, dead, nullptr})}, {});
  EXPECT_EQ(reach.tensors, std::vector<TensorState*>{a->tensor});
}

TEST_F(GraphTest, TargetsLimitThePath) {
  const auto a = Leaf(), b = Leaf(), other = Leaf();
  const auto to_a = OpNode({a}), to_b = OpNode({b});
  const auto root = OpNode({to_a, to_b});
  GraphNode* targets[] = {a.get(), other.get()};
  const Reach reach = FindReach({root}, targets);
  EXPECT_EQ(reach.tensors, std::vector<TensorState*>{a->tensor});
  EXPECT_EQ(reach.path, (std::vector<GraphNode*>{to_a.get(), root.get()}));
  EXPECT_TRUE(a->on_path);
  EXPECT_FALSE(other->on_path);
}

TEST_F(GraphTest, ATargetMayBeAnOpsResult) {
  const auto a = Leaf();
  const auto middle = OpNode({a}), root = OpNode({middle});
  GraphNode* targets[] = {middle.get()};
  const Reach reach = FindReach({root}, targets);
  EXPECT_TRUE(middle->on_path);
  EXPECT_TRUE(reach.tensors.empty());  // it keeps no gradient of its own
  EXPECT_EQ(reach.path.size(), 2u);
}

TEST_F(GraphTest, ReleaseFreesWhatNobodyHolds) {
  const auto a = Leaf();
  const auto kept = OpNode({a});
  auto root = OpNode({kept, OpNode({kept})});
  ReleaseGraph(FindReach({root}, {}));
  EXPECT_TRUE(root->inputs.empty());
  EXPECT_TRUE(root->released);
  EXPECT_TRUE(kept->unique());
  EXPECT_TRUE(a->unique());
  EXPECT_FALSE(a->released);  // leaves stay usable
  EXPECT_TRUE(FindReach({root}, {}).released);
  EXPECT_FALSE(FindReach({OpNode({a})}, {}).released);
}

TEST_F(GraphTest, ReleaseLeavesWhatSavesNothing) {
  const auto a = Leaf();
  const auto saving = OpNode({a, nullptr});  // a constant input has no node
  const auto root = OpNode({OpNode({a}), saving});
  root->saves_nothing = root->inputs[0]->saves_nothing = true;
  ReleaseGraph(FindReach({root}, {}));
  EXPECT_FALSE(root->released);
  EXPECT_TRUE(saving->released);
  EXPECT_FALSE(FindReach({root->inputs[0]}, {}).released);
  EXPECT_TRUE(FindReach({root}, {}).released);
}

TEST_F(GraphTest, ReleaseLeavesBranchesOffThePathAlone) {
  const auto a = Leaf(), b = Leaf();
  const auto to_a = OpNode({a}), to_b = OpNode({b});
  GraphNode* targets[] = {a.get()};
  ReleaseGraph(FindReach({OpNode({to_a, to_b})}, targets));
  EXPECT_TRUE(to_a->released);
  EXPECT_FALSE(to_b->released);
}

// A training loop that forgets to detach makes chains of this length.
TEST_F(GraphTest, LongChainsTakeNoStack) {
  const auto a = Leaf();
  RefPtr<GraphNode> root = a;
  for (int i = 0; i < 1000000; ++i) root = OpNode({root, a});
  EXPECT_EQ(FindReach({root}, {}).path.size(), 1000000u);
  root.reset();
  EXPECT_TRUE(a->unique());
}

}  // namespace
}  // namespace holdfast::client
