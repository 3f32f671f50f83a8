// Which of a function's kernels takes the calls that no other one does.
#pragma once

#include "base/kernel/kernel.h"

#include <algorithm>

namespace deepgen {

/// The last of the kernels that calls are looked up in takes any: where no fallback does, that is the main
/// kernel which needs the least.
inline void let_one_take_all(KernelFile& file) {
  const auto takes_some = [](const Kernel& k) { return k.taken.has_value(); };
  if (!std::all_of(file.kernels.begin(), file.kernels.end(), takes_some)) return;
  const auto least = std::min_element(file.kernels.rbegin(), file.kernels.rend(),
                                      [](const Kernel& x, const Kernel& y) { return x.isa < y.isa; });
  least->taken.reset();
  std::rotate(least.base() - 1, least.base(), file.kernels.end()); // behind its equals
}

} // namespace deepgen
