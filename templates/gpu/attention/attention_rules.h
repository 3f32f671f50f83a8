// Rules of legality that families of attention share: of heads that are packed, and of keys that are shared
// out. A family's Point has the problem `p`, the tile `t`, the `device`, and `processors`, what it calls the
// device's cores.
#pragma once

#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/gpu/attention/attention_tile.h"

namespace deepgen {

inline constexpr int64_t most_packed_rows = int64_t(1) << 30; ///< of an entry, counted in 32 bits
inline constexpr int64_t most_split_blocks = 4; ///< of a multiprocessor: more splits leave none less idle

template <typename Point, typename Index>
constexpr Rule<Index, Point> packs_single_heads(Index pack) {
  return {pack, [](const Point& x) { return x.t.pack && x.p.group() == 1; },
          [](const Point&) { return std::string("pack=1 where each head of Q has its own head of K"); }};
}

template <typename Point, typename Index>
constexpr Rule<Index, Point> packs_too_many_rows(Index pack) {
  return {pack, [](const Point& x) { return x.t.pack && x.p.queries * x.p.group() > most_packed_rows; },
          [](const Point& x) {
            return "pack=1 with " + text(x.p.queries * x.p.group()) + " rows of an entry, more than 2^30";
          }};
}

template <typename Point, typename Index>
constexpr Rule<Index, Point> splits_without_keys(Index splits) {
  return {splits,
          [](const Point& x) { return !x.p.splits && x.t.keys * (x.t.splits - 1) >= x.t.tuned_span(x.p); },
          [](const Point& x) {
            return "splits=" + text(x.t.splits) + " leave some without any of the " +
                   text(x.t.tuned_span(x.p)) + " keys";
          }};
}

template <typename Point, typename Index>
constexpr Rule<Index, Point> splits_beyond_use(Index splits) {
  return {splits,
          [](const Point& x) {
            return !x.p.splits && x.t.splits > 1 &&
                   x.t.tuned_blocks(x.p) * x.t.splits / 2 >= most_split_blocks * x.device.cores;
          },
          [](const Point& x) {
            return "splits=" + text(x.t.splits) + " where half of them give each of " + text(x.device.cores) +
                   " " + Point::processors + " " + text(most_split_blocks) + " blocks";
          }};
}

} // namespace deepgen
