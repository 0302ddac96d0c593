// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session: one client's tensors, stream position and connection. It outlives
// connections; it dies when its client leaves, its grace period ends or it
// breaks the protocol, and takes exactly its own memory with it.
// Thread-safety: methods are grouped by who may call them.
#ifndef HOLDFAST_SERVER_SESSION_SESSION_H_
#define HOLDFAST_SERVER_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"
#include "server/exec/executor.h"
#include "server/exec/fair_share.h"
#include "server/log/log.h"
#include "server/memory/memory_ledger.h"
#include "server/session/connection.h"
#include "server/session/session_life.h"

namespace holdfast {

class Session : public std::enable_shared_from_this<Session>,
                private ReplySink {
 public:
  struct Options {
    uint64_t id = 0;
    std::string trace_id;  // names the session in errors and in the log
    std::string name;      // see name()
    // Of the session whose program started this one's worker; 0: none.
    uint64_t parent_id = 0;
    std::string client;
    std::string user;    // whose session it is (trust/user.h)
    bool local = false;  // the first client shares memory with us
    // Later ones may, whatever the first is.
    bool mappable = false;
    absl::Duration grace;  // see SessionLife
    uint64_t memory_limit_bytes = 0;
    uint64_t max_handles = 0;                // see Executor::Options
    uint64_t max_graph_nodes = 0;            // likewise
    double op_seconds = 0;                   // see set_op_seconds
    std::shared_ptr<MemoryAccount> account;  // the user's; null: not counted
    uint64_t inline_limit_bytes = 1 << 20;
    // The session that a token opens, or null; for the worker thread.
    std::function<std::shared_ptr<Session>(const std::string& token)>
        find_session;
    StreamId stream = 0;  // of Device::CreateStream; the session destroys it
    int priority = 0;     // of the stream
    std::vector<Device*> further_devices;    // see Executor::Options
    std::shared_ptr<SharedStorages> shared;  // see Executor::Options
    // One for all sessions of a user; null: the session has its own.
    std::shared_ptr<UserShare> user_share;
    std::shared_ptr<PublishedTensors> names;  // see Executor::Options
  };
  Session(Device* device, Options options);
  ~Session();

  // ---- any thread

  const Options& options() const { return options_; }
  // Who may use it, and until when.
  SessionLife* life() { return &life_; }
  const SessionLife* life() const { return &life_; }
  // What its client resumes it with; another one for each client.
  std::string token() const { return life_.token(); }
  bool ended() const { return life_.ended(); }
  bool connected() const { return life_.connected(); }
  // The code of the reason that End was given.
  absl::StatusCode end_code() const { return end_code_.load(); }
  // Whether the client of now shares memory with us.
  bool local() const { return local_.load(std::memory_order_acquire); }
  // A block for the client to fill and Put: served at once, ahead of queued
  // ops. ResourceExhausted over the limit.
  absl::StatusOr<v1::Block> AllocateBlock(uint64_t bytes);
  // The memfd of a segment, to pass to the local client; owned by the
  // session. Also its size.
  absl::StatusOr<MemorySegment> FindSegment(uint64_t id);

  // Drops what the client has sent and that has not run (CancelRequest).
  // FailedPrecondition: it is no longer the session's.
  absl::Status Cancel(const v1::CancelRequest& request);

  // Uploads arrive beside the stream; a Put names them when complete. `charge`
  // is what counts them on their user's account until then.
  absl::Status StoreUpload(uint64_t id, SharedBytes bytes, MemoryCharge charge);
  // Bytes of a large read. They stay until DropDownload, so that a cut
  // transfer can be repeated.
  absl::StatusOr<SharedBytes> FindDownload(uint64_t id);
  void DropDownload(uint64_t id);
  // The client of now says when it has them, or does not want them: by its
  // acknowledgement of the event. Of another one, gRPC's word must do.
  bool keeps_downloads() const { return keeps_downloads_.load(); }

  // Where its tensors lie, on the first device.
  CachingAllocator* memory() { return executor_->allocator(); }

  v1::SessionStats Stats() const;
  // ---- session_memory.cc
  void TellMemory(v1::SessionStats* stats) const;
  // Block by block.
  void ListMemory(v1::SessionStats* stats) const;

  // "" until it gets one, which it then keeps.
  std::string name() const;
  void set_name(std::string name);
  // What the peer that has it showed (Peer::credential).
  std::string credential() const;
  void set_credential(std::string credential);
  // Memory of this session alone, in bytes; 0: no limit. What it has it keeps.
  void set_memory_limit(uint64_t bytes) { executor_->set_memory_limit(bytes); }
  // As Executor's; any thread.
  void set_count_limits(uint64_t handles, uint64_t graph_nodes) {
    executor_->set_count_limits(handles, graph_nodes);
  }
  // Stops the op that the session runs just now, if it runs one; those after
  // it run. Ends no wait and takes no time: the kernel looks within
  // milliseconds. The op fails with `why`, as does what depends on it.
  void StopRunning(absl::Status why);
  // Stops all that the client has asked for up to that op (Event.op_sequence
  // of errors counts them), run already or not.
  void StopThrough(uint64_t op_sequence, absl::Status why);
  // The session is to end: nothing of it runs any more.
  void StopForGood(absl::Status why);
  // How long an op may take, by estimate and by clock; 0: no limit.
  void set_op_seconds(double seconds);
  double op_seconds() const { return op_seconds_.load(); }
  // How often a turn is to be looked at so that an op ends in time; zero: as
  // often as others.
  absl::Duration close_looks() const {
    return absl::Microseconds(close_looks_us_.load(std::memory_order_relaxed));
  }
  // Ops that have begun so far; and what StopOp knows the running one by.
  uint64_t ops_begun() const { return executor_->ops_run(); }
  uint64_t running_op() const { return executor_->stop()->running(); }
  void StopOp(uint64_t running_op, absl::Status why);
  // The transport of `connection` is gone, which the worker hears when it has
  // time. What runs goes on as long as somebody may come back for it.
  void NoteHangUp(const Connection* connection, SteadyTime now);
  // Whether the client that is connected is dead, as far as its transport or
  // the system knows: the worker may not have heard of it. Makes a system call.
  bool client_is_gone() const;
  // Somebody came back.
  void NoteReturn() { abandoned_us_.store(INT64_MAX); }
  // Nobody waits any more for what runs.
  bool abandoned(SteadyTime now) const {
    return now.ToMicros() >= abandoned_us_.load();
  }
  // When the latest command ran, or a client connected.
  SteadyTime last_active() const;
  // The daemon served nobody for that long until now: it is no idle time.
  void Excuse(absl::Duration held_up, SteadyTime now);

  // ---- worker thread

  // Serves waiting commands until `slice` allows no more; it may stop inside
  // a batch. Sends events that a full transport left over.
  struct Slice {
    int max_commands = 0;
    absl::Duration max_time = absl::InfiniteDuration();
    // Device time that ops may be ahead of an asynchronous device.
    absl::Duration lead = absl::InfiniteDuration();
    const std::atomic<bool>* yield = nullptr;  // stop early when set
    Attendant* attendant = nullptr;            // has its turn inside kernels
  };
  void RunSome(const Slice& slice);
  // What a kernel does between its grains, while its op waits for memory.
  void LookAround() { executor_->stop()->Look(); }
  bool HasWork();
  // Has work, and the device is not too far behind for it (Slice::lead). Cheap.
  bool Runnable(absl::Duration lead);
  // Reads wait for the device: look again soon.
  bool AwaitsDevice() const;
  bool Arm();
  void Disarm();
  int doorbell() const {  // see Connection::doorbell
    return connection_ == nullptr ? -1 : connection_->doorbell();
  }
  // Looks at the connection's queue, for Stats; called about once a second.
  void NoteQueue();

  // The connection of the client that has `token`; closed if that is no
  // longer the session's.
  void SetConnection(std::unique_ptr<Connection> connection,
                     const std::string& token);
  // Takes it away if it is `expected` (any if null), and with it nothing: what
  // the session did of an interrupted batch is remembered.
  std::unique_ptr<Connection> TakeConnection(Connection* expected);
  // Fills the reply's session part: kept tensors, numbers. With `attach`, drops
  // all unnamed handles first, and from then on serves a client that is `local`
  // or not.
  void FillHello(const v1::HelloRequest& request, bool attach, bool local,
                 v1::HelloReply* reply);
  // What it keeps for the next client, and all of it back in a new session.
  KeptTensors TakeKept();
  void RestoreKept(KeptTensors kept);
  // The client has left (SessionLife::Leave): what it sent before has its
  // turns, until `deadline`, then the connection is dropped. False if that was
  // all done at once; else `done` is called then, whatever ends it. Once for
  // each goodbye: a client whose connection broke says it again.
  bool FinishFor(SteadyTime deadline, std::function<void()> done);
  // Tells the client why, and lets it go for good; the tensors stay.
  void HangUp(const absl::Status& reason);
  // Ends the session: frees every tensor and block, now. An error is told to
  // the client, and logged as a warning unless it is DeadlineExceeded (nobody
  // came back) or Unavailable (the daemon ends). Once.
  void End(const absl::Status& reason);

  // Accounts of the scheduler (fair_share.h). Weights from any thread.
  ShareAccount* share() { return &share_; }
  UserShare* user_share() { return options_.user_share.get(); }
  // ---- and what it had of the device; worker thread
  // Its ops are done some time after they ran: the device's time is told later.
  bool asynchronous() const { return executor_->asynchronous(); }
  // Sets a mark behind what it has enqueued, for TakeDeviceUses.
  void MarkWork() { executor_->MarkWork(); }
  // What was marked is not done.
  bool work_under_way() const { return executor_->work_under_way(); }
  // Since when devices may have been at it; never if there is none.
  SteadyTime work_since() const { return executor_->work_since(); }
  // When asynchronous devices worked at what they have done since the last
  // call.
  std::vector<DeviceUse> TakeDeviceUses() {
    return executor_->TakeDeviceUses();
  }
  // For Stats.
  void AddDeviceSeconds(double seconds);

 private:
  // ReplySink: reads that are done.
  void Reply(v1::ReadResult result) override;
  void Call(v1::BackwardCall call) override;
  absl::StatusOr<uint64_t> AddDownload(SharedBytes bytes) override;
  absl::StatusOr<SharedBytes> TakeUpload(uint64_t id) override;
  absl::StatusOr<Value> FindInherited(const v1::Inherited& from) override;

  SessionLabel label() const {
    return {options_.id, options_.trace_id, options_.user};
  }
  // Allocations were refused since the last look: a line about once a minute.
  void LogLimitHits();
  void LogChecksFailed();
  // The commands of a slice; counts them. An error: the client broke the
  // protocol.
  absl::Status RunUntil(const Slice& slice, SteadyTime start,
                        SteadyTime deadline, int* ran);
  void PublishCounters();  // to the mirrors that Stats reads
  void SendEvent(v1::Event event);
  // To the connection; false when it is full. What that keeps is not the
  // executor's heap.
  bool HandOver(const v1::Event& event);
  void FlushEvents();
  bool HasAnswers();              // to be sent now
  bool HasCommands();             // to be run
  bool HasUnsentEvents() const {  // they wait for room in the transport
    return connection_ != nullptr && sent_events_ < unacknowledged_.size();
  }
  void DropAcknowledged(uint64_t event);
  void DropBulk();  // what a former client left in uploads and downloads
  // Takes the next batch into current_, if there is one to apply.
  absl::Status TakeBatch();
  void FinishBatch();
  void FinishLeaving();
  // The client broke the protocol. What has a name and was kept is not the
  // program's to lose by that: it waits for another client.
  void Break(const absl::Status& reason);

  Options options_;
  SessionLife life_;
  ShareAccount share_;
  std::unique_ptr<Executor> executor_;      // worker thread
  std::unique_ptr<Connection> connection_;  // worker thread
  // The batch being applied, owned by the connection, and the next command.
  const v1::Batch* current_ = nullptr;
  int position_ = 0;
  // A batch that a cut interrupted, and how many of its commands were applied:
  // the client sends it again, whole, and the rest is applied then.
  uint64_t interrupted_batch_ = 0;
  int interrupted_position_ = 0;
  std::deque<v1::Event> unacknowledged_;  // sent or to be sent, numbered
  size_t sent_events_ = 0;                // prefix of it handed over
  size_t unacknowledged_bytes_ = 0;
  uint64_t batches_since_ack_ = 0, bytes_since_ack_ = 0;
  uint64_t next_event_ = 1;
  uint64_t applied_batch_ = 0;
  uint64_t acknowledged_batch_ = 0;  // last one we told the client about
  uint64_t logged_limit_hits_ = 0;
  SteadyTime next_limit_line_ = SteadyTime::Past();
  uint64_t logged_checks_failed_ = 0;
  SteadyTime next_check_line_ = SteadyTime::Past();
  // See FinishFor; worker thread.
  std::vector<std::function<void()>> left_;
  SteadyTime leave_by_;
  bool cleared_ = false;  // End is through; worker thread
  std::atomic<bool> local_;
  std::atomic<bool> keeps_downloads_{false};
  std::atomic<absl::StatusCode> end_code_{absl::StatusCode::kOk};
  std::atomic<int64_t> active_us_{0};
  std::atomic<double> op_seconds_{0};
  std::atomic<int32_t> close_looks_us_{0};
  std::atomic<int64_t> abandoned_us_{INT64_MAX};
  std::atomic<const Connection*> connection_now_{nullptr};  // as connection_
  // Mirrors for Stats.
  std::atomic<uint64_t> tensors_{0}, ops_{0}, op_sequence_{0};
  std::atomic<uint64_t> queued_bytes_{0}, refused_allocations_{0};
  std::atomic<double> device_seconds_{0};
  std::atomic<const char*> transport_{""};

  // Between a Cancel and the client whose it is, or was.
  std::mutex cancel_mutex_;
  // Guards what follows. std::mutex, here and elsewhere in the server: the
  // system's Abseil is not built for ThreadSanitizer.
  mutable std::mutex bulk_mutex_;
  struct StoredBytes {
    SharedBytes bytes;
    MemoryCharge charge;
  };
  absl::flat_hash_map<uint64_t, StoredBytes> uploads_, downloads_;
  uint64_t next_download_ = 1;
  uint64_t bulk_bytes_ = 0;
  std::string credential_, name_;
  std::function<bool()> hang_up_look_;  // of connection_
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_SESSION_H_
