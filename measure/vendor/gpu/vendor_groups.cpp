#include "measure/vendor/gpu/vendor_groups.h"

#include "measure/gpu/cuda_groups.h"
#include "measure/vendor/gpu/vendor_product.h"

#include <algorithm>
#include <map>

namespace deepgen::cuda {
namespace {

enum Way : uint64_t { first_choice, fastest, ways };
constexpr size_t kTimed = 8; ///< algorithms for each number of rows

class GroupLoop {
public:
  using Workspace = std::function<Address(uint64_t bytes)>;

  /// Chooses an algorithm for each number of rows that a group of the ring's sets has, before anything is
  /// captured.
  GroupLoop(const VendorPlan& plan, Way way, Bench::Ring& ring, const Workspace& workspace)
      : plan_(plan), way_(way), ring_(ring), problem_(ring.problem()), workspace_(workspace) {
    for (const CallOperands& x : ring.sets())
      for (size_t g = 0; g + 1 < x.in_groups.size(); ++g)
        if (rows_of(x, g) > 0) call_for(x, g);
  }

  void enqueue(const CallOperands& x, Stream stream) {
    for (size_t g = 0; g + 1 < x.in_groups.size(); ++g)
      if (rows_of(x, g) > 0) enqueue(call_for(x, g), operands(x, g), stream);
  }

private:
  struct Call {
    std::shared_ptr<VendorProduct> product;
    Vendor::Algorithm algorithm;
  };

  static int64_t rows_of(const CallOperands& x, size_t group) {
    return x.in_groups[group + 1] - x.in_groups[group];
  }
  CallOperands operands(const CallOperands& x, size_t group) const {
    return group_operands(problem_, x, int64_t(group), x.in_groups[group], rows_of(x, group));
  }
  void enqueue(const Call& call, const CallOperands& x, Stream stream) const {
    call.product->enqueue(call.algorithm, workspace_(call.algorithm.workspace), x, ring_.tools(), stream);
  }

  const Call& call_for(const CallOperands& x, size_t group) {
    const int64_t rows = rows_of(x, group);
    if (auto known = calls_.find(rows); known != calls_.end()) return known->second;
    Call call{VendorProduct::make(group_problem(problem_, rows), plan_, operands(x, group)), {}};
    std::vector<Vendor::Algorithm> algorithms = call.product->algorithms();
    algorithms.resize(std::min<size_t>(algorithms.size(), way_ == fastest ? kTimed : 1));
    Call best;
    double least = 0;
    for (const Vendor::Algorithm& algorithm : algorithms) {
      call.algorithm = algorithm;
      const double seconds = time(call, x, group);
      if (seconds > 0 && (!best.product || seconds < least)) best = call, least = seconds;
    }
    if (!best.product)
      throw DriverError(15, "no algorithm for a group of " + std::to_string(rows) + " rows",
                        "the vendor's library");
    return calls_.emplace(rows, best).first->second;
  }

  /// Seconds of a call, with the matrices of B in turn; 0 when it fails.
  double time(const Call& call, const CallOperands& x, size_t group) const {
    constexpr int kWarmup = 2, kCalls = 8;
    CallOperands one = operands(x, group);
    const Stream stream = ring_.context().stream();
    Event begin = nullptr, end = nullptr; // as the product, never torn down: the process ends
    check(driver()->cuEventCreate(&begin, 0), "creating an event");
    check(driver()->cuEventCreate(&end, 0), "creating an event");
    try {
      for (int i = 0; i < kWarmup + kCalls; ++i) {
        if (i == kWarmup) check(driver()->cuEventRecord(begin, stream), "recording an event");
        const int64_t matrix = (int64_t(group) + i) % problem_.groups;
        one.b.data = x.b.data + uint64_t(matrix * x.b.stride * size_of(problem_.b));
        enqueue(call, one, stream);
      }
    } catch (const DriverError& e) {
      if (e.sticky()) throw;
      return 0; // returned, but not able
    }
    check(driver()->cuEventRecord(end, stream), "recording an event");
    ring_.context().synchronize();
    float milliseconds = 0;
    check(driver()->cuEventElapsedTime(&milliseconds, begin, end), "reading the events");
    return std::max(1e-9, double(milliseconds) * 1e-3 / kCalls);
  }

  const VendorPlan plan_;
  const Way way_;
  Bench::Ring& ring_;
  const Gemm problem_;
  const Workspace workspace_;
  std::map<int64_t, Call> calls_; ///< by rows
};

} // namespace

std::vector<Vendor::Algorithm> group_loops() {
  std::vector<Vendor::Algorithm> all(ways);
  for (uint64_t way = 0; way < ways; ++way) all[way].bits[0] = way;
  all[first_choice].text = "a call a group, the heuristic's first for its rows";
  all[fastest].text = "a call a group, the fastest of the heuristic's first eight for its rows";
  return all;
}

Bench::Enqueue group_loop(const VendorPlan& plan, const Vendor::Algorithm& algorithm, Bench::Ring& ring,
                          const std::function<Address(uint64_t bytes)>& workspace) {
  auto loop = std::make_shared<GroupLoop>(plan, Way(algorithm.bits[0]), ring, workspace);
  return [loop](const CallOperands& x, Stream stream) { loop->enqueue(x, stream); };
}

} // namespace deepgen::cuda
