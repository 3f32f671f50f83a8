#include "generator/embed/embed_ranges.h"

#include "generator/embed/embed_text.h"
#include "generator/embed/operand_table.h"

#include <algorithm>

namespace deepgen {
namespace {

std::string rule_text(const SizeRule& rule) {
  std::string text = "{" + number(rule.factor) + ", {";
  for (size_t i = 0; i < size_count; ++i) text += (i ? ", " : "") + number(rule.steps[i]);
  return text + "}}";
}

template <typename Rules>
std::string rule_list(const std::string& name, const Rules& rules) {
  std::string text = "const deepgen_size_rule " + name + "[] = {";
  for (const SizeRule& rule : rules) text += rule_text(rule) + ", ";
  return text + "};\n";
}

bool any(const std::array<SizeRule, 3>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const SizeRule& rule) { return rule.exists(); });
}
bool has_rules(const Kernel& k) { return any(k.tile_rules) || k.workspace_rule.exists(); }

std::string range_text(int64_t least, int64_t most) {
  return "{" + number(least) + ", " + number(most) + "}";
}

} // namespace

std::vector<RangeOfSize> ranges_of(const Problem& p) {
  std::vector<RangeOfSize> list;
  if (const Attention* a = std::get_if<Attention>(&p.which()))
    return {{"batch", Size::batch, 0, most_attention_batch},
            {"max_queries", Size::m, 0, a->queries},
            {"max_keys", Size::n, 0, a->keys}};
  const Gemm* gemm = std::get_if<Gemm>(&p.which());
  for (size_t i = 0; gemm && i < size_count; ++i)
    if (gemm->least[i]) list.push_back({size_names[i], Size(i), *gemm->least[i], gemm->sizes()[Size(i)]});
  return list;
}

std::string size_expression(int64_t value, std::optional<Size> by, const Problem& p) {
  if (!by) return number(value);
  const int64_t factor = value / p.gemm().sizes()[*by];
  return (factor == 1 ? "" : number(factor) + " * ") + size_names[size_t(*by)];
}

std::string function_sizes(const Problem& p) {
  std::string text;
  for (const deepgen_range& range : size_ranges(p))
    text += (text.empty() ? "{" : ", ") + range_text(range.least, range.most);
  return text + "}";
}

std::string taken_text(const Kernel& k) {
  std::string text;
  for (const RangeOfSize& size : ranges_of(k.problem)) {
    if (!k.taken) return ""; // a fallback, or the last one
    text += (text.empty() ? ", for " : ", ") + size.name + "=" + number(k.taken->least[size.size]) + ".." +
            number(k.taken->most[size.size]);
  }
  return text;
}

std::string size_tables(const Kernel& k, const std::string& id) {
  std::string text;
  if (k.taken) {
    text += "const deepgen_range " + id + "_taken[] = {";
    for (size_t i = 0; i < size_count; ++i)
      text += range_text(k.taken->least[Size(i)], k.taken->most[Size(i)]) + ", ";
    text += "};\n";
  }
  if (has_rules(k))
    text += rule_list(id + "_rules",
                      std::array{k.tile_rules[0], k.tile_rules[1], k.tile_rules[2], k.workspace_rule});
  return text;
}

std::string size_fields(const Kernel& k, const std::string& id) {
  return ", " + (k.taken ? id + "_taken" : "nullptr") + ", " + (has_rules(k) ? id + "_rules" : "nullptr") +
         ", " + number(k.workspace_fixed);
}

std::string grid_rule_tables(const Kernel& k, const std::string& id) {
  std::string text;
  for (const Launch& l : k.launches)
    if (any(l.grid_rules)) text += rule_list(grid_rules_name(l, id), l.grid_rules);
  return text;
}

std::string grid_rules_name(const Launch& l, const std::string& id) {
  return any(l.grid_rules) ? id + "_" + l.entry + "_grid" : "nullptr";
}

} // namespace deepgen
