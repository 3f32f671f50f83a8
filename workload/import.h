// From logs to a workload: each file's kind is found out, its calls are counted, and their shares are worked
// out.
#pragma once

#include "workload/log/log_bytes.h"
#include "workload/workload.h"

namespace deepgen {

class Importer {
public:
  /// Reads one log to its end. Throws Error when it is damaged, or nothing in it is of a kind that is known.
  void read(const std::string& path);
  void read(LogBytes& bytes, const std::string& name);

  /// All that was read. Times that no log has are estimated, in the unit of those that one has.
  Workload workload();
  /// What a person should know of how it was counted.
  const std::vector<std::string>& notes() const { return notes_; }

private:
  void read_lines(LogLines& lines, WorkloadLog& log);
  void read_workload(LogLines& lines, WorkloadLog& log);
  LogPlace place(const LogLines& lines) const { return {int64_t(logs_.size()), lines.number()}; }

  std::vector<WorkloadLog> logs_;
  Tally tally_;
  Workload::Below below_;
  std::vector<std::string> notes_;
};

/// The names of all kinds, for messages.
std::string log_kinds();

} // namespace deepgen
