#include "measure/commands/history.h"

#include "base/json/json.h"
#include "base/text/sha256.h"
#include "measure/commands/environment.h"
#include "measure/measure_hash.inc"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kFewestSamples = 3;
constexpr double kCleanEnough = 0.5;

/// Everything about a candidate that verifying and timing can see: code, and how it is called. Not why it was
/// planned.
std::string content_hash(const Candidate& c) {
  KernelFile file = c.file;
  file.origin.clear();
  return sha256_hex(file.serialize());
}

bool is_assembled(const Candidate& c) {
  return std::none_of(c.file.kernels.begin(), c.file.kernels.end(),
                      [](const Kernel& k) { return k.code.empty(); });
}

/// The kind of device: any one of a model, whatever CPUs of it this process may use.
Json model_of(const Device& device) {
  Json json = device.to_json();
  for (const char* one : {"present", "uuid"}) json.erase(one);
  if (device.is_cpu()) json.erase("cores");
  return json;
}

constexpr const char* kEntry = "the cache's entry";

struct StoredVerdict {
  std::string status, detail;
  double error = 0;
  std::string row_bits = {};
};

/// `read`'s value; nothing where there is no entry, or it is not what was stored.
template <typename T>
std::optional<T> parse(const std::optional<std::string>& entry, T (*read)(const Json&)) {
  if (entry) try {
      return read(parse_json(*entry, kEntry));
    } catch (const Error&) {
    }
  return std::nullopt;
}

StoredVerdict read_verdict(const Json& json) {
  return {get<std::string>(json, "status", kEntry), get<std::string>(json, "detail", kEntry),
          get<double>(json, "error", kEntry), json.value("row_bits", "")};
}

bool is_lasting(const std::string& status) {
  return status == "ok" || status == "wrong" || status == "out_of_bounds" || status == "varies";
}

} // namespace

std::string measure_id() {
  return "deepgen-measure " DEEPGEN_VERSION " sources " + std::string(kMeasureHash);
}

EarlierRuns::EarlierRuns(CacheSettings settings, const Device& device, const cuda::Surroundings& around,
                         const MeasureOptions& o)
    : cache_(std::move(settings)), driver_(around.driver) {
  verdicts_hold_ = {{"measured by", measure_id()}, {"arch", device.arch}, {"seed", o.seed}};
  if (device.is_cpu()) verdicts_hold_["isa"] = runnable_isa(device); // kernels for more than that are not run
  times_hold_ = verdicts_hold_;
  times_hold_["device"] = model_of(device);
  times_hold_["seconds"] = o.seconds, times_hold_["call seconds"] = o.call_seconds,
  times_hold_["warmup"] = o.warmup;
  times_hold_["caches"] = to_string(o.caches);
  // Balanced rounds begin as sustained ones do, but they know more of their best.
  if (const TunedFor regime = regime_on(device, o); regime != TunedFor::sustained)
    times_hold_["regime"] = to_string(regime);
  if (!device.is_cpu())
    times_hold_["driver"] = around.driver, times_hold_["power limit"] = around.power_limit_watts;
}

std::string EarlierRuns::verdict_key(const Candidate& c) const {
  Json key = verdicts_hold_;
  key["kernel"] = content_hash(c);
  key["problem"] = c.file.problem.key();
  if (c.file.arch != "cpu" && !is_assembled(c)) key["driver"] = driver_;
  return key.dump(1) + "\n";
}

std::string EarlierRuns::time_key(const Candidate& c, const Candidate& anchor) const {
  Json key = times_hold_;
  key["problem"] = c.file.problem.key();
  key["kernel"] = content_hash(c), key["anchor"] = content_hash(anchor);
  return key.dump(1) + "\n";
}

std::vector<Candidate*> EarlierRuns::unverified(const std::vector<Candidate*>& open) {
  if (!cache_.on()) return open;
  std::vector<Candidate*> unknown;
  for (Candidate* c : open) {
    const auto verdict = parse(cache_.find(CacheKind::verdict, verdict_key(*c)), read_verdict);
    if (!verdict || !is_lasting(verdict->status)) {
      unknown.push_back(c);
      continue;
    }
    c->record.error = verdict->error, c->record.row_bits = verdict->row_bits;
    if (verdict->status == "ok") continue;
    c->decide(verdict->status, verdict->detail);
    c->record.cached = true;
  }
  return unknown;
}

void EarlierRuns::keep_verdicts(const std::vector<Candidate*>& verified) {
  if (!cache_.on()) return;
  for (const Candidate* c : verified) {
    const std::string status = c->open() ? "ok" : c->record.status;
    if (is_lasting(status))
      cache_.store(CacheKind::verdict, verdict_key(*c),
                   dump_json({{"status", status},
                              {"detail", c->record.detail},
                              {"error", finite(c->record.error)},
                              {"row_bits", c->record.row_bits}}));
  }
}

bool EarlierRuns::recall_time(Candidate& c, const Candidate& anchor) {
  const auto stored = parse<Record>(cache_.find(CacheKind::time, time_key(c, anchor)),
                                    [](const Json& json) { return Record::from_json(json, kEntry); });
  if (!stored || !stored->timing) return false;
  c.record.timing = stored->timing, c.record.bursts = stored->bursts;
  c.decide("ok", "");
  c.record.cached = true;
  return true;
}

std::vector<Candidate*> EarlierRuns::untimed(const std::vector<Candidate*>& open) {
  if (!cache_.on() || open.empty()) return open;
  Candidate& anchor = *open.front();
  std::vector<Candidate*> list;
  for (size_t i = 1; i < open.size(); ++i)
    if (!recall_time(*open[i], anchor)) list.push_back(open[i]);
  // An anchor that is no candidate of this round has no record to fill in.
  const bool needed = !list.empty() || (anchor.record.slot >= 0 && !recall_time(anchor, anchor));
  if (needed) list.insert(list.begin(), &anchor);
  return list;
}

void EarlierRuns::recall(const std::vector<Candidate*>& list, const Candidate& anchor) {
  if (!cache_.on()) return;
  for (Candidate* c : list) recall_time(*c, anchor);
}

void EarlierRuns::keep_times(const std::vector<Candidate*>& timed) {
  if (!cache_.on()) return;
  for (const Candidate* c : timed) {
    const std::optional<Timing>& t = c->record.timing;
    if (c->record.ok() && t && t->samples >= kFewestSamples && t->clean >= kCleanEnough)
      cache_.store(CacheKind::time, time_key(*c, *timed.front()), dump_json(c->record.to_json()));
  }
}

} // namespace deepgen
