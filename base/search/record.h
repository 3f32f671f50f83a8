// Record: one line of the append-only JSONL measurement log; and the log of one measure edge.
#pragma once

#include "base/json/json.h"
#include "base/kernel/call_grid.h"
#include "base/kernel/config.h"
#include "base/problem/size.h"

#include <optional>
#include <vector>

namespace deepgen {

/// Times of one arm, in seconds per call. Ratios are t_arm / t_default from the same interleaved rounds:
/// below 1 is faster than the default config. `low` and `high` bound the 95 % bootstrap interval of the ratio
/// over rounds.
struct Timing {
  double seconds = 0, quartile1 = 0, quartile3 = 0; ///< median and quartiles of the clean samples
  double ratio = 1, low = 1, high = 1;
  int64_t samples = 0;
  double clean = 1; ///< share of samples without interference
};

/// Of a problem with ranges: the times of one size.
struct PointTiming {
  Sizes at;
  Timing timing;
  double weight = 1; ///< of the point, in its search: what read_logs() finds in a log's environment
  std::optional<Timing> bursts = {}; ///< as Record::bursts
};

struct Record {
  std::string stage; ///< "r0", "r1", ... or "final"
  int64_t slot = -1;
  /// "ok", "compile_error", "crash", "timeout", "wrong", "out_of_bounds", "unsupported", "duplicate",
  /// "varies" (correct, but of a batch invariant problem, and bits of a row depend on what they must not),
  /// "dropped" (correct, but too slow in the first samples to time further)
  std::string status = "ok", detail;
  std::string problem, arch;
  Choice choice;
  int64_t revision = 0;
  std::string origin;
  std::string sha256;
  int64_t code_bytes = 0, workspace = 0;
  /// Of a batch invariant problem: the order of its sums, and a hash of the bits of some rows, the same for
  /// all kernels of that order.
  std::string sum_order, row_bits;
  std::string kernel_file; ///< path of the .dgk relative to the log's folder
  /// Largest error of the output relative to its tolerance (<= 1 passes), over all verified shapes.
  double error = 0;
  std::optional<Timing> timing;
  /// Of a search for balanced calls (base/kernel/regime.h), whose `timing` is sustained: the same in bursts.
  std::optional<Timing> bursts = {};
  /// Of such finals, where the noise does not tell it from the best: the same, each launch behind the one
  /// before.
  std::optional<Timing> serial = {};
  /// Of a problem with ranges: at each point (base/problem/points.h); `timing` is then their mean_timing().
  std::vector<PointTiming> points = {};
  /// In finals, too: at sizes between these, where predictions left open who is the best; of some finalists.
  std::vector<PointTiming> between = {};
  /// Of a problem with ranges on a GPU: how its grids follow from a call's sizes. None: not told, as in logs
  /// of earlier versions.
  std::vector<CallGrid> grids = {};
  bool cached = false; ///< the timing, or the verdict that it is bad, is an earlier run's

  bool ok() const { return status == "ok"; }
  /// At this size; nullptr when it was not timed there.
  const Timing* at(const Sizes&) const;
  bool is_vendor() const { return choice.template_name == "vendor"; }
  Json to_json() const; ///< {"schema":"deepgen.record/1",...}
  static Record from_json(const Json&, const std::string& where);
};

/// Geometric means of seconds and ratios, of one or more; the fewest samples.
Timing mean_timing(const std::vector<Timing>&);
/// The same over the points.
Timing mean_timing(const std::vector<PointTiming>&);
/// By which a search compares: the mean over both regimes where both are known; else the first alone.
Timing over_regimes(const Timing&, const std::optional<Timing>& bursts);

/// What a measure edge writes: the environment, one record a candidate, and for the finals the A/A noise
/// floor.
struct RecordLog {
  Json environment = Json::object(); ///< device, tool version, profile name, threads: log_environment.h
  std::vector<Record> records;
  double noise_floor = 0; ///< p95 of |t_default/t_default' - 1| over blocks of rounds; 0: not measured
  bool stable = true;     ///< false: too much interference for a decision
  std::vector<Record> again =
      {};            ///< a round's: the best of earlier ones, timed once more beside its own candidates
  bool torn = false; ///< what was read had a last line without an end

  std::string serialize() const; ///< JSONL: an env line, then a line a record
  /// A last line without an end, as of a log that was copied or written by half, is left out (`torn`); damage
  /// elsewhere throws Error with the line number.
  static RecordLog parse(const std::string& text, const std::string& where);
  /// Says so on stderr when the last line was torn.
  static RecordLog read(const std::string& path);
};

} // namespace deepgen
