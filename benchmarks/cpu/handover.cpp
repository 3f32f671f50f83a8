// What a call of several threads costs beside its work: the runtime's own pool, on tasks of known length.
// Needs a C++20 compiler and nothing else; scripts/benchmark/benchmark-handover.sh builds and runs it.
//   handover FILE [threads ...]       raw samples to FILE, the table to stdout; default: 2, 4, 8, ... and all
//   CPUs
#include "rounds.h"
#include "runtime/core/cpus.h"
#include "runtime/core/pool.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deepgen/runtime.h>
#include <set>
#include <thread>

namespace {

constexpr int kRounds = 31, kCalls = 2000, kAfterRest = 20;
constexpr int64_t kSteps = 4000; ///< of a task: some 4 us

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A chain that neither a compiler nor a core shortens.
void work(void* steps, int) {
  uint64_t x = 1;
  for (int64_t i = 0; i < *static_cast<int64_t*>(steps); ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(x));
  }
}

/// Seconds of a call of as many tasks as there are threads, each of so many steps; of one task where
/// `threads` is 1. With `rest`, calls come so many seconds apart, beyond the time for which threads spin.
double of_call(int threads, int64_t steps, double rest = 0) {
  const int calls = rest > 0 ? kAfterRest : kCalls;
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    if (rest > 0) std::this_thread::sleep_for(std::chrono::duration<double>(rest));
    if (i == 0 || rest > 0) sum -= seconds();
    if (threads == 1)
      work(&steps, 0);
    else if (!deepgen::pool::run(threads, work, &steps))
      std::abort();
    if (i == calls - 1 || rest > 0) sum += seconds();
  }
  return sum / calls;
}

/// Each sample beside one task alone, in the same round.
void measure(int threads, Samples& csv) {
  if (deepgen_set_num_threads(threads)) std::abort();
  of_call(threads, kSteps); // threads start
  std::vector<Timed> arms(4);
  arms[0].arm.name = "empty", arms[1].arm.name = "work", arms[2].arm.name = "alone",
  arms[3].arm.name = "rested";
  time_in_rounds(arms, kRounds, [&](const Timed& t) {
    if (t.arm.name == "empty") return of_call(threads, 0);
    if (t.arm.name == "work") return of_call(threads, kSteps);
    if (t.arm.name == "alone") return of_call(1, kSteps);
    return of_call(threads, kSteps, 0.002);
  });
  csv.add(std::to_string(threads), arms);
  const auto beyond = [&](size_t arm) {
    std::vector<double> more;
    for (size_t i = 0; i < arms[arm].seconds.size(); ++i)
      more.push_back(1e6 * (arms[arm].seconds[i] - (arm ? arms[2].seconds[i] : 0)));
    char text[100];
    std::snprintf(text, sizeof text, "%.2f [%.2f, %.2f]", quantile(more, 0.5), quantile(more, 0.25),
                  quantile(more, 0.75));
    return std::string(text);
  };
  std::printf("| %d | %s | %s | %s | %.2f |\n", threads, beyond(1).c_str(), beyond(0).c_str(),
              beyond(3).c_str(), 1e6 * quantile(arms[2].seconds, 0.5));
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s FILE [threads ...]\n", argv[0]), 1;
  Samples csv(argv[1], "threads");
  const int cpus = deepgen::cpus::usable();
  std::set<int> counts;
  for (int i = 2; i < argc; ++i) counts.insert(std::atoi(argv[i]));
  if (counts.empty()) {
    for (int n = 2; n < cpus; n *= 2) counts.insert(n);
    if (cpus > 1) counts.insert(cpus);
  }
  std::printf("Microseconds beyond one task, of a call with a task for each thread: median and quartiles of "
              "%d rounds.\n\n"
              "| threads | calls in a row | without work | 2 ms after the last | a task |\n"
              "| --- | --- | --- | --- | --- |\n",
              kRounds);
  for (int threads : counts) {
    if (threads < 2 || threads > cpus) {
      std::fprintf(stderr, "%d threads: this process may use %d CPUs\n", threads, cpus);
      return 1;
    }
    measure(threads, csv);
  }
  return csv.good() && !counts.empty() ? 0 : 1;
}
