#include "generator/report/report_curve.h"

#include "base/search/ranged_decision.h"

#include <algorithm>
#include <array>

namespace deepgen {
namespace {

struct CurvePoint {
  Sizes at;
  double seconds = 0, ratio = 0,
         vendor = 0; ///< time; to the default's; the vendor's time over it, 0: unknown
  double weight = 1;
};

struct Curve {
  std::vector<CurvePoint> points;
  std::vector<int64_t> borders;
  std::string vendor;
};

/// Evidence may be anything: what is no point is left out.
std::vector<CurvePoint> points_of(const Json& evidence, const Gemm& p) {
  std::vector<CurvePoint> out;
  if (!evidence.is_object() || !evidence.contains("points") || !evidence["points"].is_array()) return out;
  for (const Json& json : evidence["points"]) {
    try {
      const std::string where = "evidence";
      const auto at = get<std::array<int64_t, size_count>>(json, "at", where);
      CurvePoint point{{at[0], at[1], at[2], at[3]},
                       get<double>(json, "microseconds", where) * 1e-6,
                       get<std::array<double, 3>>(json, "ratio", where)[1]};
      if (json.contains("vendor_ratio")) point.vendor = get<double>(json, "vendor_ratio", where);
      if (json.contains("weight")) point.weight = get<double>(json, "weight", where);
      if (point.seconds > 0 && p.takes(point.at)) out.push_back(point);
    } catch (const Error&) {
    }
  }
  return out;
}

Curve from_lock(const LockEntry& e, const Gemm& p, Size size) {
  Curve curve{points_of(e.evidence, p), {}, "the vendor"};
  std::vector<SizeSpan> spans;
  for (const LockedPart& part : e.ranges) spans.push_back(part.taken);
  if (e.taken) spans.push_back(*e.taken);
  for (size_t i = 1; i < spans.size(); ++i) curve.borders.push_back(spans[i].least[size]);
  if (e.evidence.is_object() && e.evidence.contains("vendor_name") && e.evidence["vendor_name"].is_string())
    curve.vendor = e.evidence["vendor_name"].get<std::string>();
  return curve;
}

Curve from_holdout(const RecordLog& final, const Gemm& p, Size size) {
  Curve curve{{}, {}, final.environment.value("vendor_name", "the vendor")};
  const TunePoints tuned = points_of(p, final);
  for (const RangedHoldout& h : holdout_of(final.environment)) {
    const auto at = std::find(tuned.at.begin(), tuned.at.end(), h.at);
    curve.points.push_back({h.at, h.first.seconds, h.both().ratio, h.both().vendor,
                            at == tuned.at.end() ? 1 : tuned.weights[size_t(at - tuned.at.begin())]});
  }
  const RangedDecision d = decide_ranges(p, final);
  for (size_t i = 1; i < d.parts.size(); ++i) curve.borders.push_back(d.parts[i].taken.least[size]);
  return curve;
}

Curve curve_of(const Study& study, const Gemm& p, Size size) {
  for (const LockEntry& e : study.locked)
    if (Curve curve = from_lock(e, p, size); !curve.points.empty()) return curve;
  return study.final ? from_holdout(*study.final, p, size) : Curve();
}

} // namespace

Json curve_json(const Study& study) {
  if (!study.problem.ranged()) return nullptr;
  const Gemm& p = study.problem.gemm();
  const Size size = *split_size(p);
  const Curve curve = curve_of(study, p, size);
  if (curve.points.empty()) return nullptr;
  Json json = {{"size", size_names[size_t(size)]},
               {"points", Json::array()},
               {"borders", curve.borders},
               {"vendor", curve.vendor}};
  for (const CurvePoint& point : curve.points) {
    Json one = {{"at", point.at[size]},
                {"text", point_text(p, point.at)},
                {"flops", p.at(point.at).flops()},
                {"seconds", point.seconds},
                {"weight", point.weight}};
    if (point.ratio > 0) one["default"] = point.seconds / point.ratio;
    if (point.vendor > 0) one["vendor"] = point.seconds * point.vendor;
    json["points"].push_back(std::move(one));
  }
  return json;
}

} // namespace deepgen
