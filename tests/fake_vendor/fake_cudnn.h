// A cuDNN on the fake HIP's memory and streams, for tests: a strict backend API. It refuses attributes that a
// descriptor has not, elements of another type, wrong counts, what is missing or not final, and graphs that
// do not hang together; each is a complaint. Executing a plan computes what the graph says, operation by
// operation, on the host, wherever cuDNN itself would fuse. Point DEEPGEN_CUDNN at it, link it, and set it up
// through state().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fake_cudnn {

/// What a heuristic returns.
struct Config {
  int64_t engine = 0;
  std::vector<std::pair<int, int64_t>> knobs = {};
  int64_t workspace = 0;                   ///< bytes
  int plan_status = 0, execute_status = 0; ///< what finalizing a plan, and executing it, come to
  double factor = 1;                       ///< of out: another one than 1 is wrong
  int64_t keys_beyond = 0;                 ///< that are seen ahead of a mask's end: any are wrong
  int64_t page_beyond = 0;                 ///< in the table, of a key's: any are wrong
  int64_t page_shift = 0; ///< elements that each page is farther from the one before: the same
  int64_t keys_more = 0;  ///< that count beyond an entry's length: the same
  int ignores = -1;       ///< an elementwise mode that leaves x as it is: wrong where there is one
  std::function<void()> executed = {}; ///< is called ahead of each execution
};

struct State {
  size_t version = 91002;
  std::map<int, std::vector<Config>> configs; ///< by mode of the heuristic
  std::map<int, int> heuristic_results;       ///< by mode: finalizing it comes to this
  std::vector<int> narrow_outs = {12}; ///< types of out that are served of e4m3: that itself, as on Hopper
  std::vector<std::string> complaints;
  int alive = 0;              ///< descriptors that are not destroyed
  std::vector<int> modes;     ///< of elementwise operations, of the graph that was made last
  std::vector<double> values; ///< by-value tensors of all calls
  std::vector<double> maxima; ///< that calls have written of e4m3
};
State& state();
/// Empties the record, and has two configs of mode A, of which the second one needs a workspace.
void reset();

} // namespace fake_cudnn
