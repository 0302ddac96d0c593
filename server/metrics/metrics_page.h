// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The daemon's metrics in Prometheus' text format. docs/operating.md says what
// each is good for. Thread-safety: any thread; waits for no op.
#ifndef HOLDFAST_SERVER_METRICS_METRICS_PAGE_H_
#define HOLDFAST_SERVER_METRICS_METRICS_PAGE_H_

#include <string>

#include "server/exec/watchdog.h"
#include "server/metrics/viewer.h"
#include "server/session/session_registry.h"
#include "server/transport/tls_credentials.h"

namespace holdfast {

// Sums over all sessions, and the values of each that the viewer sees. Reads
// the certificates of `tls`, where there are any.
std::string MetricsPage(SessionRegistry* registry, const Watchdog& watchdog,
                        const Viewer& viewer, const TlsFiles& tls);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_METRICS_PAGE_H_
