#include "measure/gpu/cuda_bench.h"

#include "base/json/json.h"
#include "base/kernel/kernel_call.h"
#include "base/text/error.h"
#include "measure/gpu/cuda_ring.h"
#include "measure/gpu/cuda_workplace.h"
#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <thread>

namespace deepgen::cuda {
namespace {

constexpr int64_t kMostSets = 1024, kMostLaunches = 1024, kMostGraphs = 32;
constexpr double kFullSample = 0.8 * kSampleSeconds;
/// In front of each sample: the host enqueues the graph while the device spins. Doubled for a graph that
/// takes longer.
constexpr double kDelay = 200e-6, kLongestDelay = 20e-3;
constexpr int kAttempts = 4; ///< at a sample whose graph came too late
constexpr double kHeatWindow = 0.1, kSteady = 0.005;
constexpr size_t kSteadyWindows = 5;
constexpr double kStartSeconds = 120;
constexpr double kLastSeconds =
    2; ///< 60 rounds of a dozen arms, where a sample takes no longer than it should
constexpr int64_t kAlign = 1024;

int64_t round_up(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

int64_t whole(int64_t count, int64_t kinds) { return (count + kinds - 1) / kinds * kinds; }

} // namespace

int64_t ring_places(int64_t bytes, double flops) {
  constexpr double kMostBandwidth = 4e12, kMostFlops = 1e15, kMostPlaces = 8;
  return int64_t(std::clamp(kSampleSeconds / std::max(double(bytes) / kMostBandwidth, flops / kMostFlops),
                            2.0, kMostPlaces));
}

int64_t ring_sets(int64_t bytes, int64_t workspace, int64_t cache, int64_t memory, int64_t kinds,
                  int64_t least) {
  const int64_t wanted = whole(std::clamp((3 * cache + bytes - 1) / bytes, least, kMostSets), kinds),
                fitting = std::clamp(memory / (bytes + workspace), int64_t(1), wanted);
  return std::max(fitting / kinds * kinds, int64_t(1));
}

int64_t ring_launches(double sample, int64_t sets, double seconds, int64_t kinds) {
  const int64_t enough =
      std::max(int64_t(std::ceil(sample / std::max(seconds, 1e-7))), (sets + kMostGraphs - 1) / kMostGraphs);
  const int64_t wanted = whole(enough, std::min(kinds, sets));
  if (2 * wanted <= sets) return wanted;
  return std::clamp((wanted + sets - 1) / sets, int64_t(1), std::max(kMostLaunches / sets, int64_t(1))) *
         sets;
}

/// Everything on the device that is of one size. Lives in a worker.
class Bench::Open : public Bench::Ring {
public:
  Open(const Problem& p, const Device& device, OpenDevice& on, int64_t workspace, uint64_t seed,
       Caches caches)
      : problem_(p), caches_(caches), cache_(std::max(device.l2, device.l3)), on_(on) {
    size_t free = 0, total = 0;
    check(driver()->cuMemGetInfo(&free, &total), "asking for free memory");
    sets_ = make_sets(p, {*on_.tools, caches, cache_, int64_t(double(free) * 0.7), workspace, seed});
    on_.context.synchronize();
  }
  const Context& context() const override { return on_.context; }
  const Toolbox& tools() const override { return *on_.tools; }
  const RingSets& ring() const override { return *sets_; }
  int64_t cache() const override { return cache_; }
  Caches caches() const override { return caches_; }

  Sampler sampler(const EnqueueSet& enqueue, Regime regime = Regime::sustained) {
    return sampler(
        sets_->count(), [=, this](int64_t set) { enqueue(set, on_.context.stream()); }, sets_->kinds(),
        regime);
  }
  /// Reads `bytes` from a ring of its own.
  Sampler reader(int64_t bytes, uint64_t seed);

  /// Replays the first arm's graph until the clock is steady.
  void settle(double limit) {
    std::deque<double> clocks;
    const double start = wall_seconds();
    while (wall_seconds() - start < limit) {
      const double window = wall_seconds();
      double clock = 0;
      while (wall_seconds() - window < kHeatWindow) {
        const Sample s = sample([this]() -> Replay& { return *heater_; });
        clock =
            s.megahertz > 0 && !on_.smi ? s.megahertz : 1 / s.seconds; // it is the same graph in every window
      }
      clocks.push_back(clock);
      if (clocks.size() > kSteadyWindows) clocks.pop_front();
      const auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
      if (clocks.size() == kSteadyWindows && *high - *low < kSteady * *high) return;
    }
  }

private:
  double elapsed() const {
    on_.context.synchronize();
    float milliseconds = 0;
    check(driver()->cuEventElapsedTime(&milliseconds, on_.begin, on_.end), "reading the events");
    return double(milliseconds) * 1e-3;
  }

  using EnqueueOne = std::function<void(int64_t set)>;
  struct Replay {
    EnqueueOne enqueue; ///< a graph does not keep the code that it launches: this owns it
    int64_t launches;
    Graph graph;
    double delay = kDelay, rest = 0;
    Replay(const EnqueueOne& e, int64_t sets, int64_t first, int64_t count, Stream stream, Regime regime)
        : enqueue(e), launches(count), graph(
                                           stream,
                                           [&] {
                                             for (int64_t i = 0; i < count; ++i) enqueue((first + i) % sets);
                                           },
                                           regime == Regime::serial),
          rest(regime == Regime::bursts ? Bench::burst_rest : 0) {}
  };

  /// `kinds`: of sets, which are timed equally often. A sample begins where the one before ended, whosesoever
  /// that was, or where the next part of the ring of its own size does: so none finds its operands in the
  /// caches.
  Sampler sampler(int64_t sets, const EnqueueOne& enqueue, int64_t kinds, Regime regime) {
    const bool bursts = regime == Regime::bursts;
    const auto launches_for = [&](double seconds) {
      return ring_launches(bursts ? kBurst : kSampleSeconds, sets, seconds, kinds);
    };
    const auto make = [&](int64_t first, int64_t count) {
      return std::make_shared<Replay>(enqueue, sets, first, count, on_.context.stream(), regime);
    };
    int64_t launches = bursts ? burst_launches_ : 0; // all arms have as many in a burst as the first one
    if (!launches) {
      launches = launches_for(
          time_once(sets, enqueue)); // longer than it takes among others, so that the guess is too few
      const auto first = make(0, launches);
      const double seconds = sample([&]() -> Replay& { return *first; }).seconds;
      if (bursts || seconds * double(launches) < kFullSample) launches = launches_for(seconds);
      if (bursts) burst_launches_ = launches;
    }
    std::vector<std::shared_ptr<Replay>> parts;
    for (int64_t first = 0; first == 0 || first + launches <= sets; first += launches)
      parts.push_back(make(first, launches));
    if (!heater_) heater_ = parts.front();
    const auto next = [this, parts, launches]() -> Replay& {
      const size_t part = size_t((next_set_ + launches - 1) / launches) % parts.size();
      next_set_ = int64_t(part + 1) * launches;
      return *parts[part];
    };
    return {[this, next] { return sample(next); }, launches, bursts ? Bench::burst_rest : 0};
  }

  /// The second of two calls: the first one may load code.
  double time_once(int64_t sets, const EnqueueOne& enqueue) {
    enqueue(0);
    on_.context.synchronize();
    on_.tools->spin(on_.reading.address(), kDelay);
    check(driver()->cuEventRecord(on_.begin, on_.context.stream()), "recording an event");
    enqueue(sets - 1);
    check(driver()->cuEventRecord(on_.end, on_.context.stream()), "recording an event");
    return elapsed();
  }

  /// `next` says for each attempt what is replayed: what the one before has read would be in the caches.
  Sample sample(const std::function<Replay&()>& next) {
    Sample s;
    double delay = kDelay;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Replay& replay = next();
      replay.delay = std::max(replay.delay, delay);
      s = sample_once(replay);
      if (s.clean) break;
      delay = replay.delay;
    }
    if (platform() == Platform::hip) return s; // whose delay reads no clock
    ClockReading r;
    check(driver()->cuMemcpyDtoH(&r, on_.reading.address(), sizeof r), "reading the clock");
    if (r.nanoseconds) s.megahertz = double(r.cycles) * 1e3 / double(r.nanoseconds);
    const uint64_t reasons = on_.nvml ? on_.nvml->clock_reasons().value_or(0) : 0;
    s.throttled = reasons & Nvml::disturbing;
    s.capped = reasons & Nvml::power_cap;
    return s;
  }

  /// Not clean when the graph may have come after the delay was over: the device's waiting for it was timed
  /// then.
  Sample sample_once(Replay& replay) {
    if (replay.rest > 0) std::this_thread::sleep_for(std::chrono::duration<double>(replay.rest));
    const double start = wall_seconds();
    on_.tools->spin(on_.reading.address(), replay.delay);
    check(driver()->cuEventRecord(on_.begin, on_.context.stream()), "recording an event");
    replay.graph.launch(on_.context.stream());
    Sample s;
    s.clean = wall_seconds() - start < replay.delay;
    check(driver()->cuEventRecord(on_.end, on_.context.stream()), "recording an event");
    if (on_.smi) { // while it runs
      const RocmSmi::State state = on_.smi->state();
      s.megahertz = state.megahertz, s.throttled = state.throttled, s.capped = state.capped;
    }
    s.seconds = elapsed() / double(replay.launches);
    if (!s.clean) replay.delay = std::min(2 * replay.delay, kLongestDelay);
    return s;
  }

  Problem problem_;
  Caches caches_;
  int64_t cache_;
  OpenDevice& on_;
  std::unique_ptr<const RingSets> sets_;
  std::shared_ptr<Replay> heater_;
  int64_t burst_launches_ = 0, next_set_ = 0;
};

Sampler Bench::Open::reader(int64_t bytes, uint64_t seed) {
  struct Buffers {
    Memory memory, sink;
  };
  size_t free = 0, total = 0;
  check(driver()->cuMemGetInfo(&free, &total), "asking for free memory");
  const int64_t pitch = round_up(bytes),
                sets = ring_sets(pitch, 0, cache_, int64_t(double(free) * 0.7), 1, ring_places(pitch, 0));
  auto buffers = std::make_shared<Buffers>(Buffers{Memory(size_t(sets * pitch)), Memory(16)});
  Array all = shape_of(sets, pitch / size_of(Type::f32), pitch / size_of(Type::f32), 1, 0);
  all.data = buffers->memory.address();
  on_.tools->fill(all, {seed, 0, 1});
  const EnqueueOne read = [=, this](int64_t set) {
    on_.tools->read_all(buffers->memory.address() + uint64_t(set * pitch), size_t(bytes),
                        buffers->sink.address());
  };
  return sampler(sets, read, 1, Regime::sustained);
}

Bench::Bench(const Problem& problem, const Device& device, int64_t workspace, uint64_t seed, Caches caches,
             std::shared_ptr<Workplace> workplace)
    : problem_(problem), device_(device), workspace_(workspace), seed_(seed), caches_(caches),
      workplace_(workplace ? std::move(workplace) : std::make_shared<Workplace>(device)) {
  if (problem.op() == "gemm" && problem.gemm().ranged()) problem_ = problem.gemm().at(problem.gemm().sizes());
}
Bench::~Bench() = default;

Bench::Open& Bench::open() {
  if (!open_)
    open_ = std::make_unique<Open>(problem_, device_, workplace_->open(), workspace_, seed_, caches_);
  return *open_;
}

Bench::Ring& Bench::ring() { return open(); }

const Gemm& Bench::Ring::problem() const { return dynamic_cast<const GemmSets&>(ring()).problem(); }
const std::vector<CallOperands>& Bench::Ring::sets() const {
  return dynamic_cast<const GemmSets&>(ring()).all();
}

Arm Bench::arm(const std::string& name, std::function<Enqueue(Ring&)> prepare) {
  return arm_of_sets(name, [prepare](Ring& ring) -> EnqueueSet {
    return [enqueue = prepare(ring), &sets = ring.sets()](int64_t set, Stream stream) {
      enqueue(sets[size_t(set)], stream);
    };
  });
}

Arm Bench::arm_of_sets(const std::string& name, std::function<EnqueueSet(Ring&)> prepare) {
  Arm a;
  a.name = name;
  // Prepared once for all regimes, in the worker: the vendor's loops over groups choose something there.
  a.make_in_regime = [this, prepare, enqueue = std::make_shared<EnqueueSet>()](Regime regime) {
    if (!*enqueue) *enqueue = prepare(open());
    return open().sampler(*enqueue, regime);
  };
  a.make_sampler = [make = a.make_in_regime] { return make(Regime::sustained); };
  return a;
}

Arm Bench::kernel_arm(const std::string& name, const Kernel& kernel) {
  return arm_of_sets(name, [this, &kernel](Ring& ring) -> EnqueueSet {
    const bool ranged = kernel.problem.op() == "gemm" && kernel.problem.gemm().ranged();
    auto loaded = std::make_shared<LoadedKernel>(
        ranged ? kernel_in_call(kernel, problem_.gemm().sizes()) : kernel, ring.context());
    return [loaded, &sets = ring.ring()](int64_t set, Stream stream) { sets.enqueue(*loaded, set, stream); };
  });
}

std::optional<Arm> Bench::read_arm() {
  if (platform() == Platform::hip) return std::nullopt; // needs a kernel of the measurement's own
  Arm a;
  a.name = "read";
  a.make_sampler = [this] { return open().reader(read_bytes(problem_), seed_); };
  return a;
}

void Bench::complete(RaceOptions& options, double heat) {
  options.start_seconds = kStartSeconds;
  options.settle = [this](double limit) { open().settle(limit); };
  options.settle_seconds = heat;
  options.last_seconds = kLastSeconds;
}

Json environment(const Device& device, const std::string& anchor, const Surroundings& around,
                 const std::vector<ArmResult>& results, Caches caches) {
  std::vector<double> clocks;
  for (const ArmResult& r : results)
    for (const auto& [round, sample] : r.rounds)
      if (sample.megahertz > 0) clocks.push_back(sample.megahertz);
  const auto rounded = [&](double q) { return std::round(quantile(clocks, q)); };
  Json json = {{"device", device.to_json()},
               {"profile", to_string(caches) + "-graph/1"},
               {"tool", "deepgen-measure " DEEPGEN_VERSION},
               {"anchor", anchor},
               {"driver", around.driver},
               {"power_limit_watts", around.power_limit_watts},
               {"other_processes", around.other_processes}};
  if (!around.unwatched.empty()) json["unwatched"] = around.unwatched;
  json["clock_mhz"] = {rounded(0.05), rounded(0.5), rounded(0.95)};
  return json;
}

} // namespace deepgen::cuda
