// Faults planted in the LLVM IR of a kernel, which the simulator must find.
#pragma once

#include "tests/amd_sim/check/compiled.h"

#include <functional>

namespace deepgen::amd_sim {

/// The first fault that one of the cases shows; empty: none.
std::string first_fault(const Compiled&);

/// Changes the matches of `pattern` one at a time, and expects that each change is found. Returns how many
/// there were.
int plant(const Compiled& right, const std::string& pattern, const std::string& by);
/// The same with another search for faults.
int plant(const Compiled& right, const std::string& pattern, const std::string& by,
          const std::function<std::string(const Compiled&)>& find);
/// Those in the kernel's first loop alone.
int plant_in_loop(const Compiled& right, const std::string& pattern, const std::string& by);

} // namespace deepgen::amd_sim
