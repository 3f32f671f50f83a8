#include "templates/core/seen_keys.h"

#include "templates/core/sizes.h"

#include <algorithm>
#include <numeric>

namespace deepgen {
namespace {

/// Of more tiles, so many are looked at. A prime number: tiles that are so many apart begin anywhere in a
/// block.
constexpr int64_t kSampledTiles = 61;

/// {from, to} of the keys that some of these tokens see.
std::pair<int64_t, int64_t> keys_of_tokens(const Attention& p, int64_t first, int64_t last) {
  return {p.seen_keys(first).first, p.seen_keys(std::min(last, p.at_queries - 1)).second};
}

/// The mean of f(from, to) of tiles.
template <typename F>
double mean_of_tiles(const Attention& p, const RowTile& tile, const F& f) {
  const int64_t tiles = ceil_div(p.at_queries * tile.group, tile.rows),
                count = std::min(tiles, kSampledTiles);
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * tiles / count * tile.rows;
    const auto [from, to] = keys_of_tokens(p, row / tile.group, (row + tile.rows - 1) / tile.group);
    sum += f(from, to);
  }
  return double(sum) / double(count);
}

} // namespace

int64_t RowTile::tokens(const Attention& p) const {
  const int64_t unaligned = group - std::gcd(rows, group); // a tile begins behind the first row of a token
  return std::min(p.at_queries, (unaligned + rows - 1) / group + 1);
}

int64_t RowTile::most_keys(const Attention& p) const {
  const int64_t count = tokens(p), last = p.at_queries - count;
  // Tiles see ever more until the window leaves the first key behind, and ever less once it is beyond the
  // last.
  const int64_t own = p.at_keys - p.at_queries;
  int64_t most = 0;
  for (int64_t first : {int64_t(0), p.at_left - own, p.at_keys - own - p.at_right - count, last}) {
    first = std::clamp<int64_t>(first, 0, last);
    const auto [from, to] = keys_of_tokens(p, first, first + count - 1);
    most = std::max(most, to - from);
  }
  return most;
}

double RowTile::mean_keys(const Attention& p, int64_t block) const {
  return mean_of_tiles(p, *this,
                       [&](int64_t from, int64_t to) { return to > from ? to - from / block * block : 0; });
}

double RowTile::mean_key_blocks(const Attention& p, int64_t block) const {
  return mean_of_tiles(
      p, *this, [&](int64_t from, int64_t to) { return to > from ? ceil_div(to, block) - from / block : 0; });
}

int64_t fewest_tuned_queries(const Attention& p) {
  if (p.calls.empty()) return p.at_queries;
  return std::ranges::min(p.calls, {}, [](const Sizes& call) { return call.m; }).m;
}

} // namespace deepgen
