// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/wait_reports.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/check.h"
#include "server/log/stack_text.h"

namespace holdfast::waits {
namespace {

// A process that waits everywhere is told about in so many lines.
constexpr int kMost = 64;
// Seconds for the names of a stack: the thread that waits may have the dynamic
// linker's lock, which names want.
constexpr unsigned kNamesWithin = 3;

struct Record {
  char text[256];
  CallStack stack;
  std::atomic<bool> written{false};
};
std::array<Record, kMost> records;
std::atomic<int> taken{0};
sem_t to_tell;

Check Asked() {
  const char* const text = std::getenv("HOLDFAST_CHECK_WAITS");
  const absl::string_view asked = text == nullptr ? "" : text;
  if (asked == "abort") return Check::kAbort;
  return asked == "report" ? Check::kReport : Check::kNone;
}

void Write(int fd, const std::string& line) {
  [[maybe_unused]] const ssize_t n = write(fd, line.data(), line.size());
}

void Append(const std::string& line) {
  static const char* const path = std::getenv("HOLDFAST_WAITS_FILE");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  Write(fd, line);
  close(fd);
}

void AbortSoon() {
  std::thread([] {
    sleep(kNamesWithin);
    std::abort();
  }).detach();
}

void Tell() {
  std::set<std::string> told;
  for (int i = 0; i < kMost; ++i) {
    while (sem_wait(&to_tell) != 0) {
    }
    const Record& record = records[i];
    // Claimed in order, filled in any.
    while (!record.written.load(std::memory_order_acquire)) sched_yield();
    if (check == Check::kAbort) AbortSoon();
    const std::string line =
        absl::StrCat("holdfastd: ", record.text,
                     "; stack: ", StackText(record.stack.span()), "\n");
    if (!told.insert(line).second) continue;
    Write(STDERR_FILENO, line);
    if (check == Check::kAbort) std::abort();
    Append(line);
  }
}

// `skip`: callers of this one that are no news.
void Take(const char* text, int skip) {
  const int number = taken.fetch_add(1);
  if (number < kMost) {
    Record& record = records[number];
    strncpy(record.text, text, sizeof record.text - 1);
    record.stack = CallStack::Here(skip);
    record.written.store(true, std::memory_order_release);
    sem_post(&to_tell);
  }
  while (check == Check::kAbort) sched_yield();  // the process ends
}

}  // namespace

const Check check = Asked();

void PrepareReports() {
  static const bool once = [] {
    sem_init(&to_tell, 0, 0);
    CallStack::Here();  // loads what it needs
    std::thread(&Tell).detach();
    return true;
  }();
  static_cast<void>(once);
}

void Report(const std::string& text) {
  PrepareReports();
  Take(text.c_str(), /*skip=*/2);
}

void ReportHere(const char* text) { Take(text, /*skip=*/2); }

}  // namespace holdfast::waits
