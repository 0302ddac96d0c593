// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DescriptorSink: a sink of spdlog's over a file descriptor that never waits
// for whoever reads it. The thread that serves everybody logs, too: a pipe that
// nobody reads, or a stopped terminal, must not hold it. Lines that are not
// taken at once are dropped, and a line says how many were.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_
#define HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_

#include <cstdint>
#include <mutex>

#include "spdlog/sinks/base_sink.h"

namespace holdfast {

class DescriptorSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Does not own `fd`.
  explicit DescriptorSink(int fd) : fd_(fd) {}

 protected:
  int fd_;  // guarded by base_sink's mutex_, like what follows

 private:
  void sink_it_(const spdlog::details::log_msg& msg) override;
  void flush_() override {}  // written at once
  // False: not all of it was taken.
  bool Write(const spdlog::memory_buf_t& line);

  uint64_t lost_ = 0;  // lines, since the last one that was written
  bool torn_ = false;  // a line's end was dropped
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_DESCRIPTOR_SINK_H_
