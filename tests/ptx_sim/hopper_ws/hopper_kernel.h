// Kernels of hopper_ws for the simulated device, and faults that tests plant in them.
#pragma once

#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <stdexcept>

namespace deepgen {

/// While it lives, kernels of few tiles walk from tile to tile, as those of many do.
class Walking {
public:
  Walking() { hopper::most_blocks_of_one_tile = 0; }
  ~Walking() { hopper::most_blocks_of_one_tile = before_; }
  Walking(const Walking&) = delete;
  Walking& operator=(const Walking&) = delete;

private:
  const int64_t before_ = hopper::most_blocks_of_one_tile;
};

/// As PTX alone, which is all that the simulator reads.
inline Kernel compile_one_tile(const std::string& problem, const std::string& config) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  const KernelFile file =
      compile_candidate(Gemm::parse(problem), "sm_90a", {"hopper_ws", Config::parse(config)}, false, false);
  if (file.status != "ok") throw std::runtime_error(problem + " | " + config + ": " + file.detail);
  return *file.find("main");
}

inline Kernel compile_hopper(const std::string& problem, const std::string& config) {
  const Walking few;
  return compile_one_tile(problem, config);
}

/// A way to tile, and what else is in its config, in the order of the template's parameters.
struct HopperPair {
  const char *name, *problem, *tile, *cluster, *rest;
};

inline void PrintTo(const HopperPair& x, std::ostream* out) { *out << x.name; }

/// Kernels of so many random configs. `draw` gives the problem for each, `wanted` says whether a config is of
/// the kind that is tested, `compile` makes the kernel.
template <typename Draw, typename Wanted, typename Check>
void check_at_random(uint64_t count, const Device& device, std::mt19937_64& random, const Draw& draw,
                     const Wanted& wanted, const Check& check,
                     Kernel (*compile)(const std::string&, const std::string&) = compile_hopper) {
  const Template& source = find_template("hopper_ws");
  auto left = int64_t(count);
  for (int64_t tries = 1000 * left; left > 0 && tries > 0; --tries) {
    const Gemm p = draw();
    const std::optional<Config> config = draw_config(source, p, device, random);
    if (!config || !wanted(p, *config)) continue;
    --left;
    SCOPED_TRACE(p.key() + " | " + config->text());
    check(compile(p.key(), config->text()));
  }
  EXPECT_EQ(left, 0) << "no more such configs were found";
}

/// The code with all that the pattern matches replaced; it must match something.
inline std::string with(const std::string& ptx, const char* pattern, const char* by) {
  const std::string changed = std::regex_replace(ptx, std::regex(pattern), by);
  EXPECT_NE(changed, ptx) << pattern;
  return changed;
}

} // namespace deepgen
