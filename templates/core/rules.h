// Rules of legality. A template has one table of them, in the order in which the first broken one is told,
// over a Point: the values that its rules look at, which are known from the parameters up to the rule's own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace deepgen {

/// One rule of a space. Index: the template's enumeration of its parameters. Rules that only save time (they
/// cut what measurements showed to be slow) give their source.
template <typename Index, typename Point>
struct Rule {
  Index after; ///< the parameter whose value decides it, all before being known
  bool (*broken)(const Point&);
  std::string (*why)(const Point&); ///< asked where it is broken
};

/// The first broken rule, of those that the first `assigned` parameters decide; none where all hold.
template <typename Rules, typename Point>
const auto* find_broken(const Rules& rules, const Point& point, size_t assigned) {
  const auto broken = [&](const auto& rule) { return size_t(rule.after) < assigned && rule.broken(point); };
  const auto* const found = std::find_if(std::begin(rules), std::end(rules), broken);
  return found == std::end(rules) ? nullptr : found;
}

/// Its words, of all rules; "" where all hold.
template <typename Rules, typename Point>
std::string first_broken(const Rules& rules, const Point& point, size_t assigned = SIZE_MAX) {
  const auto* const rule = find_broken(rules, point, assigned);
  return rule ? rule->why(point) : "";
}

/// Whether there is one: words take an enumeration as long as all that it asks for.
template <typename Rules, typename Point>
bool breaks_any(const Rules& rules, const Point& point, size_t assigned) {
  return find_broken(rules, point, assigned) != nullptr;
}

/// Whether one is broken that the last of the `assigned` parameters decides. As quick as an enumeration
/// needs: the others were asked when their parameters came.
template <typename Rules, typename Point>
bool breaks_newly(const Rules& rules, const Point& point, size_t assigned) {
  for (const auto& rule : rules)
    if (size_t(rule.after) + 1 == assigned && rule.broken(point)) return true;
  return false;
}

} // namespace deepgen
