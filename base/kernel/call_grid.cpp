#include "base/kernel/call_grid.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr size_t kMostLaunches = 16;

double count_at(int64_t most, const SizeRule& rule, const Sizes& call) {
  if (!rule.exists()) return double(most);
  double value = double(rule.factor);
  for (size_t i = 0; i < size_count; ++i)
    if (rule.steps[i]) value *= std::ceil(double(call[Size(i)]) / double(rule.steps[i]));
  return std::min(double(most), value);
}

/// Blocks of one multiprocessor, by what the assembler says of them; 0: not known, as on AMD GPUs.
int64_t resident_on_one(const Launch& l, const Device& device) {
  constexpr int64_t kRegisters = 65536, kKeptShared = 1024, kMostBlocks = 32, kUnit = 8;
  if (!device.compute_capability() || l.registers <= 0 || device.shared_multiprocessor <= 0) return 0;
  const int64_t threads = l.block[0] * l.block[1] * l.block[2];
  if (threads <= 0 || threads > 1024) return 0;
  const int64_t version = device.compute_capability();
  const int64_t most_threads = version == 86 || version == 89 || version >= 120 ? 1536 : 2048;
  const int64_t registers = (l.registers + kUnit - 1) / kUnit * kUnit * threads;
  const int64_t shared = l.shared + l.static_shared + kKeptShared;
  return std::max<int64_t>(1, std::min({device.shared_multiprocessor / shared, kRegisters / registers,
                                        most_threads / threads, kMostBlocks}));
}

} // namespace

double CallGrid::blocks(const Sizes& call) const {
  double count = 1;
  for (size_t i = 0; i < 3; ++i) count *= count_at(most[i], rules[i], call);
  return count;
}

double CallGrid::waves(const Sizes& call) const {
  return resident > 0 ? std::ceil(blocks(call) / double(resident)) : 0;
}

std::vector<CallGrid> grids_of(const Kernel& kernel, const Device& device) {
  std::vector<CallGrid> out;
  if (device.is_cpu()) return out;
  for (const Launch& l : kernel.launches) {
    const int64_t cluster = std::max<int64_t>(1, l.cluster[0] * l.cluster[1] * l.cluster[2]);
    // A cluster is on multiprocessors of its own group, so that some may stay empty: how many is not told.
    const int64_t fit = resident_on_one(l, device) * device.cores / cluster * cluster;
    out.push_back({l.grid, l.grid_rules, fit});
  }
  return out;
}

std::vector<int64_t> grid_steps(const std::vector<CallGrid>& grids, const Sizes& at, Size along, int64_t low,
                                int64_t high, size_t most) {
  std::vector<int64_t> starts;
  for (const CallGrid& grid : grids)
    for (const SizeRule& rule : grid.rules) {
      const int64_t step = rule.steps[size_t(along)];
      if (!rule.exists() || step <= 0) continue;
      if ((high - low) / step > int64_t(most)) return {};
      for (int64_t first = low / step * step + 1; first <= high; first += step)
        if (first > low) starts.push_back(first);
    }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const auto blocks = [&](int64_t size) {
    Sizes call = at;
    call[along] = size;
    double count = 0;
    for (const CallGrid& grid : grids) count += grid.blocks(call);
    return count;
  };
  std::erase_if(starts, [&](int64_t first) { return blocks(first) <= blocks(first - 1); });
  return starts.size() > most ? std::vector<int64_t>() : starts;
}

Json to_json(const std::vector<CallGrid>& grids) {
  Json json = Json::array();
  for (const CallGrid& grid : grids) {
    Json item = {{"most", grid.most}, {"rules", Json::array()}};
    for (const SizeRule& r : grid.rules)
      item["rules"].push_back({r.factor, r.steps[0], r.steps[1], r.steps[2], r.steps[3]});
    if (grid.resident) item["resident"] = grid.resident;
    json.push_back(std::move(item));
  }
  return json;
}

std::vector<CallGrid> grids_from(const Json& list, const std::string& where) {
  if (!list.is_array() || list.size() > kMostLaunches)
    throw Error("field 'grids' is no list of at most " + std::to_string(kMostLaunches) + " launches", where,
                excerpt(list), "measure again");
  std::vector<CallGrid> out;
  for (const Json& item : list) {
    CallGrid grid;
    grid.most = get<std::array<int64_t, 3>>(item, "most", where);
    check_counts("most", where, grid.most.data(), grid.most.data() + grid.most.size(), 1);
    const auto rules = get<std::array<std::array<int64_t, 5>, 3>>(item, "rules", where);
    for (size_t i = 0; i < rules.size(); ++i) {
      check_counts("rules", where, rules[i].data(), rules[i].data() + rules[i].size(), 0);
      grid.rules[i] = {rules[i][0], {rules[i][1], rules[i][2], rules[i][3], rules[i][4]}};
    }
    if (item.contains("resident")) grid.resident = get_count(item, "resident", where, 1);
    out.push_back(grid);
  }
  return out;
}

} // namespace deepgen
