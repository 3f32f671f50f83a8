// Picks the finals out of the record logs of a search.
#pragma once

#include "base/search/record.h"

namespace deepgen {

/// The last log that holds finals of the problem; nullptr when the search has not come that far.
inline const RecordLog* final_log(const std::vector<RecordLog>& logs, const std::string& problem,
                                  const std::string& arch) {
  for (auto log = logs.rbegin(); log != logs.rend(); ++log)
    for (const Record& r : log->records)
      if (r.stage == "final" && r.problem == problem && r.arch == arch) return &*log;
  return nullptr;
}

/// Why a search has decided nothing, where its share of MINUTES was over: the default config stays. Else "".
inline std::string out_of_time(const RecordLog& final) { return final.environment.value("out_of_time", ""); }

} // namespace deepgen
