// The end of readings of shared memory that go on beside the warp.
#pragma once

#include "tests/ptx_sim/machine/block.h"

namespace deepgen::ptx_sim {

template <typename Done>
void Warp::finish(std::vector<ReadingGroup>& all, const Access& reader, const Done& done) {
  for (const ReadingGroup& g : all) {
    if (!done(g)) continue;
    const Access begun{agent, clock, &g.begun, true, g.line};
    for (const Reading& r : g.readings) r.block->shared.finish_read(r.offset, r.bytes, begun, reader);
  }
  std::erase_if(all, done);
}

} // namespace deepgen::ptx_sim
