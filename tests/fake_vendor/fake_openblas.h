// An OpenBLAS that multiplies by a plain loop, says that it is version 9.8.7, and counts.
#pragma once

#include <atomic>

namespace fake_openblas {

struct State {
  std::atomic<int> threads{1}; ///< what it says that it has
  std::atomic<int> calls{0};
};
State& state();

} // namespace fake_openblas
