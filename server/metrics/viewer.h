// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Viewer: whose sessions a reader of the daemon's pages sees one by one. Sums
// over all sessions are everybody's. Thread-safety: none; values.
#ifndef HOLDFAST_SERVER_METRICS_VIEWER_H_
#define HOLDFAST_SERVER_METRICS_VIEWER_H_

#include <string>
#include <vector>

#include "proto/holdfast.pb.h"

namespace holdfast {

struct Viewer {
  std::string user;  // "": nobody that is known
  bool all = false;  // every user's

  bool sees(const v1::SessionStats& session) const {
    return all || (!user.empty() && session.user() == user);
  }
};

// Pointers into `stats`.
inline std::vector<const v1::SessionStats*> VisibleSessions(
    const v1::StatsReply& stats, const Viewer& viewer) {
  std::vector<const v1::SessionStats*> visible;
  for (const v1::SessionStats& session : stats.sessions()) {
    if (viewer.sees(session)) visible.push_back(&session);
  }
  return visible;
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_VIEWER_H_
