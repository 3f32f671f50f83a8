#include "measure/vendor/gpu/cuda_vendor.h"

#include "base/json/json.h"
#include "base/text/error.h"
#include "measure/process/worker.h"
#include "measure/vendor/gpu/cudnn_attention.h"
#include "measure/vendor/gpu/lt_library.h"
#include "measure/vendor/gpu/vendor_groups.h"
#include "measure/vendor/gpu/vendor_product.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

namespace deepgen::cuda {
namespace {

constexpr uint64_t kPartAlign = 1024;
uint64_t round_up(uint64_t bytes) { return (bytes + kPartAlign - 1) / kPartAlign * kPartAlign; }
constexpr double kProbeSeconds = 180, kTrySeconds = 30; ///< the library loads its kernels when first used
constexpr size_t kMostLost = 4;                         ///< algorithms that crash or hang

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }

/// Of one worker: its arms run one after the other, and share the memory.
class Workspaces {
public:
  explicit Workspaces(int64_t cache) : memory_(size_t(workspace_memory(cache))) {}
  /// Call by call another one: within a graph, and so in its replays.
  Address at(uint64_t call, uint64_t bytes) const {
    return bytes ? memory_.address() +
                       round_up(bytes) * (call % rotating_workspaces(bytes, int64_t(memory_.bytes())))
                 : 0;
  }

private:
  Memory memory_;
};

/// One for all arms of a worker: they run one after the other.
std::shared_ptr<VendorProduct> product_of(const VendorPlan& plan, Bench::Ring& ring) {
  static auto& last =
      *new std::shared_ptr<VendorProduct>; // the process ends without freeing what it has on the device
  static std::string key;
  const std::string wanted = ring.problem().key() + plan.text() + std::to_string(plan.library) +
                             std::to_string(plan.tf32_as_f32) + std::to_string(plan.halves);
  if (!last || key != wanted) last = VendorProduct::make(ring.problem(), plan, ring.operands()), key = wanted;
  return last;
}

/// Another library's algorithms compare with this plan's when both leave the same undone.
bool does_the_same(const VendorPlan& x, const VendorPlan& y) {
  return x.rest == y.rest && x.gate == y.gate && x.scratch == y.scratch;
}

/// What runs of the plan's algorithms, tried one after the other.
std::vector<Vendor::Algorithm> working(const VendorPlan& plan, Bench::Ring& ring,
                                       const std::function<bool()>& may_try) {
  std::vector<Vendor::Algorithm> found;
  for (Vendor::Algorithm algorithm :
       ring.problem().groups ? group_loops() : product_of(plan, ring)->algorithms()) {
    if (!may_try()) continue;
    algorithm.halves = plan.halves;
    if (plan.halves)
      algorithm.text = "a product for each weight" + (algorithm.text.empty() ? "" : ": " + algorithm.text);
    try {
      vendor_call(plan, algorithm, ring)(ring.operands(), ring.context().stream());
    } catch (const DriverError&) {
      continue; // returned, but not able
    }
    ring.context().synchronize();
    found.push_back(algorithm);
  }
  return found;
}

/// Of a plan for both weights at once, the same with a product for each, which may be faster; none where it
/// does not run.
std::vector<Vendor::Algorithm> working_in_halves(VendorPlan plan, Bench::Ring& ring,
                                                 const std::function<bool()>& may_try) {
  if (!plan.gate || plan.library != VendorPlan::lt) return {};
  plan.halves = true;
  try {
    return working(plan, ring, may_try);
  } catch (const DriverError& e) {
    if (e.sticky()) throw;
    return {};
  }
}

/// Why a library cannot be asked; and its name with its version.
std::string why_absent(VendorPlan::Library library) {
  if (library == VendorPlan::lt) return LtLibrary::of_platform().why_not;
  return why_no_rocblas();
}
std::string name_of(VendorPlan::Library library) {
  return library == VendorPlan::lt ? LtLibrary::of_platform().version : rocblas_version();
}

} // namespace

std::string VendorPlan::text() const {
  std::string fused;
  const auto add = [&](bool has, const char* name) {
    if (has) fused += (fused.empty() ? "" : "+") + std::string(name);
  };
  add(fused_scales, "scales"), add(fused_bias, "bias"), add(fused_residual, "residual");
  add(activation == LtFusion::relu, "relu"), add(activation == LtFusion::gelu_tanh, "gelu_tanh");
  std::string out = fused.empty() ? "" : "fused " + fused;
  if (!separate()) return out;
  return out +
         (out.empty() ? ""
          : alone     ? ", "
                      : ", then ") +
         (alone ? "without " : "an elementwise kernel of ours for ") + left();
}

std::string VendorPlan::left() const {
  std::string text = gate ? "the gate" : "";
  if (!rest.empty()) text += (text.empty() ? "" : ", ") + epilogue_text(rest);
  return separate() && text.empty() ? "the conversion" : text;
}

VendorPlan plan_vendor(const Gemm& p, bool fuse) {
  VendorPlan plan;
  plan.rest = p.epilogue;
  plan.alone = platform() == Platform::hip;
  if ((is_fp8(p.a) || is_fp8(p.b)) && p.layout != Layout::nt && platform() == Platform::cuda)
    plan.why_not = "cuBLASLt multiplies 8-bit floats in layout nt alone";
  if (p.gate) {
    plan.gate = p.gate, plan.scratch = true;
    return plan;
  }
  if (p.a == Type::i8) {
    const bool to_i8 = fuse && p.d == Type::i8 && p.epilogue.empty() && platform() == Platform::cuda;
    plan.scratch = p.d != Type::i32 && !to_i8;
    return plan;
  }
  if (!fuse) return plan;
  const LtFusion fusion = fuse_lt(p);
  plan.fused_scales = fusion.scales, plan.fused_bias = fusion.bias, plan.fused_residual = fusion.residual;
  plan.activation = fusion.activation, plan.rest = fusion.rest;
  return plan;
}

VendorPlan plan_rocblas(const Gemm& p) {
  VendorPlan plan = plan_vendor(p, false);
  plan.library = VendorPlan::rocblas;
  if (is_fp8(p.a) || is_fp8(p.b)) plan.why_not = "rocBLAS has no 8-bit floats";
  plan.tf32_as_f32 = p.a == Type::tf32;
  if (!plan.scratch && !plan.rest.empty() && plan.rest.front() == EpilogueOp::residual &&
      p.epilogue_type() == p.d)
    plan.fused_residual = true, plan.rest.erase(plan.rest.begin());
  return plan;
}

std::vector<VendorPlan> vendor_plans(const Gemm& p) {
  std::vector<VendorPlan> plans;
  for (bool fuse : {true, false}) {
    plans.push_back(plan_vendor(p, fuse));
    if (platform() == Platform::cuda || p.a != Type::tf32) continue;
    plans.push_back(plans.back());
    plans.back().tf32_as_f32 = true;
  }
  if (platform() == Platform::hip) plans.push_back(plan_rocblas(p));
  return plans;
}

int64_t workspace_memory(int64_t cache) { return std::max(3 * cache, int64_t(2 * vendor_workspace)); }

uint64_t rotating_workspaces(uint64_t bytes, int64_t memory) {
  constexpr uint64_t kMost = 1024;
  return std::clamp(uint64_t(memory) / round_up(bytes), uint64_t(1), kMost);
}

Bench::Enqueue vendor_call(const VendorPlan& plan, const Vendor::Algorithm& algorithm, Bench::Ring& ring) {
  const bool other = algorithm.library != plan.library; // rocBLAS, beside hipBLASLt
  VendorPlan used = other ? plan_rocblas(ring.problem()) : plan;
  used.halves = algorithm.halves;
  static const Workspaces& workspaces = *new Workspaces(ring.cache()); // as above
  const uint64_t step = ring.caches() == Caches::cold ? 1 : 0;
  if (ring.problem().groups)
    return group_loop(used, algorithm, ring, [step, calls = uint64_t(0)](uint64_t bytes) mutable {
      return workspaces.at(std::exchange(calls, calls + step), bytes);
    });
  auto product = product_of(used, ring);
  return [product, algorithm, step, calls = uint64_t(0), &tools = ring.tools()](const CallOperands& x,
                                                                                Stream stream) mutable {
    product->enqueue(algorithm, workspaces.at(std::exchange(calls, calls + step), algorithm.workspace), x,
                     tools, stream);
  };
}

namespace {

void append(std::vector<Vendor::Algorithm>& all, const std::vector<Vendor::Algorithm>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

Vendor ask(Bench::Ring& ring, const std::function<bool(int)>& may_try) {
  Vendor v;
  int number = 0;
  const auto try_next = [&] { return may_try(number++); };
  std::string why_not;
  for (const VendorPlan& plan : vendor_plans(ring.problem())) {
    v.plan = plan;
    v.why_not = plan.why_not.empty() ? why_absent(plan.library) : plan.why_not;
    if (v.why_not.empty()) try {
        v.algorithms = working(plan, ring, try_next);
        append(v.algorithms, working_in_halves(plan, ring, try_next));
      } catch (const DriverError& e) {
        if (e.sticky()) throw;
        v.why_not = e.what();
      }
    if (!v.algorithms.empty()) break;
    if (v.why_not.empty()) v.why_not = name_of(plan.library) + " has no algorithm for this problem";
    if (why_not.find(v.why_not) == std::string::npos) why_not += (why_not.empty() ? "" : "; ") + v.why_not;
  }
  v.name = name_of(v.plan.library);
  v.why_not = v.algorithms.empty() ? why_not : "";
  if (v.algorithms.empty() || platform() == Platform::cuda || v.plan.library == VendorPlan::rocblas) return v;
  const VendorPlan other = plan_rocblas(ring.problem());
  if (!other.why_not.empty() || !does_the_same(other, v.plan) || !why_absent(VendorPlan::rocblas).empty())
    return v;
  try {
    const std::vector<Vendor::Algorithm> more = working(other, ring, try_next);
    append(v.algorithms, more);
    if (!more.empty()) v.name += ", " + rocblas_version();
  } catch (const DriverError& e) { // the first library's stand
    if (e.sticky()) throw;
  }
  return v;
}

} // namespace

Vendor ask_vendor(Bench::Ring& ring, const std::function<bool(int)>& may_try) {
  Vendor v = ask(ring, may_try);
  // Whoever reads its times is to know: they are less than what the problem takes.
  if (!v.algorithms.empty() && v.plan.alone && v.plan.separate()) v.name += " without " + v.plan.left();
  return v;
}

namespace {

Json to_json(const Vendor& found, const std::vector<VendorPlan>& plans) {
  Json algorithms = Json::array();
  for (const Vendor::Algorithm& a : found.algorithms)
    algorithms.push_back({{"bits", a.bits},
                          {"workspace", a.workspace},
                          {"text", a.text},
                          {"library", int(a.library)},
                          {"halves", a.halves}});
  size_t plan = 0;
  while (plan + 1 < plans.size() &&
         (plans[plan].library != found.plan.library || plans[plan].text() != found.plan.text() ||
          plans[plan].tf32_as_f32 != found.plan.tf32_as_f32))
    ++plan;
  return {{"name", found.name},
          {"why_not", found.why_not},
          {"algorithms", algorithms},
          {"left_out", found.left_out},
          {"plan", plan}};
}

void from_json(const Json& m, const std::vector<VendorPlan>& plans, Vendor& v) {
  v.name = m.value("name", v.name), v.why_not = m.value("why_not", "");
  for (const Json& a : m.value("algorithms", Json::array()))
    v.algorithms.push_back({a.at("bits").get<AlgorithmBits>(), a.at("workspace").get<uint64_t>(),
                            a.at("text").get<std::string>(), VendorPlan::Library(a.at("library").get<int>()),
                            a.at("halves").get<bool>()});
  v.left_out = m.value("left_out", v.left_out);
  v.plan = plans.at(m.value("plan", size_t(0)));
}

/// Asks in a worker; in another one where an algorithm crashes or hangs. `v`: what is known without an
/// answer.
Vendor asked_in_workers(Vendor v, const std::vector<VendorPlan>& plans,
                        const std::function<Vendor(const std::function<bool(int)>& may_try)>& ask_now) {
  std::set<int> lost;
  std::optional<int> trying;
  const auto ask = [&](Channel& channel) {
    channel.step("asking the vendor's library", kProbeSeconds);
    const auto may_try = [&](int number) {
      channel.send({{"trying", number}});
      channel.step("an algorithm of the vendor's library", kTrySeconds);
      return !lost.count(number);
    };
    try {
      channel.send(to_json(ask_now(may_try), plans));
    } catch (const DriverError& e) {
      channel.send({{"name", v.name}, {"why_not", e.what()}});
      if (e.sticky()) std::_Exit(0); // the context is lost
    }
  };
  const auto on_message = [&](const Json& m) {
    if (m.contains("trying"))
      trying = m.value("trying", 0);
    else
      from_json(m, plans, v);
  };
  while (true) {
    trying.reset();
    const WorkerEnd end = run_worker(ask, on_message);
    if (end.kind == WorkerEnd::done) return v;
    if (!trying || lost.size() == kMostLost) {
      v.why_not = v.name + " failed: " + (v.why_not.empty() ? end.detail : v.why_not), v.algorithms.clear();
      return v;
    }
    lost.insert(*trying), v.why_not.clear();
  }
}

} // namespace

Vendor baseline_of(const Problem& problem, const Device& device, uint64_t seed) {
  if (problem.op() == "gemm") return find_vendor(problem.gemm(), device, seed);
  if (problem.op() == "attention" && platform() == Platform::cuda)
    return find_cudnn(problem.attention(), device, seed);
  Vendor none;
  none.name.clear(), none.why_not = "no library of the vendor's that is asked here computes " + problem.op();
  return none;
}

Vendor find_vendor(const Gemm& problem, const Device& device, uint64_t seed) {
  Vendor v;
  if (platform() == Platform::hip) v.name = "hipblaslt";
  Bench bench(problem, device, 0, seed);
  return asked_in_workers(v, vendor_plans(problem),
                          [&](const auto& may_try) { return ask_vendor(bench.ring(), may_try); });
}

Vendor find_cudnn(const Attention& problem, const Device& device, uint64_t seed) {
  Vendor v;
  v.name = "cudnn", v.plan.library = VendorPlan::cudnn, v.why_not = why_no_cudnn(problem);
  if (!v.why_not.empty()) return v;
  Bench bench(problem, device, 0, seed);
  return asked_in_workers(
      v, {v.plan}, [&](const auto& may_try) { return ask_cudnn(bench.ring(), device.arch, seed, may_try); });
}

std::vector<Arm> vendor_arms(const Vendor& vendor, Bench& bench) {
  std::vector<Arm> arms;
  for (const Vendor::Algorithm& algorithm : vendor.algorithms) {
    const std::string name = vendor.name + " algorithm " + std::to_string(arms.size()) +
                             (algorithm.text.empty() ? "" : " (" + algorithm.text + ")");
    if (vendor.plan.library == VendorPlan::cudnn)
      arms.push_back(
          bench.arm_of_sets(name, [algorithm](Bench::Ring& ring) { return cudnn_call(algorithm, ring); }));
    else
      arms.push_back(bench.arm(name, [plan = vendor.plan, algorithm](Bench::Ring& ring) {
        return vendor_call(plan, algorithm, ring);
      }));
  }
  return arms;
}

} // namespace deepgen::cuda
