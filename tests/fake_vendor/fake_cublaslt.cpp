#include "fake_cublaslt.h"

#include <cstring>

namespace {

using namespace fake_cublaslt;

struct Description {
  int compute, scale;
  std::map<int, uint64_t> attributes;
};

int result_of(const char* function) {
  const auto found = state().results.find(function);
  return found == state().results.end() ? 0 : found->second;
}

/// A failure makes nothing.
template <typename T>
int make(const char* function, void** out, T value) {
  const std::lock_guard lock(state().mutex);
  if (const int result = result_of(function)) return result;
  *out = new T(value);
  ++state().alive;
  return 0;
}
template <typename T>
int destroy(void* what) {
  const std::lock_guard lock(state().mutex);
  delete static_cast<T*>(what);
  --state().alive;
  return 0;
}

uint64_t scalar(const void* at, int type) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, type == 1 ? 8 : 4);
  return bits;
}

} // namespace

State& fake_cublaslt::state() {
  static State state;
  return state;
}

void fake_cublaslt::reset() {
  State& s = state();
  s.version = 130100, s.results.clear(), s.calls.clear(), s.capture_mode = nullptr;
}

extern "C" {
size_t cublasLtGetVersion() { return state().version; }
int cublasLtCreate(void** out) {
  const std::lock_guard lock(state().mutex);
  *out = reinterpret_cast<void*>(uintptr_t(0x1000 + ++state().handles));
  return result_of("cublasLtCreate");
}
int cublasLtMatmulDescCreate(void** out, int compute, int scale) {
  return make("cublasLtMatmulDescCreate", out, Description{compute, scale, {}});
}
int cublasLtMatmulDescSetAttribute(void* description, int attribute, const void* value, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, value, bytes);
  static_cast<Description*>(description)->attributes[attribute] = word;
  return 0;
}
int cublasLtMatmulDescDestroy(void* description) { return destroy<Description>(description); }
int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return make("cublasLtMatrixLayoutCreate", out, Layout{type, rows, columns, ld, {}});
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  int64_t word = 0;
  std::memcpy(&word, value, bytes);
  static_cast<Layout*>(layout)->attributes[attribute] = word;
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return destroy<Layout>(layout); }
int cublasLtMatmul(void* handle, void* description, const void* alpha, const void* a, void* a_layout,
                   const void* b, void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
                   void* d_layout, const void* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream) {
  const auto& desc = *static_cast<Description*>(description);
  const auto layout = [](void* x) { return *static_cast<Layout*>(x); };
  Call call{handle,
            desc.compute,
            desc.scale,
            desc.attributes,
            scalar(alpha, desc.scale),
            scalar(beta, desc.scale),
            a,
            b,
            c,
            d,
            workspace,
            stream,
            layout(a_layout),
            layout(b_layout),
            layout(c_layout),
            layout(d_layout),
            {},
            workspace_bytes,
            state().capture_mode ? state().capture_mode() : 0};
  std::memcpy(call.algorithm.data(), algorithm, sizeof call.algorithm);
  const std::lock_guard lock(state().mutex);
  if (const int result = result_of("cublasLtMatmul")) return result;
  state().calls.push_back(call);
  return 0;
}
}
