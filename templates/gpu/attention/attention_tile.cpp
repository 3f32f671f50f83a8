#include "templates/gpu/attention/attention_tile.h"

#include "templates/core/seen_keys.h"
#include "templates/core/sizes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {

std::pair<int64_t, int64_t> AttentionTile::blocks() const {
  const int64_t common = std::gcd(rows, group);
  return {group / common, rows / common};
}

int64_t AttentionTile::heads(const Attention& p) const { return pack ? p.kv_heads : p.heads; }

int64_t AttentionTile::tuned_blocks(const Attention& p) const {
  const auto [first, tokens] = blocks();
  return first * ceil_div(p.at_queries, tokens) * p.at_batch * heads(p);
}

int64_t AttentionTile::tuned_keys(const Attention& p) const {
  return p.windowed() ? RowTile{rows, group}.most_keys(p) : p.at_keys;
}

int64_t AttentionTile::tuned_span(const Attention& p) const {
  return p.windowed() ? std::min(p.at_keys, tuned_keys(p) + keys - 1) : p.at_keys;
}

double AttentionTile::tuned_key_blocks(const Attention& p) const {
  const bool half = p.mask == AttentionMask::causal || p.mask == AttentionMask::causal_top_left;
  const auto all_keys = double(p.at_keys), queries = double(p.at_queries);
  const double seen = half ? std::max(1.0, all_keys - std::min(all_keys, queries) / 2) : all_keys;
  const double edge = double(half ? rows / group + keys : keys) / 2;
  const double all = p.windowed()
                         ? RowTile{rows, group}.mean_key_blocks(p, keys)
                         : std::min(std::ceil(all_keys / double(keys)), (seen + edge) / double(keys));
  return splits == 1 ? all : std::ceil(all / double(splits));
}

int64_t AttentionTile::workspace(const Attention& p) const {
  return splits > 1 ? split_tokens * p.heads * splits * record : 0;
}

double AttentionTile::part_bytes(const Attention& p) const {
  if (splits == 1) return 0;
  return 2 * double(p.at_batch) * double(p.at_queries * p.heads) * double(splits * record);
}

Launch AttentionTile::launch(const Attention& p, int64_t threads) const {
  Launch launch;
  launch.entry = kernel_symbol;
  const auto [first, tokens] = blocks();
  launch.grid = {splits * first * ceil_div(p.queries, tokens), heads(p), most_attention_batch};
  launch.grid_rules[0] = {splits * first, {tokens, 0, 0, 0}};
  launch.grid_rules[2] = {1, {0, 0, 0, 1}};
  launch.block = {threads, 1, 1};
  return launch;
}

Attention AttentionTile::awkward(const Attention& p, int64_t stages) const {
  return p.alone(1, std::min(p.at_queries, ceil_div(rows, group) + 3),
                 std::min(p.at_keys, (stages + 1) * keys + 3));
}

namespace {

constexpr int64_t kMoreTokens = 4; ///< times those of a tuned call, which are still split

/// Without a copy: a tiling of each config asks.
template <typename Use>
void each_tuned_call(const Attention& p, const Use& use) {
  if (p.calls.empty()) return use(Sizes{p.at_queries, p.at_keys, 1, p.at_batch});
  for (const Sizes& call : p.calls) use(call);
}

bool may_be_split(const Attention& p, const Sizes& call) {
  return p.splits || call.m * p.group() <= few_attention_rows;
}

} // namespace

bool has_attention_splits(const Attention& p) {
  bool any = false;
  each_tuned_call(p, [&](const Sizes& call) { any = any || may_be_split(p, call); });
  return any;
}

int64_t most_tokens_split(const Attention& p) {
  int64_t most = 0;
  each_tuned_call(p, [&](const Sizes& call) {
    if (may_be_split(p, call) || p.calls.empty()) most = std::max(most, call.batch * call.m);
  });
  return kMoreTokens * most;
}

int64_t most_tuned_batch(const Attention& p) {
  int64_t most = 1;
  each_tuned_call(p, [&](const Sizes& call) { most = std::max(most, call.batch); });
  return most;
}

Parameter attention_splits(const Attention& p) {
  return {"splits",
          p.splits ? std::vector<int64_t>{p.splits} : std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64},
          "blocks that share out an entry's keys",
          {1, most_splits, 1, true}};
}

} // namespace deepgen
