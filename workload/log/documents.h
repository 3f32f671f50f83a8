// Logs that are one document, not lines of different kinds.
#pragma once

#include "workload/log/log_bytes.h"
#include "workload/log/tally.h"

namespace deepgen {

/// How a PyTorch profiler's trace begins: an object, or a list of them.
bool is_torch_trace(std::string_view beginning);
/// Products of aten that call no other operator. Where the trace has kernels, their times, else the
/// operators'. Returns the number of calls. Throws Error when it is no valid JSON, or cut off.
int64_t read_torch_trace(LogLines&, const std::string& name, int64_t log, Tally&);

/// Whether the first line names a column "problem".
bool is_key_csv(std::string_view beginning);
/// Columns problem, and if they are there calls and seconds (of one call). Returns the number of rows.
int64_t read_key_csv(LogLines&, int64_t log, Tally&);

} // namespace deepgen
