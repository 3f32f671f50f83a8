// Export: searches and spaces in the formats of the autotuning community's tools (Kernel Tuner,
// autotuning_methodology).
#pragma once

#include "generator/report/report_study.h"
#include "generator/space/space.h"

namespace deepgen {

/// T4, the results of one search: schema_version 1.0.0, times in milliseconds. What the records do not have
/// is left out: time stamps, single run times, and how long compiling and verifying took.
/// docs/reference/formats.md maps the fields.
Json t4_json(const Study&);

/// T1, the space of one template: its parameters, and one condition that lists every legal config, as
/// constraints of templates are code and no expressions. Throws Error when the space has several templates,
/// or no legal config.
Json t1_json(const Problem&, const std::string& arch, const Space&, int64_t trials);

} // namespace deepgen
