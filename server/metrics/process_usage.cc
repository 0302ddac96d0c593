// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/process_usage.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace holdfast {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
}

uint64_t OpenDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count - 1;  // the folder's own
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  rusage used = {};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    usage.cpu_seconds = Seconds(used.ru_utime) + Seconds(used.ru_stime);
  }
  const uint64_t page = sysconf(_SC_PAGESIZE);
  uint64_t total = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> total >> resident) {
    usage.virtual_bytes = total * page;
    usage.resident_bytes = resident * page;
  }
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "Threads:") status >> usage.threads;
  }
  usage.open_descriptors = OpenDescriptors();
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    usage.max_descriptors = limit.rlim_cur;
  }
  return usage;
}

}  // namespace holdfast
