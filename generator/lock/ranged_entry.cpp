#include "generator/lock/ranged_entry.h"

#include "base/problem/partition.h"
#include "base/ranges/crossover.h"
#include "base/search/ranged_decision.h"
#include "base/text/error.h"
#include "base/text/text.h"
#include "generator/lock/evidence.h"
#include "generator/space/space.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace deepgen {
namespace {

double weight_of(const TunePoints& points, const Sizes& at) {
  for (size_t i = 0; i < points.at.size(); ++i)
    if (points.at[i] == at) return points.weights[i];
  return 1;
}

void add_ratios(Json& json, const HeldOut& h) {
  json["ratio"] = {four_places(h.low), four_places(h.ratio), four_places(h.high)};
  if (h.vendor > 0) json["vendor_ratio"] = four_places(h.vendor);
}

/// The points of the hold-out, as "kernel" its number in `parts`; "weight" where it is not 1.
Json points_json(const std::vector<RangedHoldout>& holdout, const std::vector<RangedWinner>& parts,
                 const TunePoints& tuned) {
  Json json = Json::array();
  for (const RangedHoldout& h : holdout) {
    size_t kernel = 0; // one kernel may take several parts of the sizes
    while (kernel + 1 < parts.size() &&
           (parts[kernel].record.sha256 != h.sha256 || !parts[kernel].taken.holds(h.at)))
      ++kernel;
    Json point = {{"at", {h.at.m, h.at.n, h.at.k, h.at.batch}}, {"kernel", kernel}};
    add_ratios(point, h.both());
    point["microseconds"] = four_places(1e6 * h.first.seconds);
    if (h.bursts) {
      add_ratios(point["regimes"]["sustained"], h.first);
      add_ratios(point["regimes"]["bursts"], *h.bursts);
    }
    if (const double weight = weight_of(tuned, h.at); weight != 1) point["weight"] = weight;
    json.push_back(std::move(point));
  }
  return json;
}

Json bound_json(const RangedBound& bound) {
  Json json = {{"share", kMostRegret}, {"kept", bound.kept}};
  if (!bound.kept) json["kernels"] = bound.needed;
  return json;
}

/// Nothing where the evidence does not tell.
std::optional<RangedBound> bound_in(const Json& evidence) {
  const auto json = find_in<Json>(evidence, "bound");
  const auto kept = json ? find_in<bool>(*json, "kept") : std::nullopt;
  if (!kept) return std::nullopt;
  const int64_t needed = find_in<int64_t>(*json, "kernels").value_or(0);
  return RangedBound{*kept, size_t(std::clamp<int64_t>(needed, 0, int64_t(kMostKernels)))};
}

double at_least_zero(const Json& point, const char* key, double otherwise) {
  return std::max(0.0, find_in<double>(point, key).value_or(otherwise));
}

std::vector<LockedPart> parts_of(const LockEntry& e) {
  std::vector<LockedPart> parts = e.ranges;
  if (e.taken) parts.push_back({e.choice, e.revision, e.sha256, *e.taken});
  return parts;
}

std::string why_stale(const LockedPart& part, const LockEntry& e, const Problem& p) {
  if (!is_sha256(part.sha256))
    return "the sha256 of " + part.choice.text() + " is not 64 lower-case hex digits";
  const Template& t = find_template(part.choice.template_name);
  if (const int64_t revision = t.revision_for(p, part.choice.config); revision != part.revision)
    return "template " + t.name() + " has revision " + std::to_string(revision) +
           ", the entry was tuned with " + std::to_string(part.revision);
  return why_illegal(p, e.arch, e.device, part.choice);
}

/// Kernels of a batch invariant problem add up over K in one order.
std::string why_several_orders(const std::vector<LockedPart>& parts, const LockEntry& e, const Problem& p) {
  if (!p.batch_invariant()) return "";
  const auto order = [&](const LockedPart& part) {
    return find_template(part.choice.template_name).sum_order(p, e.arch, part.choice.config);
  };
  for (const LockedPart& part : parts)
    if (order(part) != order(parts.front()))
      return "its kernels add up over K in several orders: " + order(parts.front()) + "; " + order(part);
  return "";
}

/// Nothing when the key is of a problem without ranges, or of another version.
std::optional<Problem> ranged_problem(const std::string& key) {
  try {
    Problem p = Problem::parse(key);
    return p.ranged() ? std::optional(std::move(p)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Problem without_ranges(const Problem& problem) {
  if (problem.op() == "attention") return problem.attention().alone(1, 1, 1);
  Gemm p = problem.gemm();
  p.m = p.n = p.k = p.batch = 1, p.least = {};
  return p;
}

} // namespace

std::vector<EvidencePoint> evidence_points(const Json& evidence) {
  std::vector<EvidencePoint> out;
  for (const Json& point : find_in<std::vector<Json>>(evidence, "points").value_or(std::vector<Json>())) {
    const auto at = find_in<std::array<int64_t, size_count>>(point, "at");
    if (!at) continue;
    EvidencePoint one;
    one.at = {(*at)[0], (*at)[1], (*at)[2], (*at)[3]};
    one.seconds = 1e-6 * at_least_zero(point, "microseconds", 0);
    one.ratio = find_in<std::array<double, 3>>(point, "ratio").value_or(one.ratio);
    one.vendor = at_least_zero(point, "vendor_ratio", 0);
    one.weight = at_least_zero(point, "weight", 1);
    const Json regimes = point.value("regimes", Json::object());
    for (const char* name : {"sustained", "bursts"})
      if (regimes.is_object() && regimes.contains(name))
        if (const auto ratio = find_in<std::array<double, 3>>(regimes[name], "ratio");
            ratio && (*ratio)[1] > 0)
          one.regimes.push_back({name, *ratio, at_least_zero(regimes[name], "vendor_ratio", 0)});
    out.push_back(one);
  }
  return out;
}

LockEntry ranged_entry(const Problem& p, const std::string& arch, const Device& device,
                       const std::string& toolchain, const RecordLog& final,
                       const std::vector<RecordLog>& logs) {
  const RangedDecision d = decide_ranges(p, final);
  if (!d.found) throw Error("not locked: " + d.reason, p.key());
  std::vector<LockedPart> parts;
  for (const RangedWinner& w : d.parts) {
    if (!is_sha256(w.record.sha256) || !(w.record.error <= 1))
      throw Error("not locked: a winner was not verified", p.key(), w.record.choice.text());
    parts.push_back({w.record.choice, w.record.revision, w.record.sha256, w.taken});
  }
  // The mean over the points, as of any entry; then the points.
  Json evidence = evidence_of(mean_decision(p, final), final, logs, {p.key(), arch, device});
  const std::vector<RangedHoldout> holdout = holdout_of(final.environment);
  evidence["points"] = points_json(holdout, d.parts, points_of(p, final));
  evidence["regret"] = {four_places(d.regret), four_places(d.worst)};
  if (d.bound) evidence["bound"] = bound_json(*d.bound);
  if (!d.sum_order.empty())
    evidence["sum_order"] = d.sum_order, evidence["order_cost"] = four_places(d.order_cost);
  if (const std::string vendor = final.environment.value("vendor_name", ""); !vendor.empty())
    evidence["vendor_name"] = vendor;
  LockEntry e{
      p.key(),  arch, device, parts.back().choice, parts.back().revision, parts.back().sha256, toolchain,
      evidence, {},   {}};
  if (parts.size() == 1) return e;
  e.taken = parts.back().taken;
  parts.pop_back();
  e.ranges = std::move(parts);
  return e;
}

std::string why_stale_ranges(const LockEntry& e) {
  const Problem problem = Problem::parse(e.problem);
  const std::vector<LockedPart> parts = parts_of(e);
  if (!problem.ranged() && !parts.empty()) return "it has kernels for ranges of a problem without ranges";
  if (e.ranges.empty()) return e.taken ? "it has one kernel for a part of the sizes alone" : "";
  if (!e.taken) return "its kernel for the largest sizes does not say which these are";
  for (const LockedPart& part : parts)
    if (std::string why = why_stale(part, e, problem); !why.empty()) return why;
  if (std::string why = why_several_orders(parts, e, problem); !why.empty()) return why;
  std::vector<SizeSpan> boxes;
  for (const LockedPart& part : parts) boxes.push_back(part.taken);
  return why_no_partition(all_calls(problem), boxes);
}

std::string why_too_many(const LockEntry& e, size_t kernels) {
  std::set<std::string> codes = {e.sha256}; // one kernel may take several parts of the sizes
  for (const LockedPart& part : e.ranges) codes.insert(part.sha256);
  const size_t linked = codes.size();
  return linked <= kernels
             ? ""
             : "it links " + std::to_string(linked) + " kernels, and KERNELS is " + std::to_string(kernels);
}

std::string tuned_for_others(const LockEntry& e, const Problem& p, const TunePoints& points) {
  const std::vector<EvidencePoint> tuned = evidence_points(e.evidence);
  bool same = tuned.size() == points.at.size();
  for (size_t i = 0; i < tuned.size() && same; ++i)
    same = tuned[i].at == points.at[i] && tuned[i].weight == points.weights[i];
  std::string text;
  for (const EvidencePoint& point : tuned) {
    char times[40] = "";
    if (point.weight != 1) std::snprintf(times, sizeof times, " (weight %g)", point.weight);
    text += (text.empty() ? "" : " ") + point_text(p, point.at) + times;
  }
  return same ? "" : text;
}

const LockEntry* find_other_ranges(const Lock& lock, const Problem& problem, const std::string& arch) {
  if (!problem.ranged()) return nullptr;
  const Problem wanted = without_ranges(problem);
  for (const LockEntry& e : lock.entries()) {
    if (e.arch != arch) continue;
    if (const auto p = ranged_problem(e.problem); p && without_ranges(*p) == wanted) return &e;
  }
  return nullptr;
}

const LockEntry* find_other_invariance(const Lock& lock, const Problem& problem, const std::string& arch) {
  if (problem.op() != "gemm") return nullptr;
  Gemm other = problem.gemm();
  other.batch_invariant = !other.batch_invariant;
  const std::vector<const LockEntry*> found = lock.find_all(other.key(), arch);
  return found.empty() ? nullptr : found.front();
}

namespace {

std::string ratios_text(const std::array<double, 3>& ratio, double vendor_ratio, const std::string& vendor) {
  char line[160];
  std::snprintf(line, sizeof line, "%.3fx vs default", 1 / ratio[1]);
  std::string text = line;
  if (!(vendor_ratio > 0)) return text;
  std::snprintf(line, sizeof line, ", %.3fx vs ", vendor_ratio);
  return text + line + vendor;
}

/// Empty where it does not say how fast the kernel is. Behind it, where there are two, each regime:
/// " (sustained 1.020x vs default, 0.990x vs cublaslt; bursts ...)".
std::string evidence_line(const EvidencePoint& point, const Problem& p, const std::string& vendor) {
  if (!(point.ratio[1] > 0)) return "";
  char line[160];
  std::string regimes, text = "    " + sizes_text(p, point.at) + ": ";
  text += ratios_text(point.ratio, point.vendor, vendor);
  for (const EvidencePoint::Regime& one : point.regimes)
    regimes += (regimes.empty() ? " (" : "; ") + one.name + " " + ratios_text(one.ratio, one.vendor, vendor);
  if (!regimes.empty()) text += regimes + ")";
  if (point.weight != 1) {
    std::snprintf(line, sizeof line, ", weight %g", point.weight);
    text += line;
  }
  return text + "\n";
}

} // namespace

std::string order_text(const LockEntry& e) {
  if (e.problem.find(" invariant=rows ") == std::string::npos) return "";
  std::string text = "    batch invariant";
  try {
    const Problem p = Problem::parse(e.problem);
    text += ": " + visible(find_template(e.choice.template_name).sum_order(p, e.arch, e.choice.config));
  } catch (const Error&) { // of another version
  }
  const Json cost = e.evidence.is_object() ? e.evidence.value("order_cost", Json()) : Json();
  char words[80] = "";
  if (cost.is_number())
    std::snprintf(words, sizeof words, "; takes %.3f times as long as the best finalists of all orders",
                  cost.get<double>());
  return text + words + "\n";
}

std::string bound_warning(const LockEntry& e) {
  const std::optional<RangedBound> bound = bound_in(e.evidence);
  if (!bound || bound->kept) return "";
  const auto regret = find_in<std::array<double, 2>>(e.evidence, "regret");
  char behind[60] = "";
  if (regret)
    std::snprintf(behind, sizeof behind, "%.1f %% behind the best at a point: ", 100 * (*regret)[1]);
  return behind + bound_text(*bound);
}

std::string ranges_text(const LockEntry& e) {
  const std::optional<Problem> p = ranged_problem(e.problem);
  if (!p) return "";
  std::string text;
  for (const LockedPart& part : parts_of(e))
    text += "    " + span_text(*p, part.taken) + ": " + part.choice.text() + "\n";
  const std::string vendor = visible(find_in<std::string>(e.evidence, "vendor_name").value_or("the vendor"));
  for (const EvidencePoint& point : evidence_points(e.evidence)) text += evidence_line(point, *p, vendor);
  const std::string warning = bound_warning(e);
  return text + (warning.empty() ? "" : "    warning: " + warning + "\n");
}

} // namespace deepgen
