// How threads share a call: a parameter of problems that are tuned for several.
#pragma once

#include "templates/core/template.h"

namespace deepgen {

/// As DEEPGEN_CUT_... in kernel_abi.h: the runtime's rule, along M alone, along N alone, both.
enum class TaskCut : int64_t { rule, rows, columns, both };

/// Entries of a batch are shared out by the rule.
inline bool has_cut(const Gemm& p) { return p.threads > 1 && p.batch == 1; }
Parameter cut_parameter(const Gemm&);
/// Of a config; those in locks from before the parameter have none, and are cut by the rule.
TaskCut cut_of(const Config&);
/// Why a grid of so many tiles is not cut so; "" where it is.
std::string why_no_cut(const Gemm&, TaskCut, int64_t m_tiles, int64_t n_tiles);

/// What one thread has of the problem, of tiles of mr x dr: the estimate is that of this problem.
Gemm share_of(const Gemm&, TaskCut, int64_t mr, int64_t dr);

} // namespace deepgen
