// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's web page shows, as JSON. Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_METRICS_STATUS_JSON_H_
#define HOLDFAST_SERVER_METRICS_STATUS_JSON_H_

#include <string>

#include "server/metrics/history.h"
#include "server/metrics/viewer.h"
#include "server/session/session_registry.h"

namespace holdfast {

// The sessions that the viewer sees by memory, largest first, at most 200 of
// them; how many there are besides; the users that the viewer sees; the ops
// that took most time; the history of all sessions together in columns.
std::string StatusJson(SessionRegistry* registry, const History& history,
                       const Viewer& viewer);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_STATUS_JSON_H_
