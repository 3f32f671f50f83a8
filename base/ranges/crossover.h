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

/// No point should be slower than the best kernel there by more than this share. In sustained calls on an
/// H200 the finals and the hold-out of one search were 4 to 5 % apart at three of ten points
/// (benchmarks/gpu/ranges.md): a tighter bound would ask for what a second race does not confirm.
inline constexpr double kMostRegret = 0.05;

struct CrossoverRules {
  size_t most_kernels = 16;
  /// The least by which the weighted time must gain from a larger set, as a share of it, and the slowdown at
  /// a point that counts as none.
  double noise = 0.01;
  double most_regret = kMostRegret;
  /// Of each point: seconds than which it should not take longer, such as those of a config that would serve
  /// it anyway; one that no kernel keeps is that of the best. Empty: none.
  std::vector<double> limits = {};
  /// Of each point that is predicted: the share by which the bound and the limit may be exceeded there; below
  /// 0: by which they have to be kept; infinite: it only weighs. Neighbours among them share a kernel for
  /// twice the noise. 0: it was measured. Empty: all were.
  std::vector<double> allowed = {};
};

/// The regret of a point is the time of the kernel that it takes over the best one's there, less 1. Its
/// excess is what it is beyond the bound: the larger one of its regret less most_regret, and of its time over
/// its limit less 1.
struct Crossover {
  std::vector<size_t> taken;   ///< the kernels, ascending, as indices of those given
  std::vector<size_t> at;      ///< of each point: the kernel, as an index of those given
  std::vector<double> regrets; ///< of each point
  double regret = 0;           ///< the mean of the regrets by weight
  double worst = 0;            ///< the largest
  bool bound_kept = false;     ///< no excess is above the noise
  size_t needed = 0;           ///< so many kernels, and no fewer, can keep the bound
};

/// The set of at most rules.most_kernels kernels with the least weighted regret among those that keep the
/// bound at every point; where none does, with the least of the largest excess. Fewer kernels win where the
/// others gain no more than the noise; then smaller code; then names. To that set come further kernels, one
/// after another, each of which gains more than the noise of the weighted mean, such as one that is far
/// better at a few points: over n points of equal weights, the noise over the square root of n. Neighbouring
/// points share a kernel where that costs no more than the noise, and not the bound. `weights`: of each
/// point, at least 0, not all 0. Throws Error when the input is malformed, or no kernel runs at some point.
Crossover choose_crossover(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
                           const CrossoverRules& rules = {});

/// Of a set of kernels that was chosen, perhaps with other points: which one each of these takes, as above.
std::vector<size_t> share_points(const std::vector<CrossoverKernel>& kernels, const std::vector<size_t>& set,
                                 const CrossoverRules& rules = {});

} // namespace deepgen
