#include "generator/report/report_curve.h"

#include "base/search/ranged_decision.h"
#include "generator/lock/ranged_entry.h"

#include <algorithm>
#include <set>

namespace deepgen {
namespace {

/// Where parts begin along the size, but the first.
std::vector<int64_t> borders_of(const std::vector<SizeSpan>& spans, Size size) {
  std::set<int64_t> firsts;
  for (const SizeSpan& span : spans) firsts.insert(span.least[size]);
  if (!firsts.empty()) firsts.erase(firsts.begin());
  return {firsts.begin(), firsts.end()};
}

struct Curve {
  std::vector<EvidencePoint> points;
  std::vector<int64_t> borders;
  std::string vendor;
};

/// Those that were timed, and that a call may have.
std::vector<EvidencePoint> points_of(const Json& evidence, const Problem& p) {
  std::vector<EvidencePoint> out = evidence_points(evidence);
  std::erase_if(out, [&](const EvidencePoint& point) { return !(point.seconds > 0) || !p.takes(point.at); });
  return out;
}

Curve from_lock(const LockEntry& e, const Problem& p, Size size) {
  Curve curve{
      points_of(e.evidence, p), {}, find_in<std::string>(e.evidence, "vendor_name").value_or("the vendor")};
  std::vector<SizeSpan> spans;
  for (const LockedPart& part : e.ranges) spans.push_back(part.taken);
  if (e.taken) spans.push_back(*e.taken);
  curve.borders = borders_of(spans, size);
  return curve;
}

Curve from_holdout(const RecordLog& final, const Problem& p, Size size) {
  Curve curve{{}, {}, final.environment.value("vendor_name", "the vendor")};
  const TunePoints tuned = points_of(p, final);
  for (const RangedHoldout& h : holdout_of(final.environment)) {
    const auto at = std::find(tuned.at.begin(), tuned.at.end(), h.at);
    const HeldOut both = h.both();
    curve.points.push_back({h.at,
                            h.first.seconds,
                            {both.low, both.ratio, both.high},
                            both.vendor,
                            at == tuned.at.end() ? 1 : tuned.weights[size_t(at - tuned.at.begin())]});
  }
  std::vector<SizeSpan> spans;
  for (const RangedWinner& w : decide_ranges(p, final).parts) spans.push_back(w.taken);
  curve.borders = borders_of(spans, size);
  return curve;
}

Curve curve_of(const Study& study, const Problem& p, Size size) {
  for (const LockEntry& e : study.locked)
    if (Curve curve = from_lock(e, p, size); !curve.points.empty()) return curve;
  return study.final ? from_holdout(*study.final, p, size) : Curve();
}

} // namespace

Json curve_json(const Study& study) {
  if (!study.problem.ranged() || study.problem.op() != "gemm")
    return nullptr; // an attention's lie on no line
  const Problem& p = study.problem;
  const Size size = *split_size(p);
  const Curve curve = curve_of(study, p, size);
  if (curve.points.empty()) return nullptr;
  Json json = {{"size", size_names[size_t(size)]},
               {"points", Json::array()},
               {"borders", curve.borders},
               {"vendor", curve.vendor}};
  for (const EvidencePoint& point : curve.points) {
    Json one = {{"at", point.at[size]},
                {"text", point_text(p, point.at)},
                {"flops", p.at(point.at).flops()},
                {"seconds", point.seconds},
                {"weight", point.weight}};
    if (point.ratio[1] > 0) one["default"] = point.seconds / point.ratio[1];
    if (point.vendor > 0) one["vendor"] = point.seconds * point.vendor;
    json["points"].push_back(std::move(one));
  }
  return json;
}

} // namespace deepgen
