// The loop over K in which two groups of four waves, one of each on every SIMD, take turns ("ping-pong"):
// while one multiplies, with a higher priority, the other reads its fragments and fetches tiles. One group is
// a barrier ahead of the other.
#include "templates/amd/amd_matrix_block.h"

namespace deepgen {

Value MatrixBlock::in_second_group() { return ir.at_least(ir.wave(), AmdArch::simds); }

/// Between two barriers, in which nothing but matrix instructions happens.
void MatrixBlock::multiply_in_turn(const std::vector<State>& fragments, Values& sums, int64_t copies_left) {
  auto switch_over = [&](int64_t left) { ir.fence_schedule(), barrier(left), ir.fence_schedule(); };
  switch_over(copies_left);
  ir.priority(1);
  Queue nothing;
  for (const State& f : fragments) multiply(f.rows, f.columns, sums, nothing);
  ir.priority(0);
  switch_over(kAllCopies);
}

/// Into the stage of the tile before this one, which the other group has read, too: its turn came after it.
void MatrixBlock::fetch_in_turn(const State& s, State& after, Value left) {
  Queue queue;
  if (t.direct) {
    copy_tile(s, previous_slot(s), queue);
    flush(queue);
    move_on(after, ir.at_least(left, t.stages));
    return;
  }
  write_tile(s, previous_slot(s), queue);
  flush(queue);
  move_on(after, ir.at_least(left, t.ahead() + 1));
  load_tile(after, queue);
  flush(queue);
}

/// One tile; `left`: tiles behind it, null: none.
MatrixBlock::State MatrixBlock::turn(State s, Value left) {
  State after = s;
  const int64_t steps = t.steps / t.turns();
  for (int64_t number = 0; number < t.turns(); ++number) {
    std::vector<State> fragments(static_cast<size_t>(steps));
    Queue queue;
    for (int64_t i = 0; i < steps; ++i) read_step(fragments[size_t(i)], s.slot, number * steps + i, queue);
    flush(queue);
    if (left && number == 0) fetch_in_turn(s, after, left);
    const bool next_wanted = left && number + 1 == t.turns();
    multiply_in_turn(fragments, s.sums, next_wanted ? (t.stages - 2) * t.loads() : kAllCopies);
  }
  after.sums = s.sums;
  next_stage(s, after);
  return after;
}

} // namespace deepgen
