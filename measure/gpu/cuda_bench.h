// Timing on a GPU, profile "cold-graph/1" (or "weights-cold-graph/1", "warm-graph/1"): a sample is the replay
// of a graph of launches that rotate over sets of operands, together larger than the caches, between two
// events; divided by the number of launches. What a call launches besides its main kernel counts.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"
#include "base/search/record.h"
#include "measure/gpu/cuda_launch.h"
#include "measure/gpu/surroundings.h"
#include "measure/race/options.h"
#include "measure/race/race.h"

#include <functional>
#include <memory>
#include <optional>

namespace deepgen::cuda {

class RingSets;
class Toolbox;
class Workplace;

/// Sets at least, though fewer would not stay in the cache: places in memory. Which channels and slices of
/// the cache operands fall to makes kernels whose operands stream faster or slower, each of them otherwise,
/// by up to 4 % (1 to 64 rows on an H200). 2 to 8, as many as a sample has room for on a device of 4 TB/s and
/// 1 PFLOP/s.
int64_t ring_places(int64_t bytes, double flops);
/// Sets of operands for three times the cache: `least` to 1024, but no more than fit into `memory`, each with
/// a `workspace`. That does not make up for operands: other kernels do not touch it. As many of each of so
/// many `kinds`, which take turns in the ring, here and below: where but one set fits, it is of the first
/// kind.
int64_t ring_sets(int64_t set_bytes, int64_t workspace, int64_t cache, int64_t memory, int64_t kinds = 1,
                  int64_t least = 2);
constexpr double kSampleSeconds = 2.5e-3, kBurst = 1e-3;
/// Launches in a sample (or burst) that should take `sample` seconds, where a call takes `seconds`: as many
/// as that has room for, where two such samples fit into a turn of the ring; samples take turns with the sets
/// then, at most 32 of them. Else whole turns, as far as 1024 launches do. So no sample finds in the caches
/// what the one before it left.
int64_t ring_launches(double sample, int64_t sets, double seconds, int64_t kinds = 1);

/// A, B, D and what the epilogue reads of D's shape.
int64_t set_bytes(const Gemm&);
/// What the reading kernel reads beside a problem: the larger of A and B, which has both weights of a gated
/// problem; of rows as many bytes as a call moves, in either direction.
int64_t read_bytes(const Problem&);

class Bench {
public:
  /// `workspace`: of the kernel that needs most. Nothing touches the device before the first arm is made.
  /// With ranges calls are of the largest sizes; on the problem at given sizes kernels of the problem with
  /// ranges are timed, too. `workplace`: one that benches of other sizes use before it, or of its own.
  Bench(const Problem& problem, const Device& device, int64_t workspace, uint64_t seed,
        Caches caches = Caches::cold, std::shared_ptr<Workplace> workplace = nullptr);
  ~Bench();
  Bench(const Bench&) = delete;

  Arm kernel_arm(const std::string& name, const Kernel& kernel);
  /// What else can be timed on the operands of a matrix product: `prepare` is called in the worker and
  /// returns what enqueues a call on the operands of one set.
  using Enqueue = std::function<void(const CallOperands&, Stream)>;
  class Ring; ///< the worker's
  Arm arm(const std::string& name, std::function<Enqueue(Ring&)> prepare);
  /// The same of any problem, on a set of the ring by its number.
  using EnqueueSet = std::function<void(int64_t set, Stream)>;
  Arm arm_of_sets(const std::string& name, std::function<EnqueueSet(Ring&)> prepare);

  Ring& ring(); ///< for use in a worker; opened when first needed
  /// Reads a buffer of read_bytes() from a ring of its own: what the memory gives at best for that size.
  /// Empty on AMD's devices.
  std::optional<Arm> read_arm();
  /// Fills in what a race on this device needs: time for the start, and pre-heating until the clock is
  /// steady, for `heat` seconds at most: rounds pair their samples, so that a drift matters little where the
  /// candidates differ much; the finals begin with rounds that do not count, and at the hold-out the device
  /// is hot from them. A race that follows another one by half a second, at another size, needs less yet.
  static constexpr double brief_heat = 0.6, full_heat = 1.5, again_heat = 0.6, kept_heat = 0.15;
  void complete(RaceOptions& options, double heat);
  static constexpr double burst_rest = 30e-3; ///< seconds ahead of each sample in bursts

  class Ring {
  public:
    virtual ~Ring() = default;
    virtual const Context& context() const = 0;
    virtual const Toolbox& tools() const = 0;
    virtual const RingSets& ring() const = 0;
    // Of a matrix product:
    const Gemm& problem() const;
    const CallOperands& operands() const { return sets().front(); }
    const std::vector<CallOperands>& sets() const;
    virtual int64_t cache() const = 0; ///< bytes of the device's last-level cache
    virtual Caches caches() const = 0;
  };

private:
  class Open;
  Open& open(); ///< in the worker, when first needed
  Problem problem_;
  Device device_;
  int64_t workspace_;
  uint64_t seed_;
  Caches caches_;
  std::shared_ptr<Workplace> workplace_;
  std::unique_ptr<Open> open_;
};

/// The first line of a log. `results`: for the clock at which the samples were taken.
Json environment(const Device& device, const std::string& anchor, const Surroundings& around,
                 const std::vector<ArmResult>& results, Caches caches = Caches::cold);

} // namespace deepgen::cuda
