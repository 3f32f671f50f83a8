// The report as one page of HTML that needs nothing else, as the data in it, and as CSV.
#pragma once

#include "generator/report/report_study.h"

namespace deepgen {

/// {"schema":"deepgen.report/1",...}: what generator/page/*.js shows.
Json report_json(const std::vector<Study>&);
std::string report_page(const std::vector<Study>&);
/// A row a problem; and a row a candidate, the finals included.
std::string summary_csv(const std::vector<Study>&);
std::string candidates_csv(const std::vector<Study>&);

} // namespace deepgen
