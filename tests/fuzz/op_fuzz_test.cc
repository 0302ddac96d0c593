// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every op of the table with random tensors and attributes, its gradients and
// theirs, in an executor on the CPU. A finding is a crash, an op that takes
// longer than a minute, a failed check (INTERNAL), or anything that is left
// when all handles are gone.
//
//   op_fuzz_test [--programs=N] [--seed=S] [--op=NAME]
//
// Program i has the seed S + i, and is about the op of that number; a finding
// says how to repeat it alone.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "ops/op_id.h"
#include "server/exec/cpu_device.h"
#include "server/exec/executor.h"
#include "tests/fuzz/random_calls.h"

namespace holdfast {
namespace {

constexpr uint64_t kMemoryLimit = uint64_t{16} << 20;
constexpr int kMostSeconds = 60;  // of one program
constexpr int kMostFindings = 10;

// For the handler of signals: what to run again.
char repeat[200];

void TellAndEnd(int number) {
  static constexpr char kText[] = "\nop_fuzz_test: ended by a signal in: ";
  [[maybe_unused]] ssize_t n = write(2, kText, sizeof kText - 1);
  n = write(2, repeat, std::strlen(repeat));
  n = write(2, "\n", 1);
  signal(number, SIG_DFL);
  raise(number);
}

// One session, without the session.
class Machine final : public CommandTarget, public ReplySink {
 public:
  explicit Machine(Device* device)
      : executor_(device, this, [] {
          Executor::Options options;
          options.memory_limit_bytes = kMemoryLimit;
          return options;
        }()) {}

  bool Apply(const v1::Command& command) override {
    const Executor::Counting counting(&executor_);
    broken_ = executor_.Apply(command);
    while (broken_.ok() && executor_.busy()) {
      executor_.Continue([] { return false; });
    }
    return broken_.ok();
  }
  const v1::ReadResult& last_read() const override { return last_read_; }

  void Reply(v1::ReadResult result) override {
    if (result.has_status() &&
        result.status().code() ==
            static_cast<int>(absl::StatusCode::kInternal)) {
      internal_ = result.status().message();
    }
    last_read_ = std::move(result);
  }
  void Call(v1::BackwardCall) override {}
  absl::StatusOr<uint64_t> AddDownload(SharedBytes) override {
    return absl::UnimplementedError("no transport");
  }
  absl::StatusOr<SharedBytes> TakeUpload(uint64_t) override {
    return absl::UnimplementedError("no transport");
  }
  absl::StatusOr<Value> FindInherited(const v1::Inherited&) override {
    return absl::UnimplementedError("no parent");
  }

  // What is wrong after a program; "": nothing.
  std::string Finding() const {
    if (!broken_.ok()) {
      return absl::StrCat("a well-formed program was told: ",
                          broken_.message());
    }
    if (!internal_.empty()) return internal_;
    if (executor_.tensors() != 0 || executor_.memory().stats().in_use != 0) {
      return absl::StrCat("left behind: ", executor_.tensors(), " handles, ",
                          executor_.memory().stats().in_use, " bytes");
    }
    return "";
  }

 private:
  Executor executor_;
  v1::ReadResult last_read_;
  absl::Status broken_;
  std::string internal_;
};

int Main(int argc, char** argv) {
  uint64_t programs = 20000, seed = 1;
  const OpSchema* only = nullptr;
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    if (absl::ConsumePrefix(&text, "--programs=")) {
      if (!absl::SimpleAtoi(text, &programs)) return 2;
    } else if (absl::ConsumePrefix(&text, "--seed=")) {
      if (!absl::SimpleAtoi(text, &seed)) return 2;
    } else if (absl::ConsumePrefix(&text, "--op=")) {
      only = FindOp(text);
      if (only == nullptr) return 2;
    }
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int number : {SIGSEGV, SIGILL, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) {
    signal(number, &TellAndEnd);
  }
  const std::unique_ptr<Device> device = NewCpuDevice(2);
  std::map<std::string, std::string> findings;  // by op, the first of each
  std::vector<uint64_t> accepted(kNumOps);
  uint64_t calls = 0, all_accepted = 0;
  for (uint64_t i = 0; i < programs; ++i, ++seed) {
    const OpSchema& op =
        only != nullptr ? *only : AllOps()[seed % AllOps().size()];
    std::snprintf(repeat, sizeof repeat,
                  "op_fuzz_test --programs=1 --seed=%llu%s%s",
                  static_cast<unsigned long long>(seed),  // NOLINT
                  only != nullptr ? " --op=" : "",
                  only != nullptr ? only->name.c_str() : "");
    alarm(kMostSeconds);
    Machine machine(device.get());
    RandomProgram program(seed, &machine);
    program.RunFor(op);
    program.End();
    alarm(0);
    calls += program.calls();
    all_accepted += program.accepted();
    accepted[static_cast<int>(op.id)] += program.accepted();
    const std::string finding = machine.Finding();
    if (finding.empty() || !findings.emplace(op.name, finding).second) continue;
    std::printf("%s (%s): %s\n", op.name.c_str(), repeat, finding.c_str());
    if (findings.size() >= kMostFindings) break;
  }
  uint64_t reached = 0;
  std::string never;
  for (const OpSchema& op : AllOps()) {
    if (accepted[static_cast<int>(op.id)] != 0) {
      ++reached;
    } else {
      absl::StrAppend(&never, " ", op.name);
    }
  }
  std::printf(
      "%lld programs, %lld calls, %lld of them accepted, of %d of %d ops\n",
      static_cast<long long>(programs),  // NOLINT
      static_cast<long long>(calls),     // NOLINT

      static_cast<long long>(all_accepted),  // NOLINT
      static_cast<int>(reached), kNumOps);
  if (programs >= 20000 && only == nullptr) {
    std::printf("accepted none:%s\n", never.c_str());
    if (reached * 10 < static_cast<uint64_t>(kNumOps) * 8) return 1;
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::Main(argc, argv); }
