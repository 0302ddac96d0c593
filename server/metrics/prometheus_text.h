// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes Prometheus' text format, version 0.0.4. Names, units and suffixes are
// as `promtool check metrics` wants them. Not thread-safe.
#ifndef HOLDFAST_SERVER_METRICS_PROMETHEUS_TEXT_H_
#define HOLDFAST_SERVER_METRICS_PROMETHEUS_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace holdfast {

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<absl::string_view, absl::string_view>>;

  // Begins a metric; its samples follow. `name` without "holdfast_". Type:
  // "counter", "gauge" or "histogram".
  void Metric(absl::string_view name, absl::string_view type,
              absl::string_view help);
  // The same with the whole name, for what others name (process_...).
  void ForeignMetric(absl::string_view name, absl::string_view type,
                     absl::string_view help);
  // A sample of the metric last begun.
  void Sample(const Labels& labels, double value);
  // A histogram's samples: counts[i] fell in (bounds[i-1], bounds[i]], the last
  // count lies above all bounds. `sum`: of the values.
  void Histogram(const Labels& labels, const std::vector<double>& bounds,
                 const std::vector<uint64_t>& counts, double sum);

  const std::string& text() const { return text_; }

 private:
  void Line(absl::string_view suffix, const Labels& labels, double value);

  std::string name_;
  std::string text_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_PROMETHEUS_TEXT_H_
