// Times of one GPU kernel between the sizes at which it was measured. Pure.
#pragma once

#include "base/kernel/call_grid.h"

#include <optional>
#include <vector>

namespace deepgen {

/// Of a call that was not measured.
struct PredictedTime {
  double seconds = 0;
  /// By which share a time like this one is off, on average, where it can be checked: `seconds` may be as
  /// much more or less.
  double error = 0;
  double doubt = 0; ///< the same; more, where measured neighbours are far apart
  bool measured = false;
};

/// A kernel's time is a step function of a size: of as many blocks, it takes as long. So a call takes what
/// the nearest measured ones with as many blocks take; between two of these it goes along a line. Where no
/// measured call has as many blocks, it lies between its neighbours, in proportion to what a call costs: the
/// waves of its blocks, the blocks, or both. Each measured size that is left out and told from the others
/// says which one fits this kernel (waves are right where blocks are large; persistent ones that share the
/// sum over K take as long as they have blocks), and how far off that is.
class StepTimes {
public:
  struct Measured {
    int64_t size = 0;
    double seconds = 0;
  };

  /// `at`: the other sizes. `measured`: ascending along the one that is a range, each once, above 0.
  StepTimes(std::vector<CallGrid>, const Sizes& at, Size along, std::vector<Measured>);

  /// What was measured, else as above; nothing where neither a measured size with as many blocks nor two
  /// neighbours at most kFarthest apart are known.
  std::optional<PredictedTime> time_at(int64_t size) const;
  const std::vector<Measured>& measured() const { return measured_; }
  /// In (low, high]: where it has more blocks than before.
  std::vector<int64_t> steps(int64_t low, int64_t high) const;

  static constexpr double kFarthest = 2; ///< times the smaller neighbour

private:
  enum class Load { waves, blocks, both };
  std::vector<CallGrid> grids_;
  Sizes at_;
  Size along_;
  std::vector<Measured> measured_;
  Load load_ = Load::waves;
  double same_error_ = 0, between_error_ = 0;

  double blocks(int64_t size) const;
  double load_of(int64_t size, Load) const;
  /// Without the measured one at this place; `left_out` beyond the end: with all.
  std::optional<double> same_blocks(int64_t size, size_t left_out, double* distance = nullptr) const;
  std::optional<double> between(int64_t size, size_t left_out, Load) const;
  /// Neighbours of the size, as places of measured_.
  std::optional<std::pair<size_t, size_t>> neighbours(int64_t size, size_t left_out) const;
  void check_itself();
};

} // namespace deepgen
