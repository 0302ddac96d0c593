// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The decoder against protobuf's parser: the same verdict and the same message
// for good, damaged and random bytes, whatever came before.
#include "server/transport/batch_decoder.h"

#include <algorithm>
#include <random>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using Random = std::mt19937_64;

constexpr int kRounds = 20000;

// Numbers of all lengths, small ones most often.
uint64_t Number(Random* random) {
  const uint64_t bits = (*random)();
  switch (bits % 8) {
    case 0:
      return bits;
    case 1:
      return ~uint64_t{0};
    case 2:
      return bits >> 32;
    default:
      return bits % 1000;
  }
}

void FillOp(Random* random, v1::OpCall* op) {
  if ((*random)() % 8) op->set_op(Number(random));
  for (int i = (*random)() % 4; i > 0; --i) op->add_inputs(Number(random));
  if ((*random)() % 50 == 0) {
    for (int i = 0; i < 100; ++i) op->add_inputs(i);
  }
  op->set_outputs(Number(random));
  op->set_record((*random)() % 2);
  op->set_inplace((*random)() % 2);
  if ((*random)() % 4 == 0) {
    op->mutable_random()->set_seed(Number(random));
    op->mutable_random()->set_offset(Number(random));
  }
  for (int i = (*random)() % 40 == 0 ? 20 : (*random)() % 3; i > 0; --i) {
    v1::Attr* attr = op->add_attrs();
    attr->set_slot(i);
    switch ((*random)() % 7) {
      case 0:
        attr->set_b(true);
        break;
      case 1:
        attr->set_i(Number(random));
        break;
      case 2:
        attr->set_f(0.5);
        break;
      case 3:
        attr->set_dtype(v1::DTYPE_INT64);
        break;
      case 4:
        attr->mutable_ints()->add_values(-1);
        attr->mutable_ints()->add_values(Number(random));
        break;
      case 5:
        attr->set_s("text");
        break;
      default:
        attr->set_none(true);
    }
  }
}

v1::Batch RandomBatch(Random* random) {
  v1::Batch batch;
  batch.set_sequence(Number(random));
  if ((*random)() % 2) batch.set_acknowledged_event(Number(random));
  for (int i = (*random)() % 20; i > 0; --i) {
    v1::Command* command = batch.add_commands();
    for (int k = (*random)() % 3; k > 0; --k) {
      command->add_release(Number(random));
    }
    switch ((*random)() % 10) {
      case 0:
        command->mutable_put()->set_handle(Number(random));
        command->mutable_put()->set_data(std::string((*random)() % 50, 'x'));
        break;
      case 1:
        command->mutable_read()->set_id(Number(random));
        break;
      case 2:
        command->mutable_backward()->add_roots(Number(random));
        command->mutable_backward()->add_targets()->set_tensor(1);
        break;
      case 3:
        break;  // releases alone
      default:
        FillOp(random, command->mutable_op());
    }
  }
  return batch;
}

// The decoder's answer is the parser's. Returns whether the bytes were good.
bool ExpectSame(BatchDecoder* decoder, const std::string& bytes) {
  v1::Batch expected;
  const bool good = expected.ParseFromString(bytes);
  const v1::Batch* got = decoder->Decode(bytes.data(), bytes.size());
  EXPECT_EQ(got != nullptr, good);
  if (good && got != nullptr) {
    EXPECT_EQ(got->SerializeAsString(), expected.SerializeAsString());
  }
  return good;
}

TEST(BatchDecoder, GoodBatches) {
  Random random(1);
  BatchDecoder decoder;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(ExpectSame(&decoder, RandomBatch(&random).SerializeAsString()));
  }
}

TEST(BatchDecoder, DamagedBatches) {
  google::protobuf::LogSilencer silencer;  // it reports text that is not UTF-8
  Random random(2);
  BatchDecoder decoder;
  int good = 0, bad = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::string bytes = RandomBatch(&random).SerializeAsString();
    if (bytes.empty()) continue;
    switch (random() % 4) {
      case 0:
        bytes[random() % bytes.size()] = static_cast<char>(random());
        break;
      case 1:
        bytes[random() % bytes.size()] ^= 1 << random() % 8;
        break;
      case 2:
        bytes.resize(random() % bytes.size());
        break;
      default:
        bytes.insert(random() % bytes.size(), 1, static_cast<char>(random()));
    }
    ++(ExpectSame(&decoder, bytes) ? good : bad);
  }
  EXPECT_GT(good, 1000);
  EXPECT_GT(bad, 1000);
}

TEST(BatchDecoder, RandomBytes) {
  google::protobuf::LogSilencer silencer;
  Random random(3);
  BatchDecoder decoder;
  for (int i = 0; i < kRounds; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) {
      // Bytes that are tags and small lengths lead deeper than chance.
      c = static_cast<char>(random() % 2 ? random() : random() % 32);
    }
    ExpectSame(&decoder, bytes);
  }
}

// Forms that no client of ours writes, but the protocol allows.
TEST(BatchDecoder, UnusualForms) {
  BatchDecoder decoder;
  EXPECT_TRUE(ExpectSame(&decoder, ""));
  // inputs that are not packed; a field given twice; an op given twice; an op
  // and another kind; an unknown field; a long varint; a long tag.
  for (const std::string& command :
       {std::string("\x12\x04\x10\x05\x10\x06", 6),
        std::string("\x12\x04\x08\x05\x08\x06", 6),
        std::string("\x12\x02\x08\x05\x12\x02\x18\x06", 8),
        std::string("\x12\x02\x08\x05\x2a\x02\x08\x06", 8),
        std::string("\x2a\x02\x08\x06\x12\x02\x08\x05", 8),
        std::string("\x12\x03\x98\x06\x01", 5),
        std::string("\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 13),
        std::string("\x12\x0c\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                    14),
        std::string("\x12\x03\x88\x00\x05", 5),
        std::string("\x12\x82\x00\x08\x05", 5), std::string("\x12\x00", 2),
        std::string("\x0a\x01\x05\x0a\x01\x06", 6)}) {
    const std::string bytes =
        "\x12" + std::string(1, static_cast<char>(command.size())) + command;
    ExpectSame(&decoder, bytes);
    ExpectSame(&decoder, bytes + bytes);
  }
}

TEST(BatchDecoder, LargeBatches) {
  Random random(4);
  BatchDecoder decoder;
  for (const int commands : {4096, 4097, 10000, 3}) {
    v1::Batch batch;
    for (int i = 0; i < commands; ++i) {
      batch.add_commands()->mutable_op()->set_op(i % 3);
    }
    EXPECT_TRUE(ExpectSame(&decoder, batch.SerializeAsString()));
  }
  v1::Batch batch;
  batch.add_commands()->mutable_put()->set_data(std::string(3 << 20, 'x'));
  EXPECT_TRUE(ExpectSame(&decoder, batch.SerializeAsString()));
}

}  // namespace
}  // namespace holdfast
