// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpRunner: what is known of the integers in the memory of an asynchronous
// device (IntegerBounds).
#include <memory>
#include <optional>

#include "ops/op_schema.h"
#include "server/exec/bounds_of_op.h"
#include "server/exec/op_runner.h"

namespace holdfast {
namespace {

bool IsWholeStorage(const Tensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  return spec.contiguous() && spec.offset == 0 &&
         static_cast<size_t>(spec.nbytes()) ==
             tensor.storage()->block().requested;
}

// Elements of `tensor` have been written, of which `written` is known.
void NoteWritten(const Tensor& tensor, KnownBounds written) {
  Storage& storage = *tensor.storage();
  const DType dtype = tensor.spec().dtype;
  const Storage::Integers* const before = storage.integers();
  if (!IsWholeStorage(tensor)) {
    // The others are what they were.
    if (before == nullptr || before->dtype != dtype) written.reset();
    if (written) written = Union(*written, before->bounds);
  }
  storage.set_integers(written ? std::make_unique<Storage::Integers>(
                                     Storage::Integers{*written, dtype})
                               : nullptr);
}

}  // namespace

void OpRunner::NoteIntegers(const Attrs& attrs, absl::Span<const Value> inputs,
                            bool inplace, bool done, const Values& outputs) {
  const OpSchema& schema = attrs.schema();
  if (inplace) {
    const Tensor& target = *AsTensor(inputs[0]);
    NoteWritten(target, done ? BoundsOfOutput(attrs, inputs, 0, target.spec())
                             : std::nullopt);
  } else if (schema.has(kMutates)) {
    for (const Value& input : inputs) NoteWritten(*AsTensor(input), {});
  }
  if (inplace) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& made = *AsTensor(outputs[i]);
    const KnownBounds known =
        BoundsOfOutput(attrs, inputs, static_cast<int>(i), made.spec());
    // Also where it lies over an input's memory (EmitOver).
    if (known || made.storage()->integers() != nullptr) {
      NoteWritten(made, known);
    }
  }
}

}  // namespace holdfast
