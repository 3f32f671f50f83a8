// What of ROCm this machine has, for people.
#pragma once

#include <string>
#include <vector>

namespace deepgen {

struct LibraryFound {
  std::string name;  ///< "rocBLAS"
  std::string where; ///< its file; or that it is not found, and the remedy
};

/// HIP's library as a program with tuned kernels finds it, and beside it those that measurements use: the
/// vendor's baselines and what watches the clock. Of these nothing where there is no HIP.
std::vector<LibraryFound> rocm_libraries();

} // namespace deepgen
