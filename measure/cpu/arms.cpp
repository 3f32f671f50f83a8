#include "measure/cpu/arms.h"

#include "base/text/error.h"
#include "measure/cpu/thread_call.h"
#include "runtime/core/cpus.h"

#include <memory>

namespace deepgen {
namespace {

/// Threads that take turns on a CPU would time the scheduler.
void check_cpus(const Kernel& kernel, int threads) {
  if (const int cpus = cpus::usable(); cpus < threads)
    throw Error("this host has fewer CPUs than the problem has threads", kernel.problem.key(),
                std::to_string(cpus) + " CPUs for this process, by its affinity and its cgroups' quotas",
                "tune on a host with " + std::to_string(threads) +
                    " of them and build here with its lock, or pass a smaller THREADS");
}

} // namespace

Arm kernel_arm(const std::string& name, const Kernel& kernel, const TimingOperands& operands) {
  if (const int threads = shared_by(kernel.problem); threads > 1) {
    check_cpus(kernel, threads);
    return {.name = name,
            .make = [&kernel, &operands, threads]() -> std::function<void()> {
              operands.touch();
              auto call = std::make_shared<ThreadCall>(kernel, operands.values(), threads);
              return [call] { call->run(); };
            },
            .threads = threads,
            .start = [threads] { ThreadCall::start(threads); }};
  }
  return {name, [&kernel, &operands]() -> std::function<void()> {
            auto loaded = std::make_shared<LoadedKernel>(kernel);
            operands.touch();
            const SlotValues values = operands.values();
            return [loaded, block = loaded->arguments(values, loaded->full_range(values))] {
              loaded->call(block);
            };
          }};
}

} // namespace deepgen
