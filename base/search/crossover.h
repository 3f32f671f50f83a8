// Crossover: which few kernels a function of run-time sizes links, and which one each point takes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace deepgen {

/// A kernel that was timed, or estimated, at every point.
struct CrossoverKernel {
  std::string name;            ///< tells kernels apart: the last tie is decided by it, not by the order
  int64_t code_bytes = 0;      ///< smaller code wins ties
  std::vector<double> seconds; ///< at each point; infinite: it does not run there
};

struct CrossoverRules {
  size_t most_kernels = 6;
  /// The least that a further kernel must gain, as a share of the weighted time, and the slowdown at a point
  /// that counts as none.
  double noise = 0.01;
  /// No point should be slower than the best kernel there by more than this share.
  double most_regret = 0.05;
};

/// The regret of a point is the time of the kernel that it takes over the best one's there, less 1.
struct Crossover {
  std::vector<size_t> taken;   ///< the kernels, ascending, as indices of those given
  std::vector<size_t> at;      ///< of each point: the kernel, as an index of those given
  std::vector<double> regrets; ///< of each point
  double regret = 0;           ///< the mean of the regrets by weight
  double worst = 0;            ///< the largest
  bool bound_kept = false;     ///< worst <= most_regret + noise
};

/// The set of at most rules.most_kernels kernels with the least weighted regret among those that keep the
/// bound, or, where none does, with the least worst regret. Fewer kernels win where the others gain no more
/// than the noise; then smaller code; then names. Neighbouring points share a kernel where that costs no more
/// than the noise. `weights`: of each point, at least 0, not all 0. Throws Error when the input is malformed,
/// or no kernel runs at some point.
Crossover choose_crossover(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
                           const CrossoverRules& rules = {});

} // namespace deepgen
