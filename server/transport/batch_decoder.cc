// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/batch_decoder.h"

#include <cstdint>

#include "absl/base/optimization.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace holdfast {
namespace {

// What the fast way takes, and thereby what its messages keep: some twenty
// megabytes at the very most, for a client that sets out to make it so.
constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxFastCommands = 4096;
constexpr size_t kMaxOtherBytes = 4 << 10;  // of a command that is no op
constexpr int kMaxHandles = 64;  // inputs of an op, releases of a command
constexpr int kMaxAttrs = 16;

// A field's number and wire type, as the one byte they are for small numbers.
constexpr uint8_t VarintTag(int field) { return field << 3; }
constexpr uint8_t BytesTag(int field) { return field << 3 | 2; }

// Reads forward through `[at, end)`. After a failure the position means
// nothing.
class Cursor {
 public:
  Cursor(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  bool done() const { return at_ == end_; }
  const uint8_t* at() const { return at_; }
  size_t left() const { return end_ - at_; }
  uint8_t Byte() { return *at_++; }  // REQUIRES: !done()

  // Up to nine bytes: longer ones, which no handle needs, have rules of their
  // own in protobuf.
  bool Varint(uint64_t* value) {
    if (ABSL_PREDICT_FALSE(at_ == end_)) return false;
    uint64_t result = *at_++;
    if (ABSL_PREDICT_TRUE(result < 0x80)) {
      *value = result;
      return true;
    }
    result &= 0x7f;
    for (int shift = 7; shift < 63; shift += 7) {
      if (ABSL_PREDICT_FALSE(at_ == end_)) return false;
      const uint64_t byte = *at_++;
      result |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }
  // The bytes of a length-delimited field.
  bool Bytes(Cursor* inside) {
    uint64_t length;
    if (!Varint(&length) || length > left()) return false;
    *inside = Cursor(at_, at_ + length);
    at_ += length;
    return true;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

using Handles = google::protobuf::RepeatedField<uint64_t>;

bool DecodeHandles(Cursor* cursor, Handles* handles) {
  Cursor inside(nullptr, nullptr);
  if (!cursor->Bytes(&inside)) return false;
  while (!inside.done()) {
    uint64_t value;
    if (!inside.Varint(&value) || handles->size() >= kMaxHandles) return false;
    handles->Add(value);
  }
  return true;
}

bool ParseMessage(const Cursor& bytes, google::protobuf::MessageLite* message) {
  return message->ParseFromArray(bytes.at(), static_cast<int>(bytes.left()));
}

bool DecodeOp(Cursor cursor, v1::OpCall* op) {
  op->Clear();
  uint64_t value;
  while (!cursor.done()) {
    switch (cursor.Byte()) {
      case VarintTag(v1::OpCall::kOpFieldNumber):
        if (!cursor.Varint(&value)) return false;
        op->set_op(static_cast<uint32_t>(value));
        break;
      case BytesTag(v1::OpCall::kInputsFieldNumber):
        if (!DecodeHandles(&cursor, op->mutable_inputs())) return false;
        break;
      case VarintTag(v1::OpCall::kOutputsFieldNumber):
        if (!cursor.Varint(&value)) return false;
        op->set_outputs(value);
        break;
      case BytesTag(v1::OpCall::kAttrsFieldNumber): {
        Cursor attr(nullptr, nullptr);
        if (op->attrs_size() >= kMaxAttrs || !cursor.Bytes(&attr) ||
            !ParseMessage(attr, op->add_attrs())) {
          return false;
        }
        break;
      }
      case VarintTag(v1::OpCall::kRecordFieldNumber):
        if (!cursor.Varint(&value)) return false;
        op->set_record(value != 0);
        break;
      case VarintTag(v1::OpCall::kInplaceFieldNumber):
        if (!cursor.Varint(&value)) return false;
        op->set_inplace(value != 0);
        break;
      case VarintTag(v1::OpCall::kDeviceFieldNumber):
        if (!cursor.Varint(&value)) return false;
        op->set_device(static_cast<uint32_t>(value));
        break;
      case BytesTag(v1::OpCall::kRandomFieldNumber): {
        Cursor random(nullptr, nullptr);
        // A second one would be merged into the first.
        if (op->has_random() || !cursor.Bytes(&random) ||
            !ParseMessage(random, op->mutable_random())) {
          return false;
        }
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

bool DecodeCommand(const Cursor& bytes, v1::Command* command) {
  Cursor cursor = bytes;
  bool has_op = false;
  // An op's message is used again. Other commands are emptied, of fields
  // unknown to us too.
  if (command->has_op()) {
    command->mutable_release()->Clear();
  } else {
    command->Clear();
  }
  while (!cursor.done()) {
    switch (cursor.Byte()) {
      case BytesTag(v1::Command::kReleaseFieldNumber):
        if (!DecodeHandles(&cursor, command->mutable_release())) return false;
        break;
      case BytesTag(v1::Command::kOpFieldNumber): {
        Cursor op(nullptr, nullptr);
        // A second one would be merged into the first.
        if (has_op || !cursor.Bytes(&op)) return false;
        has_op = true;
        if (!DecodeOp(op, command->mutable_op())) return false;
        break;
      }
      default:
        // Another kind of command: the parser's, whole.
        if (has_op || bytes.left() > kMaxOtherBytes) return false;
        if (ParseMessage(bytes, command) && !command->has_op()) return true;
        // An op that came out of this may have unknown fields beside it, which
        // must not stay for the next one.
        command->Clear();
        return false;
    }
  }
  if (!has_op) command->clear_kind();
  return true;
}

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Takes what a message of `type` would be made of from `*left`. False: there is
// more. Bytes that are no such message are the parser's to refuse.
bool CountParts(const Descriptor& type, CodedInputStream* input, int depth,
                int64_t* left) {
  constexpr int kDeepest = 100;  // the parser's
  while (const uint32_t tag = input->ReadTag()) {
    const FieldDescriptor* const field =
        type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const int before = input->CurrentPosition();
    const auto wire = WireFormatLite::GetTagWireType(tag);
    if (field == nullptr || wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(input, tag)) return true;
      // Groups, say, have parts themselves.
      *left -= field == nullptr || field->is_repeated()
                   ? 1 + (input->CurrentPosition() - before) / 8
                   : 0;
    } else {
      uint32_t size = 0;
      if (!input->ReadVarint32(&size) || size > INT32_MAX) return true;
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        if (depth >= kDeepest) return true;
        --*left;
        const auto outer = input->PushLimit(static_cast<int>(size));
        if (*left < 0 ||
            !CountParts(*field->message_type(), input, depth + 1, left)) {
          return false;
        }
        if (!input->CheckEntireMessageConsumedAndPopLimit(outer)) return true;
      } else {
        if (field->is_repeated()) --*left;
        if (field->is_packable()) *left -= size / 8;
        if (!input->Skip(static_cast<int>(size))) return true;
      }
    }
    if (*left < 0) return false;
  }
  return true;
}

// Whether the parser may have it.
bool IsOfSomeSize(const char* data, int size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  CodedInputStream input(bytes, size);
  int64_t left = BatchDecoder::kMaxParts;
  if (!CountParts(*v1::Batch::descriptor(), &input, 0, &left)) return false;
  // Commands are the largest parts.
  CodedInputStream again(bytes, size);
  int commands = 0;
  while (const uint32_t tag = again.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) ==
            v1::Batch::kCommandsFieldNumber &&
        ++commands > BatchDecoder::kMaxCommands) {
      return false;
    }
    if (!WireFormatLite::SkipField(&again, tag)) break;
  }
  return true;
}

}  // namespace

v1::Command* BatchDecoder::CommandAt(int index) {
  auto* commands = batch_.mutable_commands();
  if (index == commands->size()) {
    if (spare_.empty()) {
      commands->AddAllocated(new v1::Command);
    } else {
      commands->AddAllocated(spare_.back().release());
      spare_.pop_back();
    }
  }
  return commands->Mutable(index);
}

bool BatchDecoder::DecodeFast(const char* data, size_t size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  Cursor cursor(bytes, bytes + size);
  uint64_t sequence = 0, acknowledged = 0;
  int count = 0;
  while (!cursor.done()) {
    switch (cursor.Byte()) {
      case VarintTag(v1::Batch::kSequenceFieldNumber):
        if (!cursor.Varint(&sequence)) return false;
        break;
      case BytesTag(v1::Batch::kCommandsFieldNumber): {
        Cursor command(nullptr, nullptr);
        if (count >= kMaxFastCommands || !cursor.Bytes(&command) ||
            !DecodeCommand(command, CommandAt(count++))) {
          return false;
        }
        break;
      }
      case VarintTag(v1::Batch::kAcknowledgedEventFieldNumber):
        if (!cursor.Varint(&acknowledged)) return false;
        break;
      default:
        return false;
    }
  }
  batch_.set_sequence(sequence);
  batch_.set_acknowledged_event(acknowledged);
  // Those of a longer batch before wait aside: removing would empty them.
  auto* commands = batch_.mutable_commands();
  const int surplus = commands->size() - count;
  if (surplus > 0) {
    std::vector<v1::Command*> taken(surplus);
    commands->ExtractSubrange(count, surplus, taken.data());
    for (v1::Command* command : taken) spare_.emplace_back(command);
  }
  return true;
}

const v1::Batch* BatchDecoder::Decode(const char* data, size_t size) {
  const int64_t before = HeapMeter::ThreadBytes();
  arena_.reset();
  const v1::Batch* const batch = DecodeCounted(data, size);
  held_ += HeapMeter::ThreadBytes() - before;
  charge_.Settle(held_);
  return batch;
}

void BatchDecoder::Release() {
  if (arena_ == nullptr) return;
  const int64_t before = HeapMeter::ThreadBytes();
  arena_.reset();
  held_ += HeapMeter::ThreadBytes() - before;
  charge_.Settle(held_);
}

const v1::Batch* BatchDecoder::DecodeCounted(const char* data, size_t size) {
  if (size <= kMaxBytes && DecodeFast(data, size)) return &batch_;
  if (size > INT32_MAX || !IsOfSomeSize(data, static_cast<int>(size))) {
    return nullptr;
  }
  google::protobuf::ArenaOptions options;
  options.start_block_size = 64 << 10;
  options.max_block_size = 1 << 20;
  arena_ = std::make_unique<google::protobuf::Arena>(options);
  auto* batch = google::protobuf::Arena::CreateMessage<v1::Batch>(arena_.get());
  if (!batch->ParseFromArray(data, static_cast<int>(size))) return nullptr;
  return batch;
}

}  // namespace holdfast
