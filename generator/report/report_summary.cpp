// Totals over studies. Losses and problems whose default stays are part of every mean.
#include "generator/report/report_study.h"

#include <cmath>

namespace deepgen {
namespace {

class Sum {
public:
  void add(const Study& study, const Speed& speed, double baseline_seconds, const std::string& verdict) {
    logs += std::log(speed.value);
    baseline += study.weight * baseline_seconds;
    ours += study.weight * baseline_seconds / speed.value;
    if (totals.count == 0 || speed.value < totals.worst)
      totals.worst = speed.value, totals.worst_problem = study.problem.key();
    if (totals.count == 0 || speed.value > totals.best) totals.best = speed.value;
    ++totals.count;
    ++totals.verdicts[verdict];
  }

  Totals result() {
    if (totals.count) {
      totals.geomean = std::exp(logs / double(totals.count));
      totals.weighted = baseline / ours;
    }
    return totals;
  }

private:
  double logs = 0, baseline = 0, ours = 0;
  Totals totals;
};

Summary summary_of(const std::vector<const Study*>& studies) {
  Summary s{studies.front()->arch, studies.front()->device.name, studies, {}, {}, {}};
  Sum against_default, against_vendor;
  for (const Study* study : studies) {
    ++s.outcomes[study->outcome()];
    if (!study->decided() || !study->decision.winner.timing) continue;
    const double seconds = study->decision.winner.timing->seconds;
    if (study->against_default)
      against_default.add(*study, *study->against_default, seconds * study->against_default->value,
                          study->default_verdict);
    if (study->against_vendor)
      against_vendor.add(*study, *study->against_vendor, study->vendor->timing->seconds,
                         study->vendor_verdict);
  }
  s.against_default = against_default.result();
  s.against_vendor = against_vendor.result();
  return s;
}

} // namespace

std::vector<Summary> summaries_of(const std::vector<Study>& studies) {
  std::map<std::pair<std::string, std::string>, std::vector<const Study*>> devices;
  for (const Study& study : studies) devices[{study.arch, study.device.name}].push_back(&study);
  std::vector<Summary> summaries;
  for (const auto& [device, own] : devices) summaries.push_back(summary_of(own));
  return summaries;
}

} // namespace deepgen
