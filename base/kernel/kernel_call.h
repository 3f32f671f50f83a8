// A kernel as one call sees it, where the problem has ranges.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

/// The problem of one call, without ranges. K may be 0, which is legal at a call alone. Throws Error when
/// another size is 0.
Gemm problem_at(const Gemm&, const Sizes&);

/// The kernel in a call of these sizes, which the problem takes: a problem without ranges, and the grids,
/// tiles, scratch and copies that the rules give. The code, and which arguments it takes, are the same: sizes
/// among them are those of problem_at(). Itself where the problem has no ranges.
Kernel kernel_in_call(const Kernel&, const Sizes&);

/// The sizes in (low, high] along one range, beside `at` of the others, at which a call has more blocks than
/// one of a size less: there a GPU kernel's time goes up. Nothing where that is almost everywhere, or not
/// told, as where a fixed number of blocks shares the tiles, or on the CPU.
std::vector<int64_t> steps_between(const Kernel&, const Sizes& at, Size along, int64_t low, int64_t high);

/// Whether matrices have batch entries to a GPU kernel: also in a call of one, where that is a range. Its
/// tensor maps have three dimensions then.
bool has_entries(const Kernel&);

} // namespace deepgen
