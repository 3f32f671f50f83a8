// What the templates' rules and estimates count with.
#pragma once

#include "base/kernel/config.h"
#include "base/problem/gemm.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace deepgen {

inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
inline int64_t round_up(int64_t x, int64_t y) { return ceil_div(x, y) * y; }
inline std::string text(int64_t x) { return std::to_string(x); }
/// Bands of `group` rows of tiles are visited column by column. Whether a smaller group of 1, 4, 8, 16, ...
/// has the same order, as it covers all rows.
inline bool has_smaller_group(int64_t group, int64_t rows) {
  return group > 1 && (group > 4 ? group / 2 : 1) >= rows;
}
inline bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }

/// Parameter `i` of a template, called `name`: by position where the config is in the template's order, as
/// all that DeepGen writes are; else by name. Inline, so that names are compared as the constants that they
/// are: an enumeration of a space asks for millions.
[[gnu::always_inline]] inline int64_t value_at(const Config& config, size_t i, std::string_view name) {
  if (i < config.values.size()) {
    const auto& [key, value] = config.values[i];
    // operator== stays a call, of a quarter of all instructions of a search.
    if (key.size() == name.size() && std::memcmp(key.data(), name.data(), name.size()) == 0) return value;
  }
  return config[std::string(name)];
}

/// The first `assigned` values of a config, and `rest` for the parameters behind: for rules that are asked
/// before all values are known. A thread has one of each template, as an enumeration asks for millions.
template <const auto& names, const auto& rest>
const Config& filled(const Config& config, size_t assigned) {
  thread_local Config all = [] {
    Config made;
    for (size_t i = 0; i < std::size(rest); ++i) made.values.emplace_back(names[i], rest[i]);
    return made;
  }();
  for (size_t i = 0; i < std::size(rest); ++i)
    all.values[i].second = i < assigned ? value_at(config, i, names[i]) : rest[i];
  return all;
}

/// A parameter that not all of a template's configs have beside the first `required`, which all have: configs
/// may be older than it is, or of problems without it.
inline int64_t value_or(const Config& config, size_t required, std::string_view name, int64_t absent) {
  if (config.values.size() <= required) return absent;
  for (const auto& [key, value] : config.values)
    if (key == name) return value;
  return absent;
}

/// Bytes, up to 16, to which every row of a dense matrix starts.
inline int64_t dense_alignment(int64_t columns, Type type) {
  const int64_t bytes = columns * size_of(type);
  return std::min<int64_t>(16, bytes & -bytes);
}

/// What divides this size at every call: the size itself, or 1 of a range. So rows of operands are aligned.
inline int64_t unit_of(const Gemm& p, Size size) { return p.ranged(size) ? 1 : p.sizes()[size]; }

/// Of what counts K in 32 bits; "" where that is enough.
inline std::string why_no_depth(const Gemm& p) {
  return p.ranged(Size::k) && p.k > int64_t(1) << 30 ? "a range of K ends beyond 2^30" : "";
}

/// A number that follows from a call's sizes: `factor` times ceil(size / step) of each. Sizes that are fixed
/// go into the rule's factor; where all are, there is no rule.
inline SizeRule rule_of(const Gemm& p, int64_t factor,
                        std::initializer_list<std::pair<Size, int64_t>> steps) {
  SizeRule rule{factor, {}};
  for (const auto& [size, step] : steps)
    if (p.ranged(size))
      rule.steps[size_t(size)] = step;
    else
      rule.factor *= ceil_div(p.sizes()[size], step);
  return std::ranges::any_of(rule.steps, [](int64_t step) { return step != 0; }) ? rule : SizeRule();
}

/// Blocks for M * batch * `each` items, `block` items a block, where M or the batch is a range: hardly more
/// than that takes.
inline SizeRule covering_rule(const Gemm& p, int64_t each, int64_t block) {
  const Size size = p.ranged(Size::m) ? Size::m : Size::batch;
  if (!p.ranged(size)) return {};
  if (!p.ranged(Size::m) || !p.ranged(Size::batch)) each *= size == Size::m ? p.batch : p.m;
  const auto blocks = [&](int64_t step) { return ceil_div(step * each, block); };
  int64_t best = 1; // of the steps, each of which covers all items
  for (int64_t step = 2; step <= 128; ++step)
    if (blocks(step) * best < blocks(best) * step) best = step;
  SizeRule rule{blocks(best), {}};
  rule.steps[size_t(size)] = best;
  if (size == Size::m && p.ranged(Size::batch)) rule.steps[size_t(Size::batch)] = 1;
  return rule;
}

/// A smaller problem keeps its ranges, from 1 on.
inline void shrink_ranges(Gemm& p) {
  for (auto [size, most] :
       {std::pair{Size::m, &p.m}, {Size::n, &p.n}, {Size::k, &p.k}, {Size::batch, &p.batch}})
    if (p.ranged(size)) p.least[size_t(size)] = 1, *most = std::max<int64_t>(2, *most);
}

/// What a template's rules see of a problem with groups: as many batch entries, of twice the average rows, as
/// groups differ. Itself without groups.
inline Gemm for_rules(const Gemm& p) {
  Gemm out = p.as_batch();
  if (p.groups) out.m = std::min(p.m, 2 * out.m);
  return out;
}

/// A problem with groups as `of_groups` has it, any other one itself: a copy would take an enumeration, which
/// asks for millions, a tenth of its time.
class Ungrouped {
public:
  explicit Ungrouped(
      const Gemm& p, Gemm (*of_groups)(const Gemm&) = [](const Gemm& whole) { return whole.as_batch(); })
      : made_(p.groups ? std::optional(of_groups(p)) : std::nullopt), problem_(made_ ? *made_ : p) {}
  Ungrouped(const Ungrouped&) = delete;
  Ungrouped& operator=(const Ungrouped&) = delete;
  const Gemm& problem() const { return problem_; }

private:
  const std::optional<Gemm> made_;
  const Gemm& problem_;
};

/// The same with M and as many groups, few of which have a tile of `rows` rows: to verify a config on.
inline void shrink_groups(Gemm& p, int64_t rows) {
  p.groups = std::min<int64_t>(p.groups, 5);
  p.m = p.groups ? rows * ceil_div(p.groups, 2) : rows;
}

/// Threads that a multiprocessor holds at a time (CUDA C++ Programming Guide, "Compute Capabilities").
inline int64_t resident_threads(int64_t capability) {
  return capability == 86 || capability == 89 || capability == 120 ? 1536 : 2048;
}

} // namespace deepgen
