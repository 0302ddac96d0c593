// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LaunchReplay: one stream's launches, of which sequences that recur are done
// as recordings (Recorder).
//
// The stream of launches is cut into sequences at places that its content
// tells, so that the same launches are cut in the same way wherever they come.
// A sequence that was met some times is withheld when it begins again, launch
// by launch, as long as every launch is equal to the one that is known; once it
// is complete the recording is enqueued in its place. Where it turns out to be
// another one, or somebody wants the work begun (Flush), what was withheld is
// launched as it came. So nothing is done that was not asked for, nothing in
// another order, and a recording is used for equal addresses only. Random
// numbers are others each time: calls are known with the distance of theirs
// from those of the sequence's first op that draws some. Thread-safety: none;
// ReplayingDevice's lock guards it.
#ifndef HOLDFAST_SERVER_REPLAY_LAUNCH_REPLAY_H_
#define HOLDFAST_SERVER_REPLAY_LAUNCH_REPLAY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "kernels/recorder.h"
#include "server/replay/launch_call.h"

namespace holdfast {

struct ReplayOptions {
  size_t least = 8;   // launches of a sequence
  size_t most = 64;   // at which it is cut in any case
  uint64_t cut = 16;  // about every so many launches of a program
  // How often a sequence is launched plainly before it is recorded: libraries
  // choose their algorithms, and allocators find their rhythm.
  int plain_runs = 2;
  size_t sequences = 128;  // that are known at a time
  // How long a launch waits for the next one (ReplayingDevice).
  absl::Duration linger = absl::Microseconds(200);
  bool fuse = true;  // what the device can fuse (Recorder::Fusible)
};

// Of all streams together; any thread.
struct ReplayCounters {
  std::atomic<uint64_t> replayed{0}, fused{0};
};

class LaunchReplay {
 public:
  // `device` and `recorder`, which are one, and `counters` must outlive it. The
  // device has the stream, but for the end of both.
  LaunchReplay(Device* device, Recorder* recorder, StreamId stream,
               const ReplayOptions& options, ReplayCounters* counters)
      : device_(device),
        recorder_(recorder),
        stream_(stream),
        options_(options),
        counters_(counters) {}

  // A launch that may be recorded. Errors of launches that had been withheld
  // are late ones: TakeStatus.
  absl::Status Launch(const LaunchRequest& call);
  // Launches what is withheld.
  void Flush();
  bool withholds() const { return withheld_ > 0; }
  // Flushes, and what follows begins a sequence.
  void Cut();
  // Cuts, and knows no sequence any more.
  void Forget();
  // The first error of a launch that was withheld; forgotten once told.
  absl::Status TakeStatus();

 private:
  struct Sequence {
    std::vector<LaunchCall> calls;
    int plain_runs = 0;
    bool refused = false;  // it cannot be recorded
    Recorder::RecordingId recording = 0;
    size_t fused = 0;  // launches of the recording that are fused
  };
  using Sequences = std::list<Sequence>;  // the last used first

  // The call as sequences know it. A program that has set another seed begins
  // a sequence.
  LaunchRequest Known(const LaunchRequest& call);
  absl::Status LaunchPlainly(uint64_t hash, const LaunchRequest& call);
  // Whether the launch goes on with what is withheld, or begins it.
  bool Withhold(uint64_t hash, const LaunchRequest& call);

  // All of it is withheld.
  void Run(Sequences::iterator sequence);
  absl::Status Record(Sequence* sequence);
  // Launches all of it, fused where that is possible; counts those in `fused`.
  absl::Status LaunchFused(const std::vector<LaunchCall>& calls, size_t* fused);
  void LaunchCalls(const std::vector<LaunchCall>& calls, size_t n,
                   PhiloxState first);
  PhiloxState FirstDraw() const;  // anything if there is none
  // `plain_` is a whole sequence.
  void Close();
  bool IsWhole(const std::vector<LaunchCall>& plain, uint64_t last) const;
  Sequences::iterator Find(const std::vector<LaunchCall>& calls);
  void Drop(Sequences::iterator sequence);

  Device* const device_;
  Recorder* const recorder_;
  const StreamId stream_;
  const ReplayOptions options_;
  ReplayCounters* const counters_;
  Sequences known_;
  // By the first launch's hash.
  std::unordered_multimap<uint64_t, Sequences::iterator> by_first_;
  // What was launched since the last cut.
  std::vector<LaunchCall> plain_;
  // Sequences whose first `withheld_` launches are those that are withheld.
  std::vector<Sequences::iterator> candidates_;
  size_t withheld_ = 0;
  // Of what was launched or withheld since the last cut, the first's.
  std::optional<PhiloxState> first_draw_;
  absl::Status late_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_REPLAY_LAUNCH_REPLAY_H_
