// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Well-formed messages that no client of ours would send: random programs whose
// commands are changed field by field, or made of random fields altogether,
// with handles that are absent, swapped, released or of other sessions. They go
// as bytes through the transports' decoder to a session and its executor on the
// CPU. A finding is a crash, a message that takes longer than a minute, a
// failed check (INTERNAL), or a wrong answer for another session, which shares
// names and storages with the hostile ones.
//
//   message_fuzz_test [--programs=N] [--seed=S]
//
// Program i has the seed S + i; a finding says how to repeat it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/log/log.h"
#include "server/session/session.h"
#include "server/transport/batch_decoder.h"
#include "tests/fuzz/random_calls.h"

namespace holdfast {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kMemoryLimit = uint64_t{16} << 20;
constexpr int kMostSeconds = 60;  // of one program
constexpr int kMostFindings = 10;
// One bystander serves so many programs.
constexpr uint64_t kProgramsOfBystander = 500;

char repeat[200];  // for the handler of signals: what to run again

void TellAndEnd(int number) {
  static constexpr char kText[] = "\nmessage_fuzz_test: ended by a signal in: ";
  [[maybe_unused]] ssize_t n = write(2, kText, sizeof kText - 1);
  n = write(2, repeat, std::strlen(repeat));
  n = write(2, "\n", 1);
  signal(number, SIG_DFL);
  raise(number);
}

// What came back from the daemon.
struct Answers {
  v1::ReadResult read;
  std::deque<v1::BackwardCall> calls;
  std::string internal;  // the first INTERNAL error
  bool closed = false;

  void Note(const v1::Status& status) {
    if (status.code() == static_cast<int>(absl::StatusCode::kInternal) &&
        internal.empty()) {
      internal = status.message();
    }
  }
};

// Batches as bytes, decoded as both transports do.
class BytesConnection final : public Connection {
 public:
  BytesConnection(std::deque<std::string>* batches, Answers* answers,
                  bool local)
      : batches_(batches), answers_(answers), local_(local) {}
  absl::string_view transport() const override {
    return local_ ? "shm" : "grpc";
  }
  absl::StatusOr<const v1::Batch*> NextBatch() override {
    if (batches_->empty()) return nullptr;
    current_ = std::move(batches_->front());
    batches_->pop_front();
    const v1::Batch* batch = decoder_.Decode(current_.data(), current_.size());
    if (batch == nullptr) return absl::InvalidArgumentError("no batch");
    return batch;
  }
  bool HasBatch() override { return !batches_->empty(); }
  bool Arm() override { return batches_->empty(); }
  void Disarm() override {}
  bool Send(const v1::Event& event) override {
    if (event.has_read()) {
      answers_->read = event.read();
      answers_->Note(event.read().status());
    }
    if (event.has_call()) {
      if (!event.call().done()) answers_->calls.push_back(event.call());
      answers_->Note(event.call().status());
    }
    if (event.has_session_error()) answers_->Note(event.session_error());
    return true;
  }
  bool CanSend() override { return true; }
  void Close(const absl::Status&) override { answers_->closed = true; }

 private:
  std::deque<std::string>* const batches_;
  Answers* const answers_;
  const bool local_;
  std::string current_;
  BatchDecoder decoder_;
};

// What all sessions of a daemon share.
struct Daemon {
  explicit Daemon(Device* device)
      : device(device),
        shared(std::make_shared<SharedStorages>()),
        names(std::make_shared<PublishedTensors>(device, shared, nullptr)) {}

  Device* const device;
  const std::shared_ptr<SharedStorages> shared;
  const std::shared_ptr<PublishedTensors> names;
  std::shared_ptr<Session> parent;   // whom tokens of forks find
  std::vector<std::string> strings;  // worth sending
};

class Client {
 public:
  Client(Daemon* daemon, bool local) {
    Session::Options options;
    options.id = 1;
    options.local = options.mappable = local;
    options.user = "fuzz";
    options.memory_limit_bytes = kMemoryLimit;
    options.max_handles = 2000;
    options.shared = daemon->shared;
    options.names = daemon->names;
    options.stream = daemon->device->CreateStream(0).value();
    options.find_session =
        [daemon](const std::string& token) -> std::shared_ptr<Session> {
      if (daemon->parent == nullptr || daemon->parent->token() != token) {
        return nullptr;
      }
      return daemon->parent;
    };
    session_ = std::make_shared<Session>(daemon->device, options);
    session_->SetConnection(
        std::make_unique<BytesConnection>(&batches_, &answers_, local),
        session_->token());
  }
  ~Client() { session_->End(absl::OkStatus()); }

  // False: the session has ended.
  bool Apply(const v1::Command& command) {
    v1::Batch batch;
    batch.set_sequence(++sequence_);
    *batch.add_commands() = command;
    batches_.push_back(batch.SerializeAsString());
    ++applied_;
    // A backward that waits for its client's code has no work.
    for (int i = 0; i < 1000 && !session_->ended() && session_->HasWork();
         ++i) {
      session_->RunSome({1 << 20});
    }
    return !session_->ended();
  }

  Answers& answers() { return answers_; }
  const std::shared_ptr<Session>& session() const { return session_; }
  uint64_t applied() const { return applied_; }

 private:
  std::deque<std::string> batches_;
  Answers answers_;
  std::shared_ptr<Session> session_;
  uint64_t sequence_ = 0;
  uint64_t applied_ = 0;
};

// Changes messages by their descriptors, so that it knows every field that
// there will ever be.
class Mutator {
 public:
  Mutator(Random* random, const Daemon* daemon)
      : random_(*random), daemon_(*daemon) {}

  // Handles that the program uses are worth using elsewhere.
  void Note(const v1::Command& command) {
    if (command.has_op()) most_ = std::max(most_, command.op().outputs());
    if (command.has_put()) most_ = std::max(most_, command.put().handle());
  }

  void Mutate(v1::Command* command) {
    if (random_.Percent(20)) {
      const Descriptor& all = *command->GetDescriptor();
      const auto& kinds = *all.FindOneofByName("kind");
      command->Clear();
      Fill(command, kinds.field(random_.Below(kinds.field_count())), 0);
      return;
    }
    for (int64_t n = random_.Between(1, 3); n > 0; --n) {
      std::vector<std::pair<Message*, const FieldDescriptor*>> places;
      Collect(command, &places);
      const auto& [message, field] = random_.Pick(places);
      Change(message, field);
    }
  }

 private:
  uint64_t Number() {
    switch (random_.Below(12)) {
      case 0:
        return 0;
      case 1:
        return uint64_t{1} << random_.Below(64);
      case 2:
        return std::numeric_limits<uint64_t>::max() - random_.Below(3);
      case 3:
        return (uint64_t{1} << 62) - random_.Below(3);
      case 4:
        return (uint64_t{1} << 63) + random_.Below(4);
      case 5:
        return most_ + random_.Below(4);
      default:
        return 1 + random_.Below(most_ + 1);
    }
  }

  // Sizes between these would be slow, and are told as such (CheckSteps).
  int64_t Signed() {
    const int64_t small = random_.Between(-4, 8);
    if (random_.Percent(85)) return small;
    const int shift = random_.Percent(50) ? static_cast<int>(random_.Below(12))
                                          : 45 + random_.Below(18);
    const int64_t value = int64_t{1} << shift;
    return random_.Percent(50) ? value - 1 : -value;
  }

  std::string Text(const FieldDescriptor* field) {
    if (random_.Percent(60) && !daemon_.strings.empty()) {
      return random_.Pick(daemon_.strings);
    }
    std::string text(random_.Below(random_.Percent(5) ? 300 : 24), '\0');
    for (char& c : text) {
      c = field->type() == FieldDescriptor::TYPE_STRING
              ? static_cast<char>('a' + random_.Below(3))
              : static_cast<char>(random_.Next());
    }
    return text;
  }

  void Collect(
      Message* message,
      std::vector<std::pair<Message*, const FieldDescriptor*>>* places) {
    const Reflection& reflection = *message->GetReflection();
    const Descriptor& all = *message->GetDescriptor();
    for (int i = 0; i < all.field_count(); ++i) {
      const FieldDescriptor* field = all.field(i);
      const bool set = field->is_repeated()
                           ? reflection.FieldSize(*message, field) > 0
                           : reflection.HasField(*message, field);
      // What is not there may come, but rarely in the place of what is.
      if (!set &&
          (field->real_containing_oneof() != nullptr || !random_.Percent(20))) {
        continue;
      }
      places->emplace_back(message, field);
      if (!set || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        continue;
      }
      if (!field->is_repeated()) {
        Collect(reflection.MutableMessage(message, field), places);
      } else {
        const int n = reflection.FieldSize(*message, field);
        Collect(
            reflection.MutableRepeatedMessage(message, field, random_.Below(n)),
            places);
      }
    }
    if (places->empty()) places->emplace_back(message, all.field(0));
  }

  void Change(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    const int size =
        field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    if (!field->is_repeated() || size == 0) {
      if (random_.Percent(20)) return reflection.ClearField(message, field);
      return Fill(message, field, 0);
    }
    switch (random_.Below(5)) {
      case 0:
        return reflection.ClearField(message, field);
      case 1:
        return reflection.RemoveLast(message, field);
      case 2:
        return reflection.SwapElements(message, field, random_.Below(size),
                                       random_.Below(size));
      case 3:
        return Fill(message, field, 0);  // one more
      default:
        // Another one in some place.
        Fill(message, field, 0);
        reflection.SwapElements(message, field, random_.Below(size), size);
        return reflection.RemoveLast(message, field);
    }
  }

  // Sets the field, or adds to it.
  void Fill(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection& r = *message->GetReflection();
    const bool add = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool value = random_.Percent(50);
        return add ? r.AddBool(message, field, value)
                   : r.SetBool(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const uint64_t value = Number();
        return add ? r.AddUInt64(message, field, value)
                   : r.SetUInt64(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const uint32_t value =
            field->name() == "op"
                ? static_cast<uint32_t>(random_.Below(kNumOps + 2))
                : static_cast<uint32_t>(random_.Percent(80) ? random_.Below(4)
                                                            : Number());
        return add ? r.AddUInt32(message, field, value)
                   : r.SetUInt32(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const int64_t value = Signed();
        return add ? r.AddInt64(message, field, value)
                   : r.SetInt64(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_INT32: {
        const int32_t value = static_cast<int32_t>(Signed());
        return add ? r.AddInt32(message, field, value)
                   : r.SetInt32(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        static constexpr double kNumbers[] = {
            0, 1, 0.5, -1.5, 1e30, std::numeric_limits<double>::quiet_NaN()};
        const double value = kNumbers[random_.Below(std::size(kNumbers))];
        return add ? r.AddDouble(message, field, value)
                   : r.SetDouble(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_FLOAT:
        return add ? r.AddFloat(message, field, 1)
                   : r.SetFloat(message, field, 1);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = static_cast<int>(random_.Below(15));
        return add ? r.AddEnumValue(message, field, value)
                   : r.SetEnumValue(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_STRING:
        return add ? r.AddString(message, field, Text(field))
                   : r.SetString(message, field, Text(field));
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        Message* inner = add ? r.AddMessage(message, field)
                             : r.MutableMessage(message, field);
        if (depth < 4) FillAll(inner, depth + 1);
        return;
      }
    }
  }

  void FillAll(Message* message, int depth) {
    const Descriptor& all = *message->GetDescriptor();
    for (int i = 0; i < all.field_count(); ++i) {
      const FieldDescriptor* field = all.field(i);
      if (!random_.Percent(field->real_containing_oneof() != nullptr ? 30
                                                                     : 60)) {
        continue;
      }
      const int64_t times = field->is_repeated() ? random_.Between(0, 3) : 1;
      for (int64_t n = 0; n < times; ++n) Fill(message, field, depth);
    }
  }

  Random& random_;
  const Daemon& daemon_;
  uint64_t most_ = 1;
};

// A random program on its way to a session: some of its commands come as
// something else.
class HostileTarget final : public CommandTarget {
 public:
  HostileTarget(uint64_t seed, Client* client, const Daemon* daemon)
      : random_(seed ^ 0x9e3779b97f4a7c15u),
        client_(*client),
        mutator_(&random_, daemon),
        percent_(random_.Percent(20) ? 60 : 6) {}

  bool Apply(const v1::Command& command) override {
    Answers& answers = client_.answers();
    mutator_.Note(command);
    if (!answers.calls.empty() && random_.Percent(70)) {
      v1::Command answer;
      for (int64_t n = random_.Between(0, 3); n > 0; --n) {
        answer.mutable_backward_answer()->add_gradients(random_.Below(20));
      }
      answer.mutable_backward_answer();
      answers.calls.pop_front();
      if (!client_.Apply(answer)) return false;
    }
    if (!random_.Percent(percent_)) return client_.Apply(command);
    v1::Command changed = command;
    mutator_.Mutate(&changed);
    // What has no answer leaves the former one.
    answers.read.Clear();
    if (!client_.Apply(changed)) return false;
    // Sometimes the honest one comes as well.
    return random_.Percent(50) ? client_.Apply(command) : true;
  }
  const v1::ReadResult& last_read() const override {
    return client_.answers().read;
  }

 private:
  Random random_;
  Client& client_;
  Mutator mutator_;
  const int percent_;  // of commands that are changed
};

// A session that is in nobody's way and wants right answers.
class Bystander {
 public:
  explicit Bystander(Daemon* daemon) : client_(daemon, /*local=*/true) {
    Put(1, 3);
    Put(2, 4);
    // What the hostile ones may reach for.
    v1::Command publish;
    publish.mutable_names()->set_id(1000000);
    publish.mutable_names()->mutable_publish()->set_name("w");
    auto* item = publish.mutable_names()->mutable_publish()->add_items();
    item->set_key("w");
    item->set_handle(2);
    client_.Apply(publish);
    v1::Command share;
    share.mutable_read()->set_id(1000001);
    share.mutable_read()->set_handle(2);
    share.mutable_read()->set_share(true);
    client_.Apply(share);
    daemon->strings = {"w",
                       "fuzz",
                       "",
                       "a",
                       client_.answers().read.data(),
                       client_.session()->token()};
    daemon->parent = client_.session();
  }

  // Handle 1 is nobody else's; 2 is shared, and may have been written.
  std::string Check() {
    v1::Command add;
    const uint64_t handle = next_++;
    add.mutable_op()->set_op(static_cast<uint32_t>(OpId::add));
    add.mutable_op()->add_inputs(1);
    add.mutable_op()->add_inputs(1);
    add.mutable_op()->set_outputs(handle);
    v1::Command read;
    read.mutable_read()->set_id(handle);
    read.mutable_read()->set_handle(handle);
    v1::Command release;
    release.add_release(handle);
    client_.answers().read.Clear();
    const bool lives = client_.Apply(add) && client_.Apply(read);
    const v1::ReadResult result = client_.answers().read;
    if (!lives || !client_.Apply(release))
      return "the bystander's session ended";
    float sum = 0;
    if (result.data().size() == sizeof sum) {
      std::memcpy(&sum, result.data().data(), sizeof sum);
    }
    if (sum != 6) {
      return absl::StrCat("the bystander read ", sum,
                          " where 3 + 3 was due: ", result.status().message());
    }
    return client_.answers().internal;
  }
  uint64_t applied() const { return client_.applied(); }

 private:
  void Put(uint64_t handle, float value) {
    v1::Command command;
    command.mutable_put()->set_handle(handle);
    command.mutable_put()->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    command.mutable_put()->set_data(&value, sizeof value);
    client_.Apply(command);
  }

  Client client_;
  uint64_t next_ = 10;
};

int Main(int argc, char** argv) {
  uint64_t programs = 5000, seed = 1;
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    if (absl::ConsumePrefix(&text, "--programs=")) {
      if (!absl::SimpleAtoi(text, &programs)) return 2;
    } else if (absl::ConsumePrefix(&text, "--seed=")) {
      if (!absl::SimpleAtoi(text, &seed)) return 2;
    }
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!SetUpLog({"off", "text", ""}).ok()) return 2;
  for (const int number : {SIGSEGV, SIGILL, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) {
    signal(number, &TellAndEnd);
  }
  const std::unique_ptr<Device> device = NewCpuDevice(2);
  std::unique_ptr<Daemon> daemon;
  std::unique_ptr<Bystander> bystander;
  std::set<std::string> findings;  // their first words
  uint64_t commands = 0, ended = 0;
  for (uint64_t i = 0; i < programs; ++i, ++seed) {
    std::snprintf(repeat, sizeof repeat,
                  "message_fuzz_test --programs=1 --seed=%llu",
                  static_cast<unsigned long long>(seed));  // NOLINT
    alarm(kMostSeconds);
    if (i % kProgramsOfBystander == 0) {
      bystander.reset();
      daemon = std::make_unique<Daemon>(device.get());
      bystander = std::make_unique<Bystander>(daemon.get());
    }
    std::string finding;
    {
      Client client(daemon.get(), /*local=*/seed % 2 == 0);
      HostileTarget target(seed, &client, daemon.get());
      RandomProgram program(seed, &target);
      program.RunFor(AllOps()[seed % AllOps().size()]);
      if (!program.End()) ++ended;
      finding = client.answers().internal;
      commands += client.applied();
    }
    if (finding.empty()) finding = bystander->Check();
    alarm(0);
    if (finding.empty() || !findings.insert(finding.substr(0, 24)).second) {
      continue;
    }
    std::printf("%s: %s\n", repeat, finding.c_str());
    if (findings.size() >= kMostFindings) break;
  }
  bystander.reset();
  std::printf("%lld programs, %lld commands, %lld sessions ended\n",
              static_cast<long long>(programs),  // NOLINT
              static_cast<long long>(commands),  // NOLINT
              static_cast<long long>(ended));    // NOLINT
  return findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::Main(argc, argv); }
