// RecordedSpace: what every config of a space took on one device. Searches are replayed on it, without the
// device.
#pragma once

#include "base/kernel/device.h"
#include "base/problem/problem.h"
#include "base/search/record.h"

namespace deepgen {

struct RecordedConfig {
  Choice choice;
  std::string status = "ok"; ///< as in Record
  double ratio = 0;          ///< time to the anchor's; 0: not timed
  int64_t samples = 0;
  bool timed() const { return ratio > 0; }
};

struct RecordedSpace {
  Problem problem;
  std::string arch = "cpu";
  Device device;
  Json environment = Json::object();   ///< of the first log
  double anchor_seconds = 0;           ///< of a call, the median over the logs
  std::vector<RecordedConfig> configs; ///< sorted by text
  int64_t planned = 0;  ///< configs of the sweep; 0: not known, as in files of earlier versions
  int64_t measured = 0; ///< configs that its logs have, also those that were not reached in time
  /// Whether plans of the sweep have not been measured: the best one may be among what is missing.
  bool cut_off() const { return measured < planned; }

  /// One line of JSON, then one line a config.
  std::string serialize() const;
  static RecordedSpace parse(const std::string& text, const std::string& where);
  void write(const std::string& path) const; ///< compressed with zstd
  static RecordedSpace read(const std::string& path);
};

/// All records of the problem. A config that was timed more than once has the median of its ratios, weighted
/// by their samples, and so have all configs with the same code. Those that were not reached in time are left
/// out. `planned`: configs of the sweep, 0 when that is not known.
RecordedSpace pack(const Problem&, const Device&, const std::vector<RecordLog>&, int64_t planned = 0);

} // namespace deepgen
