// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/batch_writer.h"

#include <cstring>
#include <variant>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "ops/op_schema.h"

namespace holdfast::client {
namespace {

using ::google::protobuf::internal::WireFormatLite;
using Stream = ::google::protobuf::io::CodedOutputStream;

constexpr size_t kMaxVarint = 10;
// Before a Command: the Batch's fields, this field's tag and its length.
constexpr size_t kHeadroom = kBatchHeadroom + 1 + kMaxVarint;

constexpr uint8_t Tag(int field, WireFormatLite::WireType type) {
  return static_cast<uint8_t>(field << 3 | type);
}
constexpr WireFormatLite::WireType kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr WireFormatLite::WireType kFixed64 = WireFormatLite::WIRETYPE_FIXED64;
constexpr WireFormatLite::WireType kBytes =
    WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

// Field numbers fit one tag byte; the generated constants keep them true to the
// protocol.
constexpr uint8_t kBatchSequence =
    Tag(wire::Batch::kSequenceFieldNumber, kVarint);
constexpr uint8_t kBatchCommands =
    Tag(wire::Batch::kCommandsFieldNumber, kBytes);
constexpr uint8_t kRelease = Tag(wire::Command::kReleaseFieldNumber, kBytes);
constexpr uint8_t kOp = Tag(wire::Command::kOpFieldNumber, kBytes);
constexpr uint8_t kCallOp = Tag(wire::OpCall::kOpFieldNumber, kVarint);
constexpr uint8_t kCallInputs = Tag(wire::OpCall::kInputsFieldNumber, kBytes);
constexpr uint8_t kCallOutputs =
    Tag(wire::OpCall::kOutputsFieldNumber, kVarint);
constexpr uint8_t kCallAttrs = Tag(wire::OpCall::kAttrsFieldNumber, kBytes);
constexpr uint8_t kCallRecord = Tag(wire::OpCall::kRecordFieldNumber, kVarint);
constexpr uint8_t kCallInplace =
    Tag(wire::OpCall::kInplaceFieldNumber, kVarint);
constexpr uint8_t kCallRandom = Tag(wire::OpCall::kRandomFieldNumber, kBytes);
constexpr uint8_t kCallDevice = Tag(wire::OpCall::kDeviceFieldNumber, kVarint);
constexpr uint8_t kRandomSeed =
    Tag(wire::RandomState::kSeedFieldNumber, kFixed64);
constexpr uint8_t kRandomOffset =
    Tag(wire::RandomState::kOffsetFieldNumber, kVarint);
constexpr uint8_t kAttrSlot = Tag(wire::Attr::kSlotFieldNumber, kVarint);
constexpr uint8_t kAttrBool = Tag(wire::Attr::kBFieldNumber, kVarint);
constexpr uint8_t kAttrInt = Tag(wire::Attr::kIFieldNumber, kVarint);
constexpr uint8_t kAttrFloat = Tag(wire::Attr::kFFieldNumber, kFixed64);
constexpr uint8_t kAttrDType = Tag(wire::Attr::kDtypeFieldNumber, kVarint);
constexpr uint8_t kAttrInts = Tag(wire::Attr::kIntsFieldNumber, kBytes);
constexpr uint8_t kAttrStr = Tag(wire::Attr::kSFieldNumber, kBytes);
constexpr uint8_t kAttrNone = Tag(wire::Attr::kNoneFieldNumber, kVarint);
constexpr uint8_t kIntListValues =
    Tag(wire::IntList::kValuesFieldNumber, kBytes);

uint8_t* Byte(uint8_t byte, uint8_t* p) {
  *p = byte;
  return p + 1;
}

uint8_t* Varint(uint64_t value, uint8_t* p) {
  return Stream::WriteVarint64ToArray(value, p);
}

// A length-delimited field whose length is known only once it is written.
// Nearly all are short, so one byte is left for it and longer contents move.
class Length {
 public:
  explicit Length(uint8_t* at) : at_(at) {}
  uint8_t* begin() const { return at_ + 1; }
  uint8_t* Close(uint8_t* end) const {
    const size_t size = end - begin();
    if (size < 0x80) {
      *at_ = static_cast<uint8_t>(size);
      return end;
    }
    const size_t extra = Stream::VarintSize64(size) - 1;
    std::memmove(begin() + extra, begin(), size);
    Varint(size, at_);
    return end + extra;
  }

 private:
  uint8_t* at_;
};

size_t MaxBytes(const AttrValue& value) {
  size_t bytes = 32;  // tags, slot, lengths, a number
  if (const Dims* ints = std::get_if<Dims>(&value)) {
    bytes += ints->size() * kMaxVarint;
  } else if (const std::string* text = std::get_if<std::string>(&value)) {
    bytes += text->size();
  }
  return bytes;
}

uint8_t* WriteAttr(int slot, const AttrValue& value, uint8_t* p) {
  const Length attr(Byte(kCallAttrs, p));
  p = attr.begin();
  if (slot != 0) p = Varint(slot, Byte(kAttrSlot, p));
  if (const bool* b = std::get_if<bool>(&value)) {
    p = Byte(*b ? 1 : 0, Byte(kAttrBool, p));
  } else if (const int64_t* i = std::get_if<int64_t>(&value)) {
    p = Varint(WireFormatLite::ZigZagEncode64(*i), Byte(kAttrInt, p));
  } else if (const double* f = std::get_if<double>(&value)) {
    p = Stream::WriteLittleEndian64ToArray(WireFormatLite::EncodeDouble(*f),
                                           Byte(kAttrFloat, p));
  } else if (const DType* dtype = std::get_if<DType>(&value)) {
    p = Varint(static_cast<uint64_t>(*dtype), Byte(kAttrDType, p));
  } else if (const Dims* ints = std::get_if<Dims>(&value)) {
    const Length list(Byte(kAttrInts, p));
    p = list.begin();
    if (!ints->empty()) {
      const Length values(Byte(kIntListValues, p));
      p = values.begin();
      for (int64_t i : *ints) p = Varint(WireFormatLite::ZigZagEncode64(i), p);
      p = values.Close(p);
    }
    p = list.Close(p);
  } else if (const std::string* text = std::get_if<std::string>(&value)) {
    p = Varint(text->size(), Byte(kAttrStr, p));
    std::memcpy(p, text->data(), text->size());
    p += text->size();
  } else {
    p = Byte(1, Byte(kAttrNone, p));
  }
  return attr.Close(p);
}

uint8_t* WriteReleases(absl::Span<const uint64_t> releases, uint8_t* p) {
  if (releases.empty()) return p;
  const Length list(Byte(kRelease, p));
  p = list.begin();
  for (uint64_t handle : releases) p = Varint(handle, p);
  return list.Close(p);
}

size_t MaxReleaseBytes(absl::Span<const uint64_t> releases) {
  return (releases.size() + 2) * kMaxVarint;
}

// Writes `value` as a varint that ends at `end`; returns its beginning.
uint8_t* VarintBefore(uint8_t* end, uint64_t value) {
  uint8_t* begin = end - Stream::VarintSize64(value);
  Varint(value, begin);
  return begin;
}

}  // namespace

uint8_t* PrependSequence(uint8_t* end, uint64_t sequence) {
  uint8_t* begin = VarintBefore(end, sequence) - 1;
  *begin = kBatchSequence;
  return begin;
}

BatchWriter::BatchWriter() { Begin(512); }

uint8_t* BatchWriter::Begin(size_t bytes) {
  const size_t needed = kHeadroom + bytes;
  if (needed > capacity_) {
    // Not make_unique, which would clear what is about to be written.
    buffer_.reset(new uint8_t[needed]);
    capacity_ = needed;
  }
  return buffer_.get() + kHeadroom;
}

EncodedCommand BatchWriter::Finish(uint8_t* end) {
  uint8_t* begin = buffer_.get() + kHeadroom;
  begin = VarintBefore(begin, end - begin) - 1;
  *begin = kBatchCommands;
  return {begin, static_cast<size_t>(end - begin)};
}

EncodedCommand BatchWriter::EncodeOp(const OpRequest& request,
                                     absl::Span<const uint64_t> releases) {
  const Attrs& attrs = *request.attrs;
  const int slots = attrs.schema().num_attrs;
  size_t bytes =
      64 + MaxReleaseBytes(releases) + (request.inputs.size() + 2) * kMaxVarint;
  for (int slot = 0; slot < slots; ++slot) {
    if (attrs.IsSet(slot)) bytes += MaxBytes(attrs.Get(slot));
  }
  uint8_t* p = WriteReleases(releases, Begin(bytes));
  const Length op(Byte(kOp, p));
  p = op.begin();
  if (request.op != 0) p = Varint(request.op, Byte(kCallOp, p));
  if (!request.inputs.empty()) {
    const Length inputs(Byte(kCallInputs, p));
    p = inputs.begin();
    for (const Tensor& input : request.inputs) {
      p = Varint(input ? input->handle() : 0, p);
    }
    p = inputs.Close(p);
  }
  if (request.outputs != 0) p = Varint(request.outputs, Byte(kCallOutputs, p));
  for (int slot = 0; slot < slots; ++slot) {
    if (attrs.IsSet(slot)) p = WriteAttr(slot, attrs.Get(slot), p);
  }
  if (request.record) p = Byte(1, Byte(kCallRecord, p));
  if (request.inplace) p = Byte(1, Byte(kCallInplace, p));
  if (request.has_random) {
    const Length random(Byte(kCallRandom, p));
    p = random.begin();
    if (request.random.seed != 0) {
      p = Stream::WriteLittleEndian64ToArray(request.random.seed,
                                             Byte(kRandomSeed, p));
    }
    if (request.random.offset != 0) {
      p = Varint(request.random.offset, Byte(kRandomOffset, p));
    }
    p = random.Close(p);
  }
  if (attrs.device() != 0) p = Varint(attrs.device(), Byte(kCallDevice, p));
  return Finish(op.Close(p));
}

EncodedCommand BatchWriter::EncodeReleases(
    absl::Span<const uint64_t> releases) {
  return Finish(WriteReleases(releases, Begin(MaxReleaseBytes(releases))));
}

EncodedCommand BatchWriter::Encode(const wire::Command& command,
                                   absl::Span<const uint64_t> releases) {
  const size_t size = command.ByteSizeLong();
  uint8_t* p = Begin(size + MaxReleaseBytes(releases));
  p = command.SerializeWithCachedSizesToArray(WriteReleases(releases, p));
  return Finish(p);
}

absl::string_view BatchWriter::Body(EncodedCommand command) const {
  const uint8_t* begin = buffer_.get() + kHeadroom;
  return {reinterpret_cast<const char*>(begin),
          static_cast<size_t>(command.data + command.size - begin)};
}

}  // namespace holdfast::client
