#include "tests/amd_sim/machine/launch.h"

#include "tests/amd_sim/machine/workgroup.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace deepgen::amd_sim {
namespace {

using ptx_sim::Fault;
using ptx_sim::GlobalMemory;

int64_t product(const std::array<int64_t, 3>& x) { return x[0] * x[1] * x[2]; }

std::array<uint32_t, 3> place(int64_t index, const std::array<int64_t, 3>& size) {
  return {uint32_t(index % size[0]), uint32_t(index / size[0] % size[1]),
          uint32_t(index / size[0] / size[1])};
}

std::vector<uint8_t> lay_out(const Program& program, const std::vector<std::vector<uint8_t>>& arguments) {
  if (program.parameters.size() != arguments.size())
    throw Fault("the kernel has " + std::to_string(program.parameters.size()) + " parameters, the call " +
                std::to_string(arguments.size()));
  std::vector<uint8_t> bytes(program.kernarg_bytes);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& p = program.parameters[i];
    if (p.bytes != arguments[i].size())
      throw Fault("parameter " + std::to_string(i) + " has " + std::to_string(p.bytes) +
                  " bytes, the argument " + std::to_string(arguments[i].size()));
    std::copy(arguments[i].begin(), arguments[i].end(), bytes.begin() + p.offset);
  }
  return bytes;
}

class Grid {
public:
  Grid(const Program& program, const LaunchShape& shape, const std::vector<uint8_t>& kernarg,
       GlobalMemory& memory, uint64_t seed)
      : shape_(shape), random_(seed), threads_(uint32_t(product(shape.block))),
        waves_(int((threads_ + uint32_t(program.chip.wave) - 1) / uint32_t(program.chip.wave))),
        group_(program, memory, kernarg, program.lds_bytes + uint32_t(shape.shared), waves_) {
    for (int w = 0; w < waves_; ++w) group_.waves.push_back(std::make_unique<Wave>(group_, w, waves_));
    for (size_t i = 0; i < 3; ++i) group_.size[i] = uint32_t(shape.block[i]);
    all_ = ptx_sim::Knowledge(size_t(2 * waves_));
  }

  void run() {
    std::vector<int64_t> all(size_t(product(shape_.grid)));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random_);
    for (int64_t g : all) {
      start(g);
      schedule();
      finish();
    }
  }

  Report report() const {
    Report r;
    for (const auto& [in, count] : group_.lds.banks())
      r.lds.push_back(
          {group_.program.describe(*in), count.write, count.bytes, count.accesses, count.factor()});
    r.matrix_operations = group_.matrix_operations;
    return r;
  }

private:
  void start(int64_t number) {
    group_.index = place(number, shape_.grid);
    group_.lds.start_group();
    group_.sum = ptx_sim::Knowledge(size_t(2 * waves_));
    for (auto& w : group_.waves) {
      w->known.join(all_);
      w->who = uint32_t(number * 1024 + w->index + 1);
      w->start(threads_);
      set_registers(*w);
    }
  }

  void set_registers(Wave& w) {
    const Program& p = group_.program;
    for (size_t d = 0; d < 3; ++d) {
      w.compute(p.workitem[d], 0, [&](int l) { return place(w.index * w.lanes + l, shape_.block)[d]; });
      w.compute(p.workgroup[d], 0, [&](int) { return group_.index[d]; });
    }
    for (const Parameter& parameter : p.parameters)
      for (uint32_t c = 0; c < parameter.value.count; ++c) {
        uint64_t x = 0;
        std::memcpy(&x, &group_.kernarg[parameter.offset + parameter.pieces[c].offset],
                    parameter.pieces[c].bytes);
        w.compute(parameter.value, c, [x](int) { return x; });
      }
  }

  void schedule() {
    std::vector<Wave*> order;
    for (auto& w : group_.waves) order.push_back(w.get());
    while (true) {
      std::shuffle(order.begin(), order.end(), random_);
      bool progress = false, done = true;
      for (Wave* w : order) {
        if (w->state == Wave::State::ready) run(*w), progress = true;
        done &= w->state == Wave::State::done;
      }
      if (done) return;
      if (!progress) throw Fault("deadlock at a barrier");
    }
  }

  void run(Wave& w) {
    try {
      w.run();
    } catch (const Fault& f) {
      const auto& at = group_.index;
      throw Fault(std::string(f.what()) + "\n  in workgroup " + std::to_string(at[0]) + "," +
                  std::to_string(at[1]) + "," + std::to_string(at[2]) + " wave " + std::to_string(w.index) +
                  (w.at ? ": " + group_.program.describe(*w.at) : ""));
    }
  }

  void finish() {
    for (auto& w : group_.waves) {
      all_.learn(w->agent, w->lds_done = w->lds_clock);
      all_.learn(w->copies, w->memory_done = w->memory_clock);
    }
  }

  const LaunchShape& shape_;
  std::mt19937_64 random_;
  const uint32_t threads_;
  const int waves_;
  Workgroup group_;
  ptx_sim::Knowledge all_;
};

} // namespace

void Workgroup::signal(Wave& w) {
  if (program.chip.waits_at_barrier) w.wait({0, 0});
  w.order_lanes();
  sum.join(w.published());
}

void Workgroup::await(Wave& w) {
  w.order_lanes();
  w.state = Wave::State::waiting;
  release_when_all_are_here();
}

void Workgroup::release_when_all_are_here() {
  for (const auto& w : waves)
    if (w->state == Wave::State::ready) return;
  for (const auto& w : waves) {
    if (w->state != Wave::State::waiting) continue;
    w->known.join(sum);
    w->state = Wave::State::ready;
  }
  sum = ptx_sim::Knowledge(2 * waves.size());
}

Report run_launch(const std::string& ir, const std::string& arch, const LaunchShape& shape,
                  const std::vector<std::vector<uint8_t>>& arguments, GlobalMemory& memory, uint64_t seed) {
  return run_launch(Program(ir, shape.entry, Chip(arch)), shape, arguments, memory, seed);
}

Report run_launch(const Program& program, const LaunchShape& shape,
                  const std::vector<std::vector<uint8_t>>& arguments, GlobalMemory& memory, uint64_t seed) {
  if (program.most_threads && product(shape.block) > int64_t(program.most_threads))
    throw Fault("the kernel is made for workgroups of up to " + std::to_string(program.most_threads) +
                " threads, not of " + std::to_string(product(shape.block)));
  const std::vector<uint8_t> kernarg = lay_out(program, arguments);
  memory.start_launch();
  Grid grid(program, shape, kernarg, memory, seed);
  grid.run();
  return grid.report();
}

} // namespace deepgen::amd_sim
