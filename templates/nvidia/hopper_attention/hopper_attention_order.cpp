// In which order blocks of rows are worked on. Of causal masks they differ in their work by as much as there
// are blocks of keys: which ones a block of the grid gets decides when the last one is done.
#include "templates/core/sizes.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace deepgen {
namespace {

constexpr int64_t kCached = 24 << 20;  ///< bytes of keys and values that L2 keeps beside all else
constexpr int64_t kPassing = 16;       ///< pairs whose keys may come from memory again for each row of blocks
constexpr int64_t kCores = 132;        ///< of an H100 or H200
constexpr int64_t kEnds = 2;           ///< a block of rows takes as long as so many blocks of keys more
constexpr int64_t kMostTiles = 200000; ///< that are gone through

/// The tuned call, with so many pairs of entry and head at a time.
class Schedule {
public:
  Schedule(const Attention& p, const HopperAttentionTiling& t)
      : t_(t), row_blocks_(ceil_div(p.at_queries * t.group, t.rows)), pairs_(p.at_batch * t.heads(p)) {
    const int64_t shift = p.mask == AttentionMask::causal_top_left ? 0 : p.at_keys - p.at_queries;
    for (int64_t number = 0; number < row_blocks_; ++number) { // from the last rows on
      const int64_t rows = (row_blocks_ - number) * t.rows;
      const int64_t end = std::min(p.at_queries, ceil_div(rows, t.group)) + shift;
      work_.push_back(kEnds + ceil_div(std::clamp<int64_t>(end, 0, p.at_keys), t.keys));
    }
  }
  int64_t tiles() const { return row_blocks_ * pairs_; }

  /// When the last block is done.
  int64_t end(int64_t together) const {
    return t_.persistent ? end_of_rounds(together) : end_of_blocks(together);
  }

private:
  /// As HopperAttentionKernel::locate() numbers them.
  int64_t work(int64_t index, int64_t together) const {
    const int64_t section = index / (row_blocks_ * together), inside = index % (row_blocks_ * together);
    return work_[size_t(inside / std::min(together, pairs_ - section * together))];
  }
  /// As HopperAttentionKernel::walk() goes: every other round backwards.
  int64_t end_of_rounds(int64_t together) const {
    const int64_t width = std::min(kCores * t_.resident, tiles());
    std::vector<int64_t> load(size_t(width), 0);
    for (int64_t first = 0, round = 0; first < tiles(); first += width, ++round)
      for (int64_t own = 0; own < std::min(width, tiles() - first); ++own)
        load[size_t(round % 2 ? width - 1 - own : own)] += work(first + own, together);
    return *std::max_element(load.begin(), load.end());
  }
  /// Blocks of the grid start where one has ended.
  int64_t end_of_blocks(int64_t together) const {
    std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends;
    for (int64_t i = 0; i < kCores * t_.resident; ++i) ends.push(0);
    int64_t last = 0;
    for (int64_t i = 0; i < tiles(); ++i) {
      const int64_t end = ends.top() + work(i, together);
      ends.pop(), ends.push(end), last = std::max(last, end);
    }
    return last;
  }

  const HopperAttentionTiling& t_;
  const int64_t row_blocks_, pairs_;
  std::vector<int64_t> work_; ///< by number
};

} // namespace

/// As few as end the tuned call nearly first: the less keys and values are in use at a time, the better.
int64_t HopperAttentionTiling::together(const Attention& p) const {
  if (p.mask != AttentionMask::causal && p.mask != AttentionMask::causal_top_left) return 1;
  const int64_t pair = std::max<int64_t>(1, size_of(p.kv) * p.at_keys * (p.head_dim + p.value_dim));
  const int64_t sharing = heads(p) / p.kv_heads; // pairs that have the same keys
  int64_t most = std::max(kCached / pair * sharing, kPassing);
  most = std::min(most, std::max<int64_t>(1, heads(p) * p.at_batch));
  most = std::max<int64_t>(1, std::min(most, INT32_MAX / std::max<int64_t>(1, row_blocks(p))));
  const Schedule schedule(p, *this);
  if (schedule.tiles() > kMostTiles) return most;
  constexpr double kNearly = 1.01;
  std::vector<std::pair<int64_t, int64_t>> ends; // and their pairs
  for (int64_t n = sharing; n < most; n *= 2) ends.emplace_back(schedule.end(n), n);
  ends.emplace_back(schedule.end(most), most);
  const int64_t first = std::min_element(ends.begin(), ends.end())->first;
  for (const auto& [end, n] : ends)
    if (double(end) <= kNearly * double(first)) return n;
  return most;
}

} // namespace deepgen
