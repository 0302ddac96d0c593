// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a session driven by batches, without a transport.
#ifndef HOLDFAST_SERVER_SESSION_SCRIPTED_SESSION_H_
#define HOLDFAST_SERVER_SESSION_SCRIPTED_SESSION_H_

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/session/session.h"

namespace holdfast {

// The wire as the test sees it: batches to deliver, events delivered.
struct Wire {
  std::deque<v1::Batch> batches;
  std::vector<v1::Event> events;
  size_t room = SIZE_MAX;  // events the transport still takes
  size_t batch_bytes = 0;  // of each batch
  uint64_t acknowledged = 0;
  bool closed = false;
};

class ScriptedConnection final : public Connection {
 public:
  explicit ScriptedConnection(Wire* wire) : wire_(wire) {}
  absl::string_view transport() const override { return "grpc"; }
  absl::StatusOr<const v1::Batch*> NextBatch() override {
    if (wire_->batches.empty()) return nullptr;
    current_ = wire_->batches.front();
    wire_->batches.pop_front();
    return &current_;
  }
  size_t batch_bytes() const override { return wire_->batch_bytes; }
  bool HasBatch() override { return !wire_->batches.empty(); }
  bool Arm() override { return wire_->batches.empty(); }
  void Disarm() override {}
  bool Send(const v1::Event& event) override {
    if (wire_->room == 0) return false;
    --wire_->room;
    wire_->acknowledged =
        std::max(wire_->acknowledged, event.acknowledged_batch());
    if (event.sequence() != 0) wire_->events.push_back(event);
    return true;
  }
  bool CanSend() override { return wire_->room > 0; }
  void Close(const absl::Status&) override { wire_->closed = true; }

 private:
  Wire* const wire_;
  v1::Batch current_;
};

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(std::unique_ptr<Device> device = NewCpuDevice(1))
      : device_(std::move(device)) {
    Open({});
  }

  void Open(Session::Options options) {
    options.stream = device_->CreateStream(0).value();
    session_ = std::make_shared<Session>(device_.get(), options);
    Connect();
  }
  void Connect() {
    wire_ = {};
    session_->SetConnection(std::make_unique<ScriptedConnection>(&wire_),
                            session_->token());
  }
  v1::Command* Add() { return batch_.add_commands(); }
  // Waits for the reads that the device has not brought yet.
  void AwaitReads() {
    while (session_->AwaitsDevice()) session_->RunSome({});
  }
  // Delivers what was added as one batch, and runs it.
  void Deliver() {
    batch_.set_sequence(++sequence_);
    wire_.batches.push_back(batch_);
    batch_.Clear();
    session_->RunSome({1 << 20});
  }
  void Put(uint64_t handle, std::vector<float> values) {
    v1::Put* put = Add()->mutable_put();
    put->set_handle(handle);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(values.size());
    put->set_data(values.data(), values.size() * sizeof(float));
  }
  v1::OpCall* Op(OpId op, std::vector<uint64_t> inputs, uint64_t output) {
    v1::OpCall* call = Add()->mutable_op();
    call->set_op(static_cast<uint32_t>(op));
    for (uint64_t input : inputs) call->add_inputs(input);
    call->set_outputs(output);
    return call;
  }
  v1::ReadResult Read(uint64_t handle) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
    Deliver();
    AwaitReads();
    return wire_.events.empty() ? v1::ReadResult() : wire_.events.back().read();
  }
  std::vector<float> Values(uint64_t handle) {
    const v1::ReadResult result = Read(handle);
    EXPECT_FALSE(result.has_status()) << result.status().message();
    std::vector<float> values(result.data().size() / sizeof(float));
    std::memcpy(values.data(), result.data().data(), result.data().size());
    return values;
  }
  std::string SessionError() {
    return wire_.events.empty() || !wire_.events.back().has_session_error()
               ? ""
               : wire_.events.back().session_error().message();
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<Session> session_;
  Wire wire_;
  v1::Batch batch_;
  uint64_t sequence_ = 0;
  uint64_t read_id_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_SCRIPTED_SESSION_H_
