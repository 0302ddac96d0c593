// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DescriptorSink: a sink of spdlog's over a file descriptor that never waits
// for whoever reads it: a pipe that nobody reads, or a stopped terminal, must
// not hold anybody. Lines that are not taken at once are dropped, and a line
// says how many were. A disk can be slow, too, and who logs may hold locks that
// everybody wants: lines are written by a thread of the sink's, soon after.
// Thread-safety: any thread. Lines are in the order of log().
#ifndef HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_
#define HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "server/waits/ranked_mutex.h"
#include "spdlog/sinks/sink.h"

namespace holdfast {

class DescriptorSink : public spdlog::sinks::sink {
 public:
  // Does not own `fd`.
  explicit DescriptorSink(int fd);
  ~DescriptorSink() override;

  void log(const spdlog::details::log_msg& msg) override;
  // Returns when all lines until now are written. May wait.
  void flush() override;
  void set_pattern(const std::string& pattern) override;
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

 protected:
  // Held while lines are written.
  RankedMutex writer_mutex_{LockRank::kLogWriter};
  int fd_;  // guarded by writer_mutex_

 private:
  // What waits to be written, at most.
  static constexpr size_t kMostBytes = 4 << 20;

  // False: not all of it was taken. REQUIRES: writer_mutex_ held.
  bool Write(const std::string& line);
  void Loop();

  bool torn_ = false;  // a line's end was dropped; guarded by writer_mutex_

  // For moments only, and guards what follows.
  RankedMutex lines_mutex_{LockRank::kLogLines};
  RankedCondition waiting_;
  std::unique_ptr<spdlog::formatter> formatter_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  uint64_t lost_ = 0;  // lines, since the last one that was written
  bool end_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_
