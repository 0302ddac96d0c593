// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/prometheus_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace holdfast {
namespace {

std::string Escaped(absl::string_view value) {
  return absl::StrReplaceAll(value,
                             {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// The shortest text that is read back as the same number.
std::string Number(double value) {
  const std::string brief = absl::StrFormat("%.15g", value);
  return std::stod(brief) == value ? brief : absl::StrFormat("%.17g", value);
}

}  // namespace

void PrometheusText::Metric(absl::string_view name, absl::string_view type,
                            absl::string_view help) {
  ForeignMetric(absl::StrCat("holdfast_", name), type, help);
}

void PrometheusText::ForeignMetric(absl::string_view name,
                                   absl::string_view type,
                                   absl::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name_, " ", help, "\n# TYPE ", name_, " ",
                  type, "\n");
}

void PrometheusText::Sample(const Labels& labels, double value) {
  Line("", labels, value);
}

void PrometheusText::Histogram(const Labels& labels,
                               const std::vector<double>& bounds,
                               const std::vector<uint64_t>& counts,
                               double sum) {
  uint64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const std::string bound = i < bounds.size() ? Number(bounds[i]) : "+Inf";
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    Line("_bucket", with_bound, total);
  }
  Line("_sum", labels, sum);
  Line("_count", labels, total);
}

void PrometheusText::Line(absl::string_view suffix, const Labels& labels,
                          double value) {
  absl::StrAppend(&text_, name_, suffix);
  const char* separator = "{";
  for (const auto& [name, text] : labels) {
    absl::StrAppend(&text_, separator, name, "=\"", Escaped(text), "\"");
    separator = ",";
  }
  absl::StrAppend(&text_, labels.empty() ? " " : "} ", Number(value), "\n");
}

}  // namespace holdfast
