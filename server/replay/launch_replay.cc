// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/replay/launch_replay.h"

#include <algorithm>
#include <utility>

namespace holdfast {

absl::Status LaunchReplay::Launch(const LaunchRequest& call) {
  const uint64_t hash = HashOf(call);
  const LaunchRequest known = Known(call);
  if (Withhold(hash, known)) return absl::OkStatus();
  Flush();
  return LaunchPlainly(hash, known);
}

LaunchRequest LaunchReplay::Known(const LaunchRequest& call) {
  LaunchRequest known = {call.attrs, call.inputs, call.outputs};
  if (!call.attrs.schema().has(kRandom)) return known;
  if (first_draw_ && first_draw_->seed != call.philox.seed) Cut();
  if (!first_draw_) first_draw_ = call.philox;
  known.philox.offset = call.philox.offset - first_draw_->offset;
  return known;
}

PhiloxState LaunchReplay::FirstDraw() const {
  return first_draw_.value_or(PhiloxState());
}

absl::Status LaunchReplay::LaunchPlainly(uint64_t hash,
                                         const LaunchRequest& call) {
  plain_.emplace_back(hash, call);
  absl::Status status = plain_.back().LaunchOn(device_, stream_, FirstDraw());
  if (!status.ok()) {
    plain_.clear();
    first_draw_.reset();
    return status;
  }
  if (IsWhole(plain_, hash)) Close();
  return absl::OkStatus();
}

bool LaunchReplay::IsWhole(const std::vector<LaunchCall>& plain,
                           uint64_t last) const {
  return plain.size() >= options_.most ||
         (plain.size() >= options_.least && last % options_.cut == 0);
}

bool LaunchReplay::Withhold(uint64_t hash, const LaunchRequest& call) {
  if (withheld_ == 0) {
    if (!plain_.empty()) return false;
    const auto [first, last] = by_first_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Sequence& sequence = *it->second;
      if (!sequence.refused && sequence.plain_runs >= options_.plain_runs) {
        candidates_.push_back(it->second);
      }
    }
  }
  std::vector<Sequences::iterator> left;
  for (const Sequences::iterator& candidate : candidates_) {
    if (candidate->calls[withheld_].Is(hash, call)) left.push_back(candidate);
  }
  if (left.empty()) {
    if (withheld_ == 0) candidates_.clear();
    return false;  // Flush needs one of the candidates there were
  }
  candidates_ = std::move(left);
  ++withheld_;
  for (const Sequences::iterator& candidate : candidates_) {
    if (candidate->calls.size() == withheld_) {
      Run(candidate);
      break;
    }
  }
  return true;
}

void LaunchReplay::Run(Sequences::iterator sequence) {
  known_.splice(known_.begin(), known_, sequence);
  candidates_.clear();
  withheld_ = 0;
  absl::Status status;
  if (sequence->recording == 0) status = Record(&*sequence);
  const std::optional<PhiloxState> first = std::exchange(first_draw_, {});
  if (status.ok()) {
    status = recorder_->Replay(stream_, sequence->recording, first);
  }
  if (status.ok()) {
    counters_->replayed += sequence->calls.size();
    counters_->fused += sequence->fused;
    return;
  }
  if (sequence->recording != 0) {
    recorder_->DropRecording(stream_, std::exchange(sequence->recording, 0));
  }
  sequence->refused = true;
  LaunchCalls(sequence->calls, sequence->calls.size(),
              first.value_or(PhiloxState()));
}

absl::Status LaunchReplay::Record(Sequence* sequence) {
  absl::Status status = recorder_->BeginRecording(stream_);
  if (!status.ok()) return status;
  sequence->fused = 0;
  status = LaunchFused(sequence->calls, &sequence->fused);
  absl::StatusOr<Recorder::RecordingId> made = recorder_->EndRecording(stream_);
  if (!made.ok()) return made.status();
  if (!status.ok()) {
    recorder_->DropRecording(stream_, *made);
    return status;
  }
  sequence->recording = *made;
  return absl::OkStatus();
}

absl::Status LaunchReplay::LaunchFused(const std::vector<LaunchCall>& calls,
                                       size_t* fused) {
  std::vector<LaunchRequest> requests;
  requests.reserve(calls.size());
  for (const LaunchCall& call : calls) requests.push_back(call.request());
  absl::Span<const LaunchRequest> left = requests;
  while (!left.empty()) {
    const size_t chain = options_.fuse ? recorder_->Fusible(left) : 1;
    absl::Status status;
    if (chain > 1) {
      status = recorder_->LaunchFused(stream_, left.first(chain));
      *fused += chain;
    } else {
      const LaunchRequest& call = left.front();
      status = device_->Launch(stream_, call.philox, call.attrs, call.inputs,
                               call.outputs);
    }
    if (!status.ok()) return status;
    left.remove_prefix(std::max<size_t>(chain, 1));
  }
  return absl::OkStatus();
}

void LaunchReplay::LaunchCalls(const std::vector<LaunchCall>& calls, size_t n,
                               PhiloxState first) {
  for (size_t i = 0; i < n; ++i) {
    absl::Status status = calls[i].LaunchOn(device_, stream_, first);
    if (late_.ok()) late_ = std::move(status);
  }
}

void LaunchReplay::Flush() {
  if (withheld_ == 0) return;
  const std::vector<LaunchCall>& calls = candidates_.front()->calls;
  LaunchCalls(calls, withheld_, FirstDraw());
  for (size_t i = 0; i < withheld_; ++i) {
    plain_.emplace_back(calls[i].hash(), calls[i].request());
  }
  candidates_.clear();
  withheld_ = 0;
}

void LaunchReplay::Cut() {
  Flush();
  Close();
}

void LaunchReplay::Forget() {
  Cut();
  while (!known_.empty()) Drop(known_.begin());
}

void LaunchReplay::Close() {
  std::vector<LaunchCall> calls = std::exchange(plain_, {});
  first_draw_.reset();
  if (calls.size() < options_.least) return;
  auto sequence = Find(calls);
  if (sequence == known_.end()) {
    if (known_.size() >= options_.sequences) Drop(std::prev(known_.end()));
    const uint64_t first = calls.front().hash();
    sequence = known_.emplace(known_.begin());
    sequence->calls = std::move(calls);
    by_first_.emplace(first, sequence);
  } else {
    known_.splice(known_.begin(), known_, sequence);
  }
  ++sequence->plain_runs;
}

LaunchReplay::Sequences::iterator LaunchReplay::Find(
    const std::vector<LaunchCall>& calls) {
  const auto [first, last] = by_first_.equal_range(calls.front().hash());
  for (auto it = first; it != last; ++it) {
    const std::vector<LaunchCall>& other = it->second->calls;
    if (std::equal(calls.begin(), calls.end(), other.begin(), other.end(),
                   [](const LaunchCall& a, const LaunchCall& b) {
                     return b.Is(a.hash(), a.request());
                   })) {
      return it->second;
    }
  }
  return known_.end();
}

void LaunchReplay::Drop(Sequences::iterator sequence) {
  if (sequence->recording != 0) {
    recorder_->DropRecording(stream_, sequence->recording);
  }
  const auto [first, last] =
      by_first_.equal_range(sequence->calls.front().hash());
  by_first_.erase(std::find_if(first, last, [&](const auto& entry) {
    return entry.second == sequence;
  }));
  known_.erase(sequence);
}

absl::Status LaunchReplay::TakeStatus() {
  return std::exchange(late_, absl::OkStatus());
}

}  // namespace holdfast
