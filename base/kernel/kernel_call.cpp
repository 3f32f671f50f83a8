#include "base/kernel/kernel_call.h"

#include <algorithm>

namespace deepgen {
namespace {

/// Both come from rules of a call; a grid has at least a block.
int64_t lowered(int64_t most, const SizeRule& rule, const Sizes& call) {
  return rule.exists() ? std::min(most, rule.at(call)) : most;
}

void scale(int64_t& of_largest, std::optional<Size> by, const Sizes& largest, const Sizes& call) {
  if (by) of_largest = of_largest / largest[*by] * call[*by];
}

/// As cuda_tensor_map.cpp of the runtime has it.
int64_t rest_rows(int64_t size, int64_t box_rows) {
  const int64_t rest = size % box_rows;
  return rest ? (rest + 7) / 8 * 8 : box_rows;
}

} // namespace

Gemm problem_at(const Gemm& p, const Sizes& sizes) {
  Sizes with_products = sizes;
  with_products.k = sizes.k ? sizes.k : p.k;
  Gemm one = p.at(with_products);
  one.k = sizes.k;
  return one;
}

Kernel kernel_in_call(const Kernel& kernel, const Sizes& call) {
  if (kernel.problem.op() != "gemm" || !kernel.problem.gemm().ranged()) return kernel;
  Kernel k = kernel;
  const Sizes largest = kernel.problem.gemm().sizes();
  k.problem = problem_at(kernel.problem.gemm(), call);
  if (k.workspace_rule.exists())
    k.workspace = std::min(k.workspace, k.workspace_fixed + k.workspace_rule.at(call));
  k.workspace_fixed = 0, k.workspace_rule = {};
  int64_t* tiles[] = {&k.tiles_m, &k.tiles_n, &k.tiles_b};
  for (size_t i = 0; i < 3; ++i) *tiles[i] = lowered(*tiles[i], k.tile_rules[i], call);
  k.tile_rules = {};
  for (Launch& l : k.launches) {
    for (size_t i = 0; i < 3; ++i) l.grid[i] = lowered(l.grid[i], l.grid_rules[i], call);
    l.grid_rules = {};
  }
  for (TensorMap& map : k.maps) {
    scale(map.packed.rows, map.packed.rows_by, largest, call);
    scale(map.packed.columns, map.packed.columns_by, largest, call);
    map.packed.rows_by = map.packed.columns_by = std::nullopt;
    if (map.rest_of) map.box_rows = rest_rows(call[*map.rest_of], map.box_rows);
    map.rest_of = std::nullopt;
  }
  return k;
}

std::vector<int64_t> steps_between(const Kernel& k, const Sizes& at, Size along, int64_t low, int64_t high) {
  constexpr size_t kMost = 256;
  constexpr int64_t kWidest = 1 << 16;
  std::vector<int64_t> steps;
  if (high - low > kWidest) return steps;
  const auto blocks = [&](int64_t size) {
    Sizes call = at;
    call[along] = size;
    double count = 0; // a sum of products of hostile numbers, too
    for (const Launch& l : k.launches) {
      double grid = 1;
      for (size_t i = 0; i < 3; ++i) grid *= double(lowered(l.grid[i], l.grid_rules[i], call));
      count += grid;
    }
    return count;
  };
  double before = blocks(low);
  for (int64_t size = low + 1; size <= high; ++size) {
    const double count = blocks(size);
    if (count > before) steps.push_back(size);
    if (steps.size() > kMost) return {};
    before = count;
  }
  return steps;
}

bool has_entries(const Kernel& k) { return std::ranges::count(k.args, "stride_d") != 0; }

} // namespace deepgen
