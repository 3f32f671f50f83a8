// libhipblaslt.so without a GPU. It multiplies on the host, and complains of what the library would refuse or
// misread: numbers of attributes and types, their sizes, shapes, what was not created. Numbers and structs
// are those of ROCm 6 and 7. Its heuristic returns five results: two that work, one that needs a workspace,
// one that fails when called, one with a state.
#include "fake_blas.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace fake_hip {
namespace {

enum Status : int { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 3, kNotSupported = 7 };
enum Operation : int { kPlain = 111, kTransposed = 112 };
enum Compute : int { k32f = 2, kTf32 = 6, k32i = 9 };
enum DescAttribute : int {
  kTransA,
  kTransB,
  kEpilogue,
  kBiasPointer,
  kBiasType,
  kScaleA,
  kScaleB,
  kDescAttributes
};
enum LayoutAttribute : int { kBatchCount, kBatchStride };
enum Epilogue : int { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };
constexpr size_t kWorkspace = 4096;

struct Desc {
  int compute, scale;
  uint64_t values[kDescAttributes] = {kPlain, kPlain, kDefault, 0, 0, 0, 0};
};
struct Layout {
  BlasMatrix matrix;
  int32_t batch = 1;
};
struct Preference {
  uint64_t workspace = 0;
};
struct Algorithm { // hipblasLtMatmulAlgo_t
  int32_t number = 0;
  uint8_t rest[12] = {};
  uint64_t most_workspace = 0;
};
struct HeuristicResult { // hipblasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  uint64_t workspace = 0;
  int32_t state = 0;
  float waves = 1;
  int32_t reserved[4] = {};
};
static_assert(sizeof(Algorithm) == 24 && sizeof(HeuristicResult) == 56);

/// Every object that was created, by its address.
template <typename T>
std::map<const void*, std::unique_ptr<T>>& all() {
  static std::map<const void*, std::unique_ptr<T>> objects;
  return objects;
}
template <typename T>
T* find(const void* handle) {
  const auto at = all<T>().find(handle);
  return at == all<T>().end() ? nullptr : at->second.get();
}
template <typename T>
int create(void** handle, T value) {
  auto object = std::make_unique<T>(std::move(value));
  *handle = object.get();
  all<T>()[*handle] = std::move(object);
  return kSuccess;
}
template <typename T>
int destroy(const void* handle) {
  return all<T>().erase(handle) ? kSuccess : complain(kInvalidValue, "something that was not created");
}
struct Handle {};

/// Layouts of D that the heuristic was asked for: an algorithm of others is no good, as the library loads
/// what it has of a problem when it is first asked.
std::set<const Layout*>& asked_for() {
  static std::set<const Layout*> layouts;
  return layouts;
}

bool is_fp8(int type) { return type == r8f_e4m3 || type == r8f_e5m2; }

/// What this library multiplies on this device.
bool serves(const Desc& desc, int a, int b, int d) {
  const std::string& target = state().devices.at(size_t(current_device())).target;
  const bool halves = (a == r16f || a == r16bf) && a == b && (d == a || d == r32f);
  switch (desc.compute) {
  case k32f:
    if (is_fp8(a) && is_fp8(b))
      return target.rfind("gfx950", 0) == 0 && (d == r16f || d == r16bf || d == r32f);
    return desc.scale == r32f && (halves || (a == r32f && b == r32f && d == r32f));
  case kTf32:
    return desc.scale == r32f && a == r32f && b == r32f && d == r32f && target.rfind("gfx942", 0) == 0;
  case k32i:
    return desc.scale == r32i && a == r8i && b == r8i && d == r32i;
  default:
    return false;
  }
}

/// What a product takes, beside kernels of 10 us; a test may want it faster.
double product_seconds() {
  const char* text = std::getenv("FAKE_HIPBLASLT_SECONDS");
  return text ? std::atof(text) : 12e-6;
}

double number_at(const void* data, int type) { return element(data, type, 0); }

BlasMatrix matrix_of(const void* layout, const void* data, uint64_t operation) {
  BlasMatrix m = find<Layout>(layout)->matrix;
  m.data = const_cast<void*>(data), m.transposed = operation == kTransposed;
  return m;
}

/// The epilogue with what it points to, checked.
std::string set_epilogue(const Desc& desc, BlasCall& call) {
  const auto which = int(desc.values[kEpilogue]);
  const int activation = which & ~(kBias | kDefault);
  if (activation != 0 && activation != kRelu && activation != kGelu)
    return "an unknown epilogue " + std::to_string(which);
  const auto bias_type = int(desc.values[kBiasType]);
  const auto* bias = which & kBias ? reinterpret_cast<const void*>(desc.values[kBiasPointer]) : nullptr;
  void* begin = nullptr;
  size_t bytes = 0;
  if (which & kBias) {
    if (bias_type != call.d.type && bias_type != r32f) return "a bias of another type";
    if (!allocation_of(bias, &begin, &bytes) ||
        static_cast<const char*>(bias) + size_t(call.d.rows) * bytes_of(bias_type) >
            static_cast<char*>(begin) + bytes)
      return "a bias outside of device memory";
  }
  double scale = 1;
  for (int attribute : {kScaleA, kScaleB})
    if (const auto* at = reinterpret_cast<const void*>(desc.values[attribute])) {
      if (!allocation_of(at, &begin, &bytes)) return "a scale outside of device memory";
      scale *= number_at(at, r32f);
    }
  call.alpha *= scale;
  call.epilogue = [=](double x, int64_t row) {
    if (bias) x += element(bias, bias_type, row);
    if (activation == kRelu) return x > 0 ? x : 0;
    if (activation == kGelu)
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
  };
  return "";
}

} // namespace
} // namespace fake_hip

using namespace fake_hip;

extern "C" {

int hipblasLtCreate(void** handle) {
  ENTER(hipblasLtCreate);
  return create(handle, Handle());
}
int hipblasLtGetVersion(void* handle, int* version) {
  ENTER(hipblasLtGetVersion);
  return *version = 100203, find<Handle>(handle) ? kSuccess : kNotInitialized;
}
int hipblasLtMatmulDescCreate(void** desc, int compute, int scale) {
  ENTER(hipblasLtMatmulDescCreate);
  return create(desc, Desc{compute, scale});
}
int hipblasLtMatmulDescSetAttribute(void* handle, int attribute, const void* value, size_t bytes) {
  ENTER(hipblasLtMatmulDescSetAttribute);
  Desc* desc = find<Desc>(handle);
  if (!desc) return complain(kInvalidValue, "no description of a product");
  if (attribute < 0 || attribute >= kDescAttributes)
    return complain(kInvalidValue, "an unknown attribute " + std::to_string(attribute));
  const bool is_pointer = attribute == kBiasPointer || attribute >= kScaleA;
  if (bytes != (is_pointer ? 8 : 4)) return complain(kInvalidValue, "an attribute of another size");
  uint64_t word = 0;
  std::memcpy(&word, value, bytes);
  if ((attribute == kTransA || attribute == kTransB) && word != kPlain && word != kTransposed)
    return complain(kInvalidValue, "an unknown operation " + std::to_string(word));
  desc->values[attribute] = word;
  return kSuccess;
}
int hipblasLtMatmulDescDestroy(void* desc) {
  ENTER(hipblasLtMatmulDescDestroy);
  return destroy<Desc>(desc);
}
int hipblasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  ENTER(hipblasLtMatrixLayoutCreate);
  return create(layout, Layout{{nullptr, type, int64_t(rows), int64_t(columns), ld, 0, false}, 1});
}
int hipblasLtMatrixLayoutSetAttribute(void* handle, int attribute, const void* value, size_t bytes) {
  ENTER(hipblasLtMatrixLayoutSetAttribute);
  Layout* layout = find<Layout>(handle);
  if (!layout) return complain(kInvalidValue, "no layout");
  if (attribute == kBatchCount && bytes == sizeof layout->batch)
    std::memcpy(&layout->batch, value, bytes);
  else if (attribute == kBatchStride && bytes == sizeof layout->matrix.stride)
    std::memcpy(&layout->matrix.stride, value, bytes);
  else
    return complain(kInvalidValue, "an unknown attribute of a layout, or of another size");
  return kSuccess;
}
int hipblasLtMatrixLayoutDestroy(void* layout) {
  ENTER(hipblasLtMatrixLayoutDestroy);
  asked_for().erase(find<Layout>(layout));
  return destroy<Layout>(layout);
}
int hipblasLtMatmulPreferenceCreate(void** preference) {
  ENTER(hipblasLtMatmulPreferenceCreate);
  return create(preference, Preference());
}
int hipblasLtMatmulPreferenceSetAttribute(void* handle, int attribute, const void* value, size_t bytes) {
  ENTER(hipblasLtMatmulPreferenceSetAttribute);
  Preference* preference = find<Preference>(handle);
  if (!preference || attribute != 1 || bytes != 8) return complain(kInvalidValue, "no such preference");
  std::memcpy(&preference->workspace, value, bytes);
  return kSuccess;
}
int hipblasLtMatmulPreferenceDestroy(void* preference) {
  ENTER(hipblasLtMatmulPreferenceDestroy);
  return destroy<Preference>(preference);
}
int hipblasLtMatmulAlgoGetHeuristic(void* handle, void* description, void* a, void* b, void* c, void* d,
                                    void* preference, int asked, HeuristicResult* results, int* count) {
  ENTER(hipblasLtMatmulAlgoGetHeuristic);
  *count = 0;
  const Desc* desc = find<Desc>(description);
  if (!find<Handle>(handle)) return kNotInitialized;
  if (!desc || !find<Layout>(a) || !find<Layout>(b) || !find<Layout>(c) || !find<Layout>(d) ||
      !find<Preference>(preference))
    return complain(kInvalidValue, "something that was not created");
  if (!serves(*desc, find<Layout>(a)->matrix.type, find<Layout>(b)->matrix.type,
              find<Layout>(d)->matrix.type))
    return kNotSupported;
  asked_for().insert(find<Layout>(d));
  for (int i = 0; i < 5 && i < asked; ++i) {
    HeuristicResult r;
    r.algorithm.number = 100 + i, r.algorithm.most_workspace = find<Preference>(preference)->workspace;
    r.workspace = i == 2 ? kWorkspace : 0, r.state = i == 4 ? kNotSupported : kSuccess;
    results[(*count)++] = r;
  }
  return kSuccess;
}
int hipblasLtMatmul(void* handle, void* description, const void* alpha, const void* a, void* a_layout,
                    const void* b, void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
                    void* d_layout, const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                    void* stream) {
  ENTER(hipblasLtMatmul);
  const Desc* desc = find<Desc>(description);
  if (!find<Handle>(handle)) return kNotInitialized;
  if (!desc || !find<Layout>(a_layout) || !find<Layout>(b_layout) || !find<Layout>(c_layout) ||
      !find<Layout>(d_layout))
    return complain(kInvalidValue, "something that was not created");
  if (!algorithm || algorithm->number < 100 || algorithm->number > 103)
    return complain(kInvalidValue, "an algorithm that the heuristic did not return");
  if (!asked_for().count(find<Layout>(d_layout)))
    return complain(kInvalidValue, "the heuristic was not asked for such a product");
  if (algorithm->number == 103) return kNotSupported;
  void* begin = nullptr;
  size_t bytes = 0;
  if (algorithm->number == 102 &&
      (workspace_bytes < kWorkspace || !allocation_of(workspace, &begin, &bytes) ||
       static_cast<char*>(workspace) + workspace_bytes > static_cast<char*>(begin) + bytes))
    return complain(kInvalidValue, "no workspace for an algorithm that needs one");
  BlasCall call;
  call.a = matrix_of(a_layout, a, desc->values[kTransA]),
  call.b = matrix_of(b_layout, b, desc->values[kTransB]);
  call.c = matrix_of(c_layout, c, kPlain), call.d = matrix_of(d_layout, d, kPlain);
  call.alpha = number_at(alpha, desc->scale), call.beta = number_at(beta, desc->scale);
  call.batch = find<Layout>(d_layout)->batch;
  for (void* layout : {a_layout, b_layout, c_layout})
    if (find<Layout>(layout)->batch != call.batch)
      return complain(kInvalidValue, "batches of different sizes");
  std::string why = fault_of(call);
  if (why.empty()) why = set_epilogue(*desc, call);
  if (!why.empty()) return complain(kInvalidValue, why);
  return enqueue(stream, product_seconds(), [call] { return multiply(call), int(success); });
}

} // extern "C"
