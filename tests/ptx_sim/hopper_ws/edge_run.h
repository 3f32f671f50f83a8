// A call of a kernel of hopper_ws whose tiles have edges, with the copies that it makes, and with faults in
// its arguments.
#pragma once

#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/machine/launch.h"
#include "tests/ptx_sim/machine/tensor_map.h"

#include <gtest/gtest.h>

#include <cstring>

namespace deepgen {

struct EdgeRun {
  std::string fault;
  uint64_t copies = 0, empty = 0; ///< by all launches
};

/// `change` may alter the arguments of a launch.
template <typename Change>
EdgeRun run_edges(const Kernel& kernel, const cuda::CallCase& of, uint64_t seed, const Change& change) {
  EdgeRun out;
  const auto run = [&](const Launch& l, const std::vector<std::vector<uint8_t>>& arguments,
                       ptx_sim::GlobalMemory& memory, uint64_t of_launch) {
    std::vector<std::vector<uint8_t>> changed = arguments;
    for (size_t i = 0; i < changed.size(); ++i) change(kernel.args[i], changed[i]);
    ptx_sim::run_launch(kernel.ptx, {l.entry, l.grid, l.block, l.cluster, l.shared, l.dependent}, changed,
                        memory, of_launch);
    out.copies = memory.copies, out.empty = memory.empty_copies;
  };
  out.fault = ptx_sim::check_case(kernel, of, seed, run).fault;
  return out;
}

inline EdgeRun run_edges(const Kernel& kernel, const cuda::CallCase& of, uint64_t seed) {
  return run_edges(kernel, of, seed, [](const std::string&, std::vector<uint8_t>&) {});
}

inline EdgeRun run_edges(const Kernel& kernel, uint64_t seed) {
  return run_edges(kernel, ptx_sim::chosen_cases(kernel.problem.gemm(), seed)[0], seed);
}

/// With boxes of so many rows by map `which` of A, which are `before` otherwise.
inline EdgeRun run_with_box(const Kernel& kernel, size_t which, uint32_t before, uint32_t rows) {
  const auto change = [&](const std::string& name, std::vector<uint8_t>& bytes) {
    if (name != "map_a") return;
    ASSERT_EQ(bytes.size(), 2 * sizeof(ptx_sim::SimulatedMap));
    ptx_sim::SimulatedMap map;
    std::memcpy(&map, &bytes[which * sizeof map], sizeof map);
    EXPECT_EQ(map.box[1], before);
    map.box[1] = rows;
    std::memcpy(&bytes[which * sizeof map], &map, sizeof map);
  };
  return run_edges(kernel, ptx_sim::chosen_cases(kernel.problem.gemm(), 1)[0], 1, change);
}

} // namespace deepgen
