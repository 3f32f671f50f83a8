// Order: what happens before what. Vector clocks (Lamport; FastTrack, Flanagan and Freund, PLDI 2009): an
// agent's clock counts its releases, and a Knowledge says of every agent up to which of its clocks everything
// is known to have happened.
//
// Everything asynchronous is done at once by the simulator and ordered late: a copy that runs on its own is
// an agent of its own, of which a warp knows nothing until it has waited for it. So an access that a GPU
// might make too early is an error at every timing, not only where the data is seen to be missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace deepgen::ptx_sim {

using Agent = uint32_t;

struct Knowledge {
  std::vector<uint32_t> seen;   ///< by agent
  std::vector<uint32_t> fenced; ///< what a fence.proxy.async has made known to the asynchronous proxy

  explicit Knowledge(size_t agents = 0) : seen(agents, 0), fenced(agents, 0) {}
  void join(const Knowledge& other) {
    for (size_t i = 0; i < seen.size(); ++i) {
      seen[i] = std::max(seen[i], other.seen[i]);
      fenced[i] = std::max(fenced[i], other.fenced[i]);
    }
  }
  void learn(Agent agent, uint32_t clock) {
    seen[agent] = std::max(seen[agent], clock);
    fenced[agent] = std::max(fenced[agent], clock);
  }
};

/// Who does an access, and when.
struct Access {
  Agent agent = 0;
  uint32_t clock = 0;
  const Knowledge* known = nullptr;
  bool async_proxy = false; ///< by a bulk copy or wgmma
  uint32_t line = 0;        ///< of the PTX
};

} // namespace deepgen::ptx_sim
