#include "measure/cuda_vendor.h"

#include "base/error.h"
#include "measure/cuda_operands.h"
#include "measure/cuda_values.h"
#include "measure/worker.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <optional>
#include <set>

namespace deepgen::cuda {
namespace {

constexpr size_t kWorkspace = size_t(64) << 20;
constexpr int kAskFor = 64;
constexpr uint64_t kAlign = 1024;
uint64_t round_up(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
constexpr double kProbeSeconds = 180, kTrySeconds = 30; ///< the library loads its kernels when first used
constexpr size_t kMostLost = 4;                         ///< algorithms that crash or hang

// cublasLt.h, cublas_api.h, library_types.h
enum Attribute {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScaleA = 17,
  kScaleB = 18,
  kFastAccum = 25,
  kBiasType = 26
};
enum LayoutAttribute { kBatchCount = 5, kBatchStride = 6 };
enum Epilogue { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };
constexpr int kMaxWorkspace = 1;
/// cublasLtMatmulAlgoConfigAttributes_t
enum ConfigAttribute { kId = 0, kTile = 1, kSplitK = 2, kStages = 6 };
using AlgorithmBits = std::array<uint64_t, 8>;
struct Heuristic {
  AlgorithmBits algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Library {
  int (*create)(void**);
  int (*desc_create)(void**, int, int);
  int (*desc_set)(void*, int, const void*, size_t);
  int (*layout_create)(void**, int, uint64_t, uint64_t, int64_t);
  int (*layout_set)(void*, int, const void*, size_t);
  int (*preference_create)(void**);
  int (*preference_set)(void*, int, const void*, size_t);
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                void*, void*, void*, const AlgorithmBits*, void*, size_t, Stream);
  int (*config_get)(const AlgorithmBits*, int, void*, size_t, size_t*);
  size_t (*version)();

  /// Null when no cuBLASLt is found. Only for workers: it starts the driver.
  static const Library* open() {
    static Library table;
    static const bool loaded = table.load();
    return loaded ? &table : nullptr;
  }

private:
  bool load() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (const char* folder :
         {"/usr/local/cuda/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.12"})
      if (!library) library = dlopen(folder, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    bool complete = true;
    const auto find = [&](auto& slot, const char* symbol) {
      slot = reinterpret_cast<std::decay_t<decltype(slot)>>(dlsym(library, symbol));
      complete = complete && slot;
    };
    find(create, "cublasLtCreate"), find(version, "cublasLtGetVersion");
    find(desc_create, "cublasLtMatmulDescCreate"), find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(layout_create, "cublasLtMatrixLayoutCreate"), find(layout_set, "cublasLtMatrixLayoutSetAttribute");
    find(preference_create, "cublasLtMatmulPreferenceCreate");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic"), find(matmul, "cublasLtMatmul");
    find(config_get, "cublasLtMatmulAlgoConfigGetAttribute");
    return complete;
  }
};

void check_lt(int code, const char* call) {
  if (code != 0) throw DriverError(code, "cuBLAS status " + std::to_string(code), call);
}

/// cudaDataType
int data_type(Type t) {
  switch (t) {
  case Type::f64:
    return 1;
  case Type::f16:
    return 2;
  case Type::bf16:
    return 14;
  case Type::e4m3:
    return 28;
  case Type::e5m2:
    return 29;
  case Type::i8:
    return 3;
  case Type::i32:
    return 10;
  default:
    return 0; // f32, and tf32, which is f32 in memory
  }
}

/// cublasComputeType_t
int compute_type(Type input) {
  switch (input) {
  case Type::f64:
    return 70;
  case Type::tf32:
    return 77;
  case Type::i8:
    return 72;
  default:
    return 68;
  }
}

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }

std::string version_text(size_t version) { // 130100 -> 13.1.0; before 13: 120803 -> 12.8.3
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// What the library calls an algorithm; of what it does not tell, nothing.
std::string text_of(const AlgorithmBits& algorithm) {
  std::string text;
  for (auto [name, attribute] : {std::pair{"id", kId}, {"tile", kTile}, {"stages", kStages}, {"split-K", kSplitK}}) {
    int32_t value = 0;
    size_t written = 0;
    if (Library::open()->config_get(&algorithm, attribute, &value, sizeof value, &written) == 0)
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(value);
  }
  return text;
}

/// One matrix multiplication, set up once. Lives in a worker and is never torn down: the process ends.
class Multiplication {
public:
  Multiplication(const Problem& p, const VendorPlan& plan, const CallOperands& x) : problem_(p), plan_(plan) {
    const Library& lt = *Library::open();
    output_ = plan.scratch && p.a == Type::i8 ? Type::i32 : p.d;
    unscaled_ = plan.scratch && p.a == Type::i8;
    const bool integer = output_ == Type::i32;
    scale_type_ = integer ? Type::i32 : p.d == Type::f64 ? Type::f64 : Type::f32;
    check_lt(lt.create(&handle_), "cublasLtCreate");
    check_lt(lt.desc_create(&desc_, compute_type(p.a), data_type(scale_type_)), "cublasLtMatmulDescCreate");
    set(kTransA, int32_t(p.b_transposed())), set(kTransB, int32_t(p.a_transposed()));
    if (is_fp8(p.a)) set(kFastAccum, int8_t(1));
    int32_t epilogue = plan.activation == VendorPlan::relu        ? kRelu
                       : plan.activation == VendorPlan::gelu_tanh ? kGelu
                                                                  : 0;
    if (plan.fused_bias) epilogue |= kBias, set(kBiasType, int32_t(data_type(p.epilogue_type())));
    set(kEpilogue, epilogue ? epilogue : int32_t(kDefault));
    point(x);
    b_ = layout(p.b, x.b), a_ = layout(p.a, x.a);
    if (plan.scratch) scratch_ = Memory(size_t(p.m * p.sum_columns() * p.batch * size_of(output_)));
    d_ = layout(output_, product(x));
    c_ = plan.fused_residual ? layout(p.epilogue_type(), x.residual) : d_;
  }

  std::vector<Vendor::Algorithm> algorithms() const {
    const Library& lt = *Library::open();
    void* preference = nullptr;
    check_lt(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    check_lt(lt.preference_set(preference, kMaxWorkspace, &kWorkspace, sizeof kWorkspace),
             "cublasLtMatmulPreferenceSetAttribute");
    std::vector<Heuristic> results(kAskFor);
    int count = 0;
    lt.heuristic(handle_, desc_, b_, a_, c_, d_, preference, kAskFor, results.data(),
                 &count); // a failure: none
    std::vector<Vendor::Algorithm> found;
    for (int i = 0; i < count; ++i)
      if (const Heuristic& h = results[size_t(i)]; h.state == 0)
        found.push_back({h.algorithm, h.workspace, text_of(h.algorithm)});
    return found;
  }

  /// `workspace`: of as many bytes as the algorithm uses.
  void enqueue(const Vendor::Algorithm& algorithm, Address workspace, const CallOperands& x, const Toolbox& tools,
               Stream stream) {
    point(x);
    const double alpha = unscaled_ ? 1 : x.alpha, beta = plan_.fused_residual ? 1 : 0;
    const uint64_t alpha_bits = scalar_bits(alpha, scale_type_), beta_bits = scalar_bits(beta, scale_type_);
    const Array product = this->product(x);
    const auto pointer = [](Address a) { return reinterpret_cast<void*>(a); };
    void* c = pointer(plan_.fused_residual ? x.residual.data : product.data);
    check_lt(Library::open()->matmul(handle_, desc_, &alpha_bits, pointer(x.b.data), b_, pointer(x.a.data),
                                     a_, &beta_bits, c, c_, pointer(product.data), d_, &algorithm.bits,
                                     pointer(workspace), algorithm.workspace, stream),
             "cublasLtMatmul");
    if (plan_.separate()) tools.epilogue(product, x.d, rest(x));
  }

private:
  template <typename T>
  void set(int attribute, T value) {
    check_lt(Library::open()->desc_set(desc_, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
  }
  void point(const CallOperands& x) {
    if (plan_.fused_bias) set(kBiasPointer, x.bias);
    if (plan_.fused_scales && problem_.has(EpilogueOp::scale_b)) set(kScaleA, x.scale_b);
    if (plan_.fused_scales && problem_.has(EpilogueOp::scale_a)) set(kScaleB, x.scale_a);
  }
  void* layout(Type type, const Array& x) const {
    const Library& lt = *Library::open();
    void* layout = nullptr;
    check_lt(lt.layout_create(&layout, data_type(type), uint64_t(x.columns), uint64_t(x.rows), x.ld),
             "cublasLtMatrixLayoutCreate");
    const auto batch = int32_t(problem_.batch);
    const int64_t stride = x.stride;
    if (batch > 1) {
      check_lt(lt.layout_set(layout, kBatchCount, &batch, sizeof batch), "cublasLtMatrixLayoutSetAttribute");
      check_lt(lt.layout_set(layout, kBatchStride, &stride, sizeof stride),
               "cublasLtMatrixLayoutSetAttribute");
    }
    return layout;
  }
  /// Where the product goes.
  Array product(const CallOperands& x) const {
    if (!plan_.scratch) return x.d;
    const int64_t columns = problem_.sum_columns();
    Array out = shape_of(problem_.m, columns, columns, problem_.batch, 0);
    out.data = scratch_.address(), out.type = int32_t(output_);
    return out;
  }
  EpilogueParameters rest(const CallOperands& x) const {
    const Scalars s = scalars_of(problem_);
    EpilogueParameters e;
    e.alpha = unscaled_ ? x.alpha : 1;
    if (plan_.gate) e.gate = int32_t(*plan_.gate);
    e.scale_a = s.scale_a, e.scale_b = s.scale_b, e.scale_d = s.scale_d, e.clamp_low = x.clamp_low,
    e.clamp_high = x.clamp_high;
    e.residual = x.residual, e.multiplier = x.multiplier;
    e.bias = x.bias, e.bias_row = x.bias_row, e.scale_row = x.scale_row, e.scale_col = x.scale_col;
    e.vector_type = int32_t(problem_.epilogue_type()), e.scale_type = int32_t(problem_.scale_type());
    for (EpilogueOp op : plan_.rest) e.steps[e.step_count++] = int32_t(op);
    return e;
  }

  const Problem problem_;
  const VendorPlan plan_;
  Type output_ = Type::f32, scale_type_ = Type::f32;
  bool unscaled_ = false; ///< the product waits for alpha
  void *handle_ = nullptr, *desc_ = nullptr, *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *d_ = nullptr;
  Memory scratch_;
};

/// Of one worker: its arms run one after the other, and share the memory.
class Workspaces {
public:
  explicit Workspaces(int64_t cache) : memory_(size_t(workspace_memory(cache))) {}
  /// Call by call another one: within a graph, and so in its replays.
  Address at(uint64_t call, uint64_t bytes) const {
    return bytes ? memory_.address() + round_up(bytes) * (call % rotating_workspaces(bytes, int64_t(memory_.bytes()))) : 0;
  }

private:
  Memory memory_;
};

/// One for all arms of a worker: they run one after the other.
std::shared_ptr<Multiplication> multiplication(const VendorPlan& plan, Bench::Ring& ring) {
  static std::shared_ptr<Multiplication> last;
  static std::string key;
  const std::string wanted = ring.problem().key() + plan.text();
  if (!last || key != wanted)
    last = std::make_shared<Multiplication>(ring.problem(), plan, ring.operands()), key = wanted;
  return last;
}

} // namespace

std::string VendorPlan::text() const {
  std::string fused;
  const auto add = [&](bool has, const char* name) {
    if (has) fused += (fused.empty() ? "" : "+") + std::string(name);
  };
  add(fused_scales, "scales"), add(fused_bias, "bias"), add(fused_residual, "residual");
  add(activation == relu, "relu"), add(activation == gelu_tanh, "gelu_tanh");
  std::string out = fused.empty() ? "" : "fused " + fused;
  if (!separate()) return out;
  const std::string left = rest.empty() ? "" : epilogue_text(rest);
  const std::string gated = gate ? "the gate" + std::string(rest.empty() ? "" : ", ") : "";
  return out + (out.empty() ? "" : ", then ") + "an elementwise kernel of ours for " +
         (gated + left == "" ? "the conversion" : gated + left);
}

VendorPlan plan_vendor(const Problem& p, bool fuse) {
  VendorPlan plan;
  plan.rest = p.epilogue;
  if ((is_fp8(p.a) || is_fp8(p.b)) && p.layout != Layout::nt)
    plan.why_not = "cuBLASLt multiplies 8-bit floats in layout nt alone";
  if (p.gate) {
    plan.gate = p.gate, plan.scratch = true;
    return plan;
  }
  if (p.a == Type::i8) {
    plan.scratch = p.d != Type::i32 && !(fuse && p.d == Type::i8 && p.epilogue.empty());
    return plan;
  }
  if (!fuse) return plan;
  const auto take = [&](EpilogueOp op) {
    if (plan.rest.empty() || plan.rest.front() != op) return false;
    plan.rest.erase(plan.rest.begin());
    return true;
  };
  if (is_fp8(p.a))
    while (take(EpilogueOp::scale_a) || take(EpilogueOp::scale_b)) plan.fused_scales = true;
  for (int i = 0; i < 2; ++i) {
    plan.fused_bias |= take(EpilogueOp::bias);
    if (p.epilogue_type() == p.d) plan.fused_residual |= take(EpilogueOp::residual);
  }
  if (take(EpilogueOp::relu))
    plan.activation = VendorPlan::relu;
  else if (take(EpilogueOp::gelu_tanh))
    plan.activation = VendorPlan::gelu_tanh;
  return plan;
}

int64_t workspace_memory(int64_t cache) { return std::max(3 * cache, int64_t(2 * kWorkspace)); }

uint64_t rotating_workspaces(uint64_t bytes, int64_t memory) {
  constexpr uint64_t kMost = 1024;
  return std::clamp(uint64_t(memory) / round_up(bytes), uint64_t(1), kMost);
}

Bench::Enqueue vendor_call(const VendorPlan& plan, const Vendor::Algorithm& algorithm, Bench::Ring& ring) {
  auto product = multiplication(plan, ring);
  static const Workspaces workspaces(ring.cache());
  return [product, algorithm, calls = uint64_t(0), &tools = ring.tools()](const CallOperands& x, Stream stream) mutable {
    product->enqueue(algorithm, workspaces.at(calls++, algorithm.workspace), x, tools, stream);
  };
}

Vendor ask_vendor(Bench::Ring& ring, const std::function<bool(int)>& may_try) {
  Vendor v;
  int number = 0;
  const Library* lt = Library::open();
  if (!lt) {
    v.why_not = "no cuBLASLt here (libcublasLt.so.13 or .12)";
    return v;
  }
  v.name = "cublaslt " + version_text(lt->version());
  for (bool fuse : {true, false}) {
    v.plan = plan_vendor(ring.problem(), fuse);
    v.why_not = v.plan.why_not;
    if (!v.why_not.empty()) return v;
    try {
      for (const Vendor::Algorithm& algorithm : multiplication(v.plan, ring)->algorithms()) {
        if (!may_try(number++)) continue;
        try {
          vendor_call(v.plan, algorithm, ring)(ring.operands(), ring.context().stream());
        } catch (const DriverError&) {
          continue; // returned, but not able
        }
        ring.context().synchronize();
        v.algorithms.push_back(algorithm);
      }
    } catch (const DriverError& e) {
      if (e.sticky()) throw;
      v.why_not = e.what();
    }
    if (!v.algorithms.empty()) return v;
  }
  if (v.why_not.empty()) v.why_not = "cuBLASLt has no algorithm for this problem";
  return v;
}

Vendor find_vendor(const Problem& problem, const Device& device, uint64_t seed) {
  Vendor v;
  if (platform() == Platform::hip) {
    v.name = "hipblaslt", v.why_not = "this version asks no library of AMD's";
    return v;
  }
  Bench bench(problem, device, 0, seed);
  std::set<int> lost;
  std::optional<int> trying;
  const auto ask = [&](Channel& channel) {
    channel.step("asking cuBLASLt", kProbeSeconds);
    const auto may_try = [&](int number) {
      channel.send({{"trying", number}});
      channel.step("an algorithm of cuBLASLt", kTrySeconds);
      return !lost.count(number);
    };
    try {
      const Vendor found = ask_vendor(bench.ring(), may_try);
      Json algorithms = Json::array();
      for (const Vendor::Algorithm& a : found.algorithms)
        algorithms.push_back({{"bits", a.bits}, {"workspace", a.workspace}, {"text", a.text}});
      channel.send({{"name", found.name},
                    {"why_not", found.why_not},
                    {"algorithms", algorithms},
                    {"fuse", found.plan.text() == plan_vendor(problem, true).text()}});
    } catch (const DriverError& e) {
      channel.send({{"name", v.name}, {"why_not", e.what()}});
      if (e.sticky()) std::_Exit(0); // the context is lost
    }
  };
  const auto on_message = [&](const Json& m) {
    if (m.contains("trying")) {
      trying = m.value("trying", 0);
      return;
    }
    v.name = m.value("name", v.name), v.why_not = m.value("why_not", "");
    for (const Json& a : m.value("algorithms", Json::array()))
      v.algorithms.push_back({a.at("bits").get<AlgorithmBits>(), a.at("workspace").get<uint64_t>(),
                              a.at("text").get<std::string>()});
    v.plan = plan_vendor(problem, m.value("fuse", true));
  };
  while (true) {
    trying.reset();
    const WorkerEnd end = run_worker(ask, on_message);
    if (end.kind == WorkerEnd::done) return v;
    if (!trying || lost.size() == kMostLost) {
      v.why_not = "cuBLASLt failed: " + (v.why_not.empty() ? end.detail : v.why_not), v.algorithms.clear();
      return v;
    }
    lost.insert(*trying), v.why_not.clear();
  }
}

std::vector<Arm> vendor_arms(const Vendor& vendor, Bench& bench) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < vendor.algorithms.size(); ++i)
    arms.push_back(bench.arm(vendor.name + " algorithm " + std::to_string(i) +
                                 (vendor.algorithms[i].text.empty() ? "" : " (" + vendor.algorithms[i].text + ")"),
                             [plan = vendor.plan, algorithm = vendor.algorithms[i]](Bench::Ring& ring) {
                               return vendor_call(plan, algorithm, ring);
                             }));
  return arms;
}

} // namespace deepgen::cuda
