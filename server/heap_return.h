// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HeapReturn: gives heap that sessions have freed back to the machine. The C
// library keeps it for later, 300 MiB after fifty sessions, and it is on
// nobody's account then.
// Thread-safety: makes a thread of its own, which ends with it.
#ifndef HOLDFAST_SERVER_HEAP_RETURN_H_
#define HOLDFAST_SERVER_HEAP_RETURN_H_

#include <thread>

#include "absl/synchronization/notification.h"

namespace holdfast {

class HeapReturn {
 public:
  HeapReturn();
  ~HeapReturn();

 private:
  void Loop();

  absl::Notification end_;
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HEAP_RETURN_H_
