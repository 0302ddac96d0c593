// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "python_client/src/call.h"

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "python_client/src/array_mirror.h"
#include "python_client/src/autocast.h"
#include "python_client/src/default_dtype.h"
#include "python_client/src/device_argument.h"
#include "python_client/src/errors.h"
#include "python_client/src/read.h"
#include "python_client/src/saved_tensors_binding.h"
#include "python_client/src/session_binding.h"
#include "python_client/src/source_lines.h"
#include "python_client/src/tensor_type.h"

namespace holdfast::python {

using client::Session;
using client::Tensor;

namespace {

thread_local bool g_grad_enabled = true;
// UseDefault is at work on this thread.
thread_local bool g_in_default = false;

// The session of the first tensor; a creation op runs in the default one, or in
// that of "meta".
Session* SessionFor(const Attrs& attrs, absl::Span<const Tensor> inputs) {
  for (const Tensor& input : inputs) {
    if (input) return input->session().get();
  }
  int device = attrs.device();
  return SessionOfDevice(&device);
}

// The op as the session of "meta" takes it.
Attrs WithoutDevice(Attrs attrs) {
  attrs.set_device(0);
  return attrs;
}

// Whether the session may wait: for memory that a program looks at, or for
// sizes that depend on data.
bool Waits(absl::Span<const Tensor> inputs) {
  for (const Tensor& input : inputs) {
    if (input && (input->storage()->exported() || input->pending() ||
                  IsMirrored(input))) {
      return true;
    }
  }
  return false;
}

// Shows arrays what the op wrote into the tensors made of them.
bool PushWritten(const OpSchema& schema, absl::Span<const Tensor> inputs,
                 bool inplace) {
  if (!inplace && !schema.has(kMutates)) return true;
  const size_t count = inplace ? 1 : inputs.size();
  for (const Tensor& input : inputs.first(count)) {
    if (input && !PushMirror(input)) return false;
  }
  return true;
}

}  // namespace

bool GradEnabled() { return g_grad_enabled; }

bool SetGradEnabled(bool enabled) {
  return std::exchange(g_grad_enabled, enabled);
}

const OpSchema& SchemaOf(OpId id) {
  static const OpSchema* const table = AllOps().data();
  return table[static_cast<int>(id)];
}

namespace {

bool Finished(const absl::Status& status) {
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

// Waits while the program is too far ahead of the daemon; other threads go on.
// False: Python's error is set.
bool AwaitRoom(Session* session) {
  if (!session->too_far_ahead()) return true;
  const std::shared_ptr<Session> held = session->shared_from_this();
  absl::Status status;
  {
    ScopedGilRelease unlocked;
    status = held->AwaitRoom(Interrupted);
  }
  if (!status.ok()) RaiseStatus(status);
  return status.ok();
}

}  // namespace

bool Apply(const Attrs& attrs, absl::Span<const Tensor> inputs, bool inplace,
           absl::Span<Tensor> outputs, client::RandomStream* random) {
  if (ABSL_PREDICT_FALSE(HasOtherDefault()) && !g_in_default) {
    Attrs changed = attrs;
    absl::InlinedVector<Tensor, 4> held(inputs.begin(), inputs.end());
    g_in_default = true;  // what UseDefault itself applies is as it wants it
    const bool ok = UseDefault(&changed, &held, inplace) &&
                    Apply(changed, held, inplace, outputs, random);
    g_in_default = false;
    return ok;
  }
  if (ABSL_PREDICT_FALSE(AutocastOn()) && !inplace &&
      WantsCast(attrs.schema(), inputs)) {
    absl::InlinedVector<Tensor, 4> cast(inputs.begin(), inputs.end());
    return CastInputs(attrs.schema(), &cast) &&
           Apply(attrs, cast, inplace, outputs, random);
  }
  const std::shared_ptr<client::UserCode>* unpack = nullptr;
  if (ABSL_PREDICT_FALSE(g_threads_with_hooks != 0)) {
    if (PacksHere()) {
      return ApplyPacked(attrs, inputs, inplace, outputs, random);
    }
    unpack = UnpackHere();
  }
  Session* session = SessionFor(attrs, inputs);
  if (session == nullptr) return false;
  if (ABSL_PREDICT_FALSE(attrs.device() == kMetaDevice)) {
    // Nothing is drawn there: no stream of random numbers moves on.
    return Finished(session->Apply(WithoutDevice(attrs), inputs, inplace,
                                   g_grad_enabled, outputs));
  }
  absl::Status status;
  if (ABSL_PREDICT_FALSE(Waits(inputs) || session->too_far_ahead())) {
    // The copies outlive whatever other threads do to the Python objects
    // meanwhile.
    const absl::InlinedVector<Tensor, 4> held(inputs.begin(), inputs.end());
    if (!AwaitRoom(session)) return false;
    for (const Tensor& input : held) {
      if (input && !Settle(input)) return false;
    }
    if (!PullMirrors(held)) return false;
    const bool record = g_grad_enabled;
    {
      ScopedGilRelease unlocked;
      status =
          session->Apply(attrs, held, inplace, record, outputs, random, unpack);
    }
    if (status.ok() && !PushWritten(attrs.schema(), held, inplace)) {
      return false;
    }
  } else {
    HoldsGilInCall() = true;
    status = session->Apply(attrs, inputs, inplace, g_grad_enabled, outputs,
                            random, unpack);
    HoldsGilInCall() = false;
  }
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    RaiseStatus(status);
    return false;
  }
  // What may fail later: on its data, or when its gradient finds a saved tensor
  // changed.
  if (attrs.schema().has(kChecksData) || NoteEveryLine() ||
      (!outputs.empty() && outputs[0]->requires_grad)) {
    NoteSourceLine(session->last_op_sequence());
  }
  return true;
}

PyObject* Call(const Attrs& attrs, absl::Span<const Tensor> inputs,
               bool inplace, PyObject* self, client::RandomStream* random) {
  const int count = inplace ? 1 : attrs.schema().num_outputs;
  if (count == 1) {
    Tensor output;
    if (!Apply(attrs, inputs, inplace, absl::MakeSpan(&output, 1), random)) {
      return nullptr;
    }
    if (inplace) {
      Py_INCREF(self);
      return self;
    }
    return WrapTensor(std::move(output));
  }
  absl::InlinedVector<Tensor, 2> outputs(static_cast<size_t>(count));
  if (!Apply(attrs, inputs, inplace, absl::MakeSpan(outputs), random)) {
    return nullptr;
  }
  if (count == 0) Py_RETURN_NONE;
  PyRef tuple(PyTuple_New(count));
  if (!tuple) return nullptr;
  for (int i = 0; i < count; ++i) {
    PyObject* item = WrapTensor(std::move(outputs[static_cast<size_t>(i)]));
    if (item == nullptr || PyTuple_SetItem(tuple.get(), i, item) < 0) {
      return nullptr;
    }
  }
  return tuple.release();
}

Tensor ApplyUnary(OpId id, const Tensor& input) {
  const Attrs attrs(&SchemaOf(id));
  Tensor output;
  Apply(attrs, absl::MakeConstSpan(&input, 1), false,
        absl::MakeSpan(&output, 1));
  return output;
}

Tensor ApplyTo(const Tensor& input, DType dtype) {
  Attrs attrs(&SchemaOf(OpId::to));
  attrs.Set(0, dtype);
  Tensor output;
  Apply(attrs, absl::MakeConstSpan(&input, 1), false,
        absl::MakeSpan(&output, 1));
  return output;
}

}  // namespace holdfast::python
