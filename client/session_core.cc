// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: the stream of commands, releases, ending, and the rare verbs.
#include "client/session_core.h"

#include <pthread.h>
#include <signal.h>

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/admin.h"
#include "client/fork_guard.h"
#include "client/meta_session.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "proto/steady_time.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

std::atomic<bool> process_ends{false};

// Releases that may wait for the next command.
constexpr size_t kMaxPendingReleases = 64;
// How long they wait when no command comes, and after how many quiet rounds
// the attendant stops looking.
constexpr absl::Duration kReleaseDelay = absl::Microseconds(500);
constexpr int kQuietRounds = 10;

// A thread that takes no signals, since those are the program's.
std::unique_ptr<std::thread> StartQuietThread(std::function<void()> body) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  auto thread = std::make_unique<std::thread>(std::move(body));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace

void ProcessEnds() { process_ends.store(true); }

absl::StatusOr<std::shared_ptr<Session>> SessionCore::Create(
    std::unique_ptr<Connection> connection, std::string address,
    std::shared_ptr<PrivateDaemon> daemon, double timeout_seconds,
    double run_ahead_seconds) {
  std::shared_ptr<SessionCore> session(
      new SessionCore(std::move(connection), std::move(address),
                      std::move(daemon), timeout_seconds, run_ahead_seconds));
  absl::Status status = session->ReadOpTable();
  if (!status.ok()) return status;
  SessionCore* core = session.get();
  session->attendant_ = StartQuietThread([core] { core->Attend(); });
  return std::shared_ptr<Session>(std::move(session));
}

SessionCore::SessionCore(std::unique_ptr<Connection> connection,
                         std::string address,
                         std::shared_ptr<PrivateDaemon> daemon,
                         double timeout_seconds, double run_ahead_seconds)
    : connection_(std::move(connection)),
      daemon_(std::move(daemon)),
      hello_(connection_->hello()),
      address_(std::move(address)),
      transport_(connection_->transport()),
      local_(transport_ == "shm"),
      timeout_seconds_(timeout_seconds),
      fork_generation_(ForkGeneration()),
      parts_(absl::c_linear_search(hello_.features(), kFeatureParts)),
      order_(absl::c_linear_search(hello_.features(), kFeatureOrder)),
      cancels_(absl::c_linear_search(hello_.features(), kFeatureCancel)),
      cost_kinds_(CostKinds()),
      run_ahead_(run_ahead_seconds, &too_far_ahead_),
      next_handle_(std::max<uint64_t>(1, hello_.next_handle())) {
  if (!cancels_) run_ahead_.Disable();
  releases_.reserve(kMaxPendingReleases);
  for (const wire::KeptTensor& kept : hello_.kept()) {
    absl::StatusOr<TensorSpec> spec = SpecFromProto(kept.spec());
    if (!spec.ok()) continue;
    KeptEntry entry;
    entry.handle = kept.handle();
    entry.spec = *std::move(spec);
    entry.storage = MakeRef<StorageState>();
    entry.requires_grad = kept.requires_grad();
    kept_[kept.name()] = std::move(entry);
  }
}

SessionCore::~SessionCore() {
  if (ForkGeneration() != fork_generation_) {
    // The parent's threads and sockets are not ours to end.
    static_cast<void>(attendant_.release());
    static_cast<void>(
        const_cast<std::unique_ptr<Connection>&>(connection_).release());
    return;
  }
  static_cast<void>(CloseOrLeave());
  stopping_ = true;
  connection_->Wake();
  if (attendant_) attendant_->join();
}

absl::Status SessionCore::ReadOpTable() {
  absl::Status status = ReadOpIds();
  if (!status.ok()) return status;
  saves_nothing_.assign(kNumOps, false);
  const absl::flat_hash_set<uint32_t> ids(hello_.saves_nothing().begin(),
                                          hello_.saves_nothing().end());
  for (int i = 0; i < kNumOps; ++i)
    saves_nothing_[i] = ids.contains(op_ids_[i]);
  if (!absl::c_linear_search(hello_.features(), kFeaturePack)) {
    return absl::OkStatus();
  }
  absl::flat_hash_map<uint32_t, const wire::OpSaves*> saves;
  for (const wire::OpSaves& op : hello_.saves()) saves[op.op()] = &op;
  saves_.resize(kNumOps);
  for (int i = 0; i < kNumOps; ++i) {
    const auto found = saves.find(op_ids_[i]);
    if (found != saves.end()) saves_[i] = *found->second;
  }
  return absl::OkStatus();
}

absl::Status SessionCore::ReadOpIds() {
  op_ids_.resize(kNumOps);
  if (hello_.ops().empty()) {
    if (hello_.op_fingerprint() != OpTableFingerprint()) {
      return absl::UnavailableError(absl::StrCat(
          "[connect] the daemon's ops differ from the client's and it did not "
          "list them. Got ",
          hello_.server(), " at ", address_, "."));
    }
    for (int i = 0; i < kNumOps; ++i) op_ids_[i] = i;
    return absl::OkStatus();
  }
  // Ops that both sides spell and define alike are usable; the others are
  // refused by name when they are called.
  std::fill(op_ids_.begin(), op_ids_.end(), kNoSuchOp);
  for (const wire::OpName& op : hello_.ops()) {
    const OpSchema* schema = FindOp(op.name());
    if (schema != nullptr && schema->signature == op.signature()) {
      op_ids_[static_cast<int>(schema->id)] = op.id();
    }
  }
  return absl::OkStatus();
}

// ---- state

bool SessionCore::usable() const {
  return !ended_.load(std::memory_order_acquire) &&
         ForkGeneration() == fork_generation_;
}

absl::Status SessionCore::Unusable() const {
  if (forked()) {
    if (!not_inherited_.ok()) return not_inherited_;
    return absl::FailedPreconditionError(
        "[session] a session belongs to the process that opened it, and this "
        "process was forked from that one. Connect again in the child, or "
        "start it with the 'spawn' method.");
  }
  std::lock_guard<std::mutex> lock(end_mutex_);
  return end_reason_;
}

void SessionCore::End(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(end_mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    end_reason_ = reason;
    ended_.store(true, std::memory_order_release);
  }
  // Empty, so that a waiter between its look at ended_ and its wait is not
  // missed.
  { std::lock_guard<std::mutex> lock(reads_mutex_); }
  read_done_.notify_all();
}

absl::Status SessionCore::CheckOwner(absl::string_view op,
                                     const Tensor& tensor) const {
  if (ABSL_PREDICT_TRUE(tensor->session().get() == this)) {
    return absl::OkStatus();
  }
  if (IsMeta(*this) || IsMeta(*tensor->session())) {
    const std::string& other =
        IsMeta(*this) ? tensor->session()->device() : device();
    return absl::InvalidArgumentError(absl::StrCat(
        "[", op,
        "] Expected all tensors to be on the same device, but found at "
        "least two devices, meta and ",
        other, ". Got ", tensor->spec().ToString(),
        ". Tensors of 'meta' have no data: make them on a device with "
        "module.to_empty(device=...) or holdfast.empty_like(x, device=...)."));
  }
  const auto describe = [](const Session& session) {
    const std::string name = session.name();
    return absl::StrCat("session ", session.id(), " (",
                        name.empty() ? "no name" : absl::StrCat("'", name, "'"),
                        ") at ", session.address());
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "[", op, "] all tensors must belong to one session. Got ",
      tensor->spec().ToString(), " of ", describe(*tensor->session()),
      " in a call on ", describe(*this),
      ". Call connect() before making tensors, or copy one over: "
      "holdfast.tensor(x.numpy())."));
}

std::shared_ptr<Session> SessionCore::Self() { return shared_from_this(); }

Tensor SessionCore::NewTensor(uint64_t handle, TensorSpec spec,
                              RefPtr<StorageState> storage) {
  if (!storage) storage = MakeRef<StorageState>();
  return MakeRef<TensorState>(Self(), handle, std::move(spec),
                              std::move(storage));
}

// ---- sending

absl::Status SessionCore::Send(EncodedCommand command) {
  if (ABSL_PREDICT_FALSE(command.size > kPartBytes)) return SendParts(command);
  absl::Status status = connection_->Send(command);
  // A connection that refuses one command goes on, and so does one whose user
  // did not wait.
  if (ABSL_PREDICT_FALSE(!status.ok()) && !absl::IsOutOfRange(status) &&
      !absl::IsCancelled(status)) {
    End(status);
  }
  return status;
}

absl::Status SessionCore::SendParts(EncodedCommand command) {
  const absl::string_view bytes = writer_.Body(command);
  const size_t limit = parts_ ? kMaxCommandBytes : kPartBytes;
  if (bytes.size() > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("[session] a call must have at most ", limit,
                     " bytes of handles, names and numbers. Got ", bytes.size(),
                     "; pass fewer tensors at once."));
  }
  BatchWriter writer;
  wire::Command part;
  for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
    const absl::string_view piece = bytes.substr(at, kPartBytes);
    part.mutable_part()->set_data(piece.data(), piece.size());
    part.mutable_part()->set_last(at + piece.size() == bytes.size());
    absl::Status status = connection_->Send(writer.Encode(part, {}));
    if (!status.ok()) {
      End(status);
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SessionCore::CheckCount(absl::string_view op,
                                     size_t tensors) const {
  const size_t most = parts_ ? kMaxTensorsOfCall : 1 << 16;
  if (ABSL_PREDICT_TRUE(tensors <= most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("[", op, "] a call must have at most ", most,
                   " tensors. Got ", tensors, "; make several of it."));
}

absl::Status SessionCore::SendCommand(const wire::Command& command) {
  absl::Status status = Send(writer_.Encode(command, releases_));
  if (ABSL_PREDICT_TRUE(status.ok())) releases_.clear();
  return status;
}

absl::Status SessionCore::SendReleases() {
  if (releases_.empty()) return absl::OkStatus();
  absl::Status status = Send(writer_.EncodeReleases(releases_));
  if (ABSL_PREDICT_TRUE(status.ok())) releases_.clear();
  return status;
}

void SessionCore::Release(TensorState& dying) {
  if (ForkGeneration() != fork_generation_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (dying.node && dying.node->tensor == &dying) dying.node->tensor = nullptr;
  if (ended_.load(std::memory_order_relaxed)) return;
  if (!lost_.empty()) lost_.erase(dying.handle());
  releases_.push_back(dying.handle());
  if (releases_.size() >= kMaxPendingReleases) {
    static_cast<void>(SendReleases());
  } else if (!attending_) {
    // The next command carries it; should none come, the attendant does.
    attending_ = true;
    connection_->Wake();
  }
}

void SessionCore::Attend() {
  int quiet = 0;
  while (!stopping_.load()) {
    bool attending = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!releases_.empty()) {
        quiet = 0;
        if (!ended_) static_cast<void>(SendReleases());
      } else if (attending_ && ++quiet >= kQuietRounds) {
        quiet = 0;
        attending_ = false;
      }
      attending = attending_;
    }
    const absl::Status gone = connection_->Watch(
        attending ? kReleaseDelay : absl::InfiniteDuration());
    if (!gone.ok()) {
      End(gone);
      return;
    }
  }
}

// ---- the session itself

absl::Status SessionCore::KnowsRandomState() const {
  // Older daemons would pass over the fields.
  if (op_ids_[static_cast<int>(OpId::random_state)] != kNoSuchOp) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "[random] the daemon must know streams beside the session's own. Got ",
      hello_.server(), ". Use the same version on both sides."));
}

absl::Status SessionCore::SetRandom(RandomPlace place) {
  if (!usable()) return Unusable();
  if (place.offset != 0) {
    absl::Status known = KnowsRandomState();
    if (!known.ok()) return known;
  }
  wire::Command command;
  command.mutable_set_seed()->set_seed(place.seed);
  command.mutable_set_seed()->set_offset(place.offset);
  std::lock_guard<std::mutex> lock(mutex_);
  return SendCommand(command);
}

absl::Status SessionCore::ResetPeakMemory() {
  if (!usable()) return Unusable();
  wire::Command command;
  command.mutable_reset_peak_memory();
  std::lock_guard<std::mutex> lock(mutex_);
  return SendCommand(command);
}

absl::Status SessionCore::ReleaseMemory() {
  if (!usable()) return Unusable();
  wire::Command command;
  command.mutable_release_memory();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::Status status = SendCommand(command);
    if (!status.ok()) return status;
  }
  connection_->TrimMappings();
  return absl::OkStatus();
}

absl::Status SessionCore::SendNumerics() {
  const NumericsChoice choice = g_numerics.load(std::memory_order_relaxed);
  wire::Command command;
  wire::SetNumerics* wish = command.mutable_set_numerics();
  wish->set_matmul_tf32(choice & kMatmulTf32);
  wish->set_conv_float32(!(choice & kConvTf32));
  wish->set_deterministic(choice & kDeterministic);
  wish->set_benchmark(choice & kBenchmark);
  wish->set_without_cudnn(choice & kWithoutCudnn);
  absl::Status status = SendCommand(command);
  if (status.ok()) numerics_ = choice;
  return status;
}

size_t SessionCore::KeptCount() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, entry] : kept_) {
    names.insert(name.substr(0, name.find_first_of(".:")));
  }
  return names.size();
}

std::optional<Session::Left> SessionCore::CloseOrLeave() {
  if (!usable()) return std::nullopt;
  Left left{name(), KeptCount(), grace_seconds()};
  if (left.name.empty() || left.kept == 0) {
    Part(Parting::kEnd).IgnoreError();
    return std::nullopt;
  }
  // Where the daemon could not be told it takes this for a cut, and the session
  // stays as well.
  Part(Parting::kLeave).IgnoreError();
  return left;
}

absl::Status SessionCore::SetName(const std::string& name,
                                  double grace_seconds) {
  if (!usable()) return Unusable();
  if (daemon_ != nullptr) daemon_->NoteNamed();
  ConnectOptions options;
  options.address = address_;
  options.timeout_seconds = timeout_seconds_;
  absl::StatusOr<double> grace =
      NameSession(options, token(), name, grace_seconds);
  if (!grace.ok()) return grace.status();
  connection_->place()->Set(address_, id(), name, *grace);
  return absl::OkStatus();
}

absl::Status SessionCore::Part(Parting parting) {
  const bool keep = parting != Parting::kEnd;
  if (!usable()) {
    return ForkGeneration() == fork_generation_ ? absl::OkStatus() : Unusable();
  }
  absl::Status status;
  // What was sent must be applied before the session is left alone. A program
  // that ends does not wait for it where the daemon has it all already.
  if (keep && !(local_ && parting == Parting::kLeave)) {
    const SteadyTime deadline = SteadyNow() + absl::Seconds(timeout_seconds_);
    status = Synchronize([deadline] { return SteadyNow() > deadline; });
    if (!usable()) return status;
    // A failure of some op has been told or will be read; it is not this
    // call's.
    if (!absl::IsCancelled(status)) status = absl::OkStatus();
  }
  // The daemon frees memory when nobody has it open: what is still looked at
  // stays open here all the same.
  mappings_.Clear();
  if (keep && daemon_ != nullptr) daemon_->NoteLeft();
  const absl::Status goodbye = connection_->Goodbye(parting);
  // A session without a name stays as it is: nothing is lost by the mistake.
  if (keep && absl::IsInvalidArgument(goodbye)) return goodbye;
  // A process that ends looks at nothing for long.
  if (!process_ends.load()) connection_->LetGo();
  status.Update(goodbye);
  End(absl::FailedPreconditionError(absl::StrCat(
      "[session] the session at ", address_, " is closed. Connect again.")));
  connection_->Wake();
  return status;
}

absl::StatusOr<std::string> SessionCore::Stats(bool memory) {
  if (!usable()) return Unusable();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::Status status = SendReleases();
    if (!status.ok()) return status;
  }
  absl::StatusOr<wire::StatsReply> reply =
      connection_->Stats(memory ? id() : 0);
  if (!reply.ok()) return reply.status();
  return reply->SerializeAsString();
}

}  // namespace holdfast::client
