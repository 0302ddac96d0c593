// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hand-written encoder against the generated parser.
#include "client/batch_writer.h"

#include <limits>
#include <string>
#include <vector>

#include "client/fake_connection_test.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

using ::google::protobuf::util::MessageDifferencer;

// What a transport would send for the command.
wire::Batch Parse(EncodedCommand command, uint64_t sequence) {
  uint8_t* begin = PrependSequence(command.data, sequence);
  EXPECT_LE(command.data - begin, static_cast<ptrdiff_t>(kBatchHeadroom));
  wire::Batch batch;
  EXPECT_TRUE(batch.ParseFromArray(begin, command.data + command.size - begin));
  return batch;
}

wire::Attr* AddAttr(int slot, wire::OpCall* call) {
  wire::Attr* attr = call->add_attrs();
  attr->set_slot(slot);
  return attr;
}

void ExpectSame(const wire::Batch& got, const wire::Batch& want) {
  EXPECT_TRUE(MessageDifferencer::Equals(got, want))
      << got.ShortDebugString() << "\n"
      << want.ShortDebugString();
  // No field twice, none unknown.
  EXPECT_EQ(got.SerializeAsString(), want.SerializeAsString());
}

class BatchWriterTest : public ::testing::Test {
 protected:
  BatchWriter writer_;
  const std::shared_ptr<Session> session_ =
      MakeFakeSession(std::make_shared<FakeConnection::Peer>(), {});
};

TEST_F(BatchWriterTest, PlainOp) {
  const Attrs attrs(&GetOp(OpId::add));
  const Tensor inputs[] = {MakeTensor(session_, 1), MakeTensor(session_, 300)};
  OpRequest request;
  request.op = 30;
  request.inputs = inputs;
  request.outputs = 1u << 20;
  request.attrs = &attrs;
  wire::Batch want;
  want.set_sequence(7);
  wire::OpCall* call = want.add_commands()->mutable_op();
  call->set_op(30);
  call->add_inputs(1);
  call->add_inputs(300);
  call->set_outputs(1u << 20);
  ExpectSame(Parse(writer_.EncodeOp(request, {}), 7), want);
}

TEST_F(BatchWriterTest, FlagsAbsentInputsAndReleases) {
  const Attrs attrs(&GetOp(OpId::add));
  const Tensor inputs[] = {MakeTensor(session_, 5), nullptr};
  OpRequest request;
  request.inputs = inputs;  // op id 0 and no outputs: defaults on the wire
  request.attrs = &attrs;
  request.record = true;
  request.inplace = true;
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  wire::Batch want;
  want.set_sequence(max);
  want.add_commands()->add_release(9);
  want.mutable_commands(0)->add_release(max);
  wire::OpCall* call = want.mutable_commands(0)->mutable_op();
  call->add_inputs(5);
  call->add_inputs(0);
  call->set_record(true);
  call->set_inplace(true);
  ExpectSame(Parse(writer_.EncodeOp(request, {9, max}), max), want);
}

TEST_F(BatchWriterTest, RandomStream) {
  const Attrs attrs(&GetOp(OpId::randperm));
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, max}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{300}, max}) {
      OpRequest request;
      request.op = 4;
      request.attrs = &attrs;
      request.has_random = true;
      request.random = {seed, offset};
      wire::Batch want;
      want.set_sequence(1);
      wire::OpCall* call = want.add_commands()->mutable_op();
      call->set_op(4);
      call->mutable_random()->set_seed(seed);
      call->mutable_random()->set_offset(offset);
      ExpectSame(Parse(writer_.EncodeOp(request, {}), 1), want);
    }
  }
}

TEST_F(BatchWriterTest, EveryKindOfAttribute) {
  Attrs attrs(&GetOp(OpId::adam));  // eight slots
  ASSERT_GE(attrs.schema().num_attrs, 6);
  attrs.Set(0, Dims{-1, 0, 1, std::numeric_limits<int64_t>::min()});
  attrs.Set(1, true);
  attrs.Set(2, int64_t{-300});
  attrs.Set(3, -2.5);
  attrs.Set(4, DType::kFloat64);
  attrs.Set(5, std::string("mean"));
  OpRequest request;
  request.op = 1;
  request.attrs = &attrs;
  wire::Batch want;
  want.set_sequence(1);
  wire::OpCall* call = want.add_commands()->mutable_op();
  call->set_op(1);
  for (int64_t i : {int64_t{-1}, int64_t{0}, int64_t{1},
                    std::numeric_limits<int64_t>::min()}) {
    if (call->attrs().empty()) AddAttr(0, call);
    call->mutable_attrs(0)->mutable_ints()->add_values(i);
  }
  AddAttr(1, call)->set_b(true);
  AddAttr(2, call)->set_i(-300);
  AddAttr(3, call)->set_f(-2.5);
  AddAttr(4, call)->set_dtype(wire::DTYPE_FLOAT64);
  AddAttr(5, call)->set_s("mean");
  ExpectSame(Parse(writer_.EncodeOp(request, {}), 1), want);
}

TEST_F(BatchWriterTest, FalseZeroNoneAndEmptyAreSaid) {
  Attrs attrs(&GetOp(OpId::adam));
  attrs.Set(0, std::monostate());
  attrs.Set(1, false);
  attrs.Set(2, int64_t{0});
  attrs.Set(3, 0.0);
  attrs.Set(4, Dims{});
  attrs.Set(5, std::string());
  OpRequest request;
  request.attrs = &attrs;
  wire::Batch want;
  want.set_sequence(1);
  wire::OpCall* call = want.add_commands()->mutable_op();
  AddAttr(0, call)->set_none(true);
  AddAttr(1, call)->set_b(false);
  AddAttr(2, call)->set_i(0);
  AddAttr(3, call)->set_f(0.0);
  AddAttr(4, call)->mutable_ints();
  AddAttr(5, call)->set_s("");
  ExpectSame(Parse(writer_.EncodeOp(request, {}), 1), want);
}

// Lengths that need more than the one byte left for them.
TEST_F(BatchWriterTest, LongLists) {
  for (size_t count : {20u, 63u, 64u, 127u, 128u, 2000u, 20000u}) {
    std::vector<Tensor> inputs;
    std::vector<uint64_t> releases;
    Dims ints;
    for (size_t i = 0; i < count; ++i) {
      inputs.push_back(MakeTensor(session_, i * 7919 + 1));
      releases.push_back(i * 104729);
      ints.push_back(static_cast<int64_t>(i) * -31);
    }
    Attrs attrs(&GetOp(OpId::permute));
    attrs.Set(0, ints);
    OpRequest request;
    request.op = 3;
    request.inputs = inputs;
    request.outputs = 77;
    request.attrs = &attrs;
    wire::Batch want;
    want.set_sequence(count);
    wire::Command* command = want.add_commands();
    wire::OpCall* call = command->mutable_op();
    call->set_op(3);
    call->set_outputs(77);
    AddAttr(0, call);
    for (size_t i = 0; i < count; ++i) {
      command->add_release(releases[i]);
      call->add_inputs(inputs[i]->handle());
      call->mutable_attrs(0)->mutable_ints()->add_values(ints[i]);
    }
    ExpectSame(Parse(writer_.EncodeOp(request, releases), count), want);
  }
}

TEST_F(BatchWriterTest, LongString) {
  Attrs attrs(&GetOp(OpId::adam));
  attrs.Set(3, std::string(100000, 'x'));
  OpRequest request;
  request.attrs = &attrs;
  wire::Batch want;
  want.set_sequence(1);
  AddAttr(3, want.add_commands()->mutable_op())
      ->set_s(std::string(100000, 'x'));
  ExpectSame(Parse(writer_.EncodeOp(request, {}), 1), want);
}

TEST_F(BatchWriterTest, ReleasesAlone) {
  wire::Batch want;
  want.set_sequence(2);
  want.add_commands()->add_release(1);
  want.mutable_commands(0)->add_release(2);
  ExpectSame(Parse(writer_.EncodeReleases({1, 2}), 2), want);
}

TEST_F(BatchWriterTest, RareCommandsGoThroughTheGeneratedClasses) {
  wire::Command command;
  command.mutable_put()->set_handle(4);
  command.mutable_put()->set_data(std::string(5000, 'd'));
  wire::Batch want;
  want.set_sequence(3);
  *want.add_commands() = command;
  ExpectSame(Parse(writer_.Encode(command, {}), 3), want);
  want.mutable_commands(0)->add_release(8);
  ExpectSame(Parse(writer_.Encode(command, {8}), 3), want);
}

}  // namespace
}  // namespace holdfast::client
