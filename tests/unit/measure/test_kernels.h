// Kernels for the tests of measuring: a GEMM with flaws to order, and images that jump to functions of this
// program.
#pragma once

#include "base/kernel/kernel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace deepgen::test_kernels {

using Entry = void (*)(const uint64_t*);

/// mov rax, entry; jmp rax. A worker is a fork of this process, so the address is good there too.
inline std::string jump_to(Entry entry) {
  std::string code = "\x48\xb8";
  const auto address = reinterpret_cast<uint64_t>(entry);
  code.append(reinterpret_cast<const char*>(&address), 8);
  return code + "\xff\xe0";
}

inline const Gemm& small_problem() {
  static const Gemm p = Gemm::parse(
      "gemm m=13 n=11 k=17 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+relu align=4");
  return p;
}
inline constexpr int64_t kM = 13, kN = 11, kK = 17;

inline const std::vector<std::string> kArgNames = {
    "a",        "b",        "c",     "d",    "bias",      "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b",
    "stride_c", "stride_d", "alpha", "beta", "workspace", "m0",  "m1",  "n0",  "n1",  "b0",       "b1"};

inline float as_float(uint64_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

/// A correct kernel for small_problem(), one tile a row and column, unless one of the flaws is asked for.
struct Flaws {
  int64_t skip_k = -1;     ///< drops this product
  bool reads_c = false;    ///< although beta is 0
  bool ignores_m0 = false; ///< computes from row 0 whatever it is told
  bool ignores_n0 = false, ignores_b0 = false;
  bool ignores_ld = false;  ///< takes the matrices to be dense
  int64_t extra_column = 0; ///< writes so many elements beyond the last column
  bool writes_a = false;
  bool skips_last_element = false;
  int repeat = 1; ///< computes every product so often: correct, but slow
};

/// noipa: all variants run the same instructions, so that their times compare as their work does.
[[gnu::noipa]] inline void gemm(const uint64_t* x, const Flaws& flaws) {
  const auto *a = reinterpret_cast<const float*>(x[0]), *b = reinterpret_cast<const float*>(x[1]);
  const auto* c = reinterpret_cast<const float*>(x[2]);
  auto* d = reinterpret_cast<float*>(x[3]);
  const auto* bias = reinterpret_cast<const float*>(x[4]);
  const float alpha = as_float(x[13]), beta = as_float(x[14]);
  const auto lda = int64_t(x[5]), ldb = int64_t(x[6]), ldc = int64_t(x[7]);
  const int64_t ldd = flaws.ignores_ld ? kN : int64_t(x[8]);
  if (flaws.writes_a) const_cast<float*>(a)[0] = 1;
  for (uint64_t e = flaws.ignores_b0 ? 0 : x[20]; e < x[21]; ++e)
    for (uint64_t i = flaws.ignores_m0 ? 0 : x[16]; i < x[17]; ++i)
      for (uint64_t j = flaws.ignores_n0 ? 0 : x[18]; j < x[19]; ++j) {
        float sum = 0;
        for (int again = 0; again < flaws.repeat; ++again, sum = again < flaws.repeat ? sum - sum : sum)
          for (int64_t k = 0; k < kK; ++k)
            if (k != flaws.skip_k) sum += a[e * x[9] + i * lda + k] * b[e * x[10] + j * ldb + k];
        sum *= alpha;
        if (beta != 0 || flaws.reads_c) sum += beta * (c ? c[e * x[11] + i * ldc + j] : 0);
        float* row = d + e * x[12] + i * ldd;
        if (flaws.skips_last_element && i == kM - 1 && j == kN - 1) continue;
        row[j] = std::max(sum + bias[j], 0.0f);
        if (j == kN - 1)
          for (int64_t extra = 0; extra < flaws.extra_column; ++extra) row[j + 1 + extra] = 0;
      }
}

inline void good(const uint64_t* x) { gemm(x, {}); }
inline void drops_a_term(const uint64_t* x) { gemm(x, {.skip_k = 16}); }
inline void reads_c(const uint64_t* x) { gemm(x, {.reads_c = true}); }
inline void ignores_m0(const uint64_t* x) { gemm(x, {.ignores_m0 = true}); }
inline void ignores_n0(const uint64_t* x) { gemm(x, {.ignores_n0 = true}); }
inline void ignores_b0(const uint64_t* x) { gemm(x, {.ignores_b0 = true}); }
inline void ignores_ld(const uint64_t* x) { gemm(x, {.ignores_ld = true}); }
inline void writes_past_rows(const uint64_t* x) { gemm(x, {.extra_column = 1}); }
inline void writes_a(const uint64_t* x) { gemm(x, {.writes_a = true}); }
inline void skips_last(const uint64_t* x) { gemm(x, {.skips_last_element = true}); }
inline void slow(const uint64_t* x) { gemm(x, {.repeat = 100}); }
inline void twice(const uint64_t* x) { gemm(x, {.repeat = 2}); }
inline void good_again(const uint64_t* x) { gemm(x, {.skip_k = -2}); }
inline volatile int never = 0;
inline void reads_past_b(const uint64_t* x) {
  gemm(x, {});
  never = int(
      reinterpret_cast<const volatile float*>(x[1])[int64_t(x[10]) + (kN - 1) * int64_t(x[6]) + kK + 256]);
}
inline void hangs(const uint64_t*) {
  while (never < 1 << 30) never = 0;
}
inline void calls_exit(const uint64_t*) { _exit(0); }

inline Kernel kernel_of(const std::string& code, const std::string& role = "main") {
  Kernel k;
  k.role = role;
  k.problem = small_problem();
  k.choice = {"test", Config::parse("x=1")};
  k.args = kArgNames;
  k.tiles_m = kM, k.tiles_n = kN, k.tiles_b = 2;
  k.workspace = 100;
  k.code = code;
  return k;
}
inline Kernel kernel_of(Entry entry) { return kernel_of(jump_to(entry)); }

} // namespace deepgen::test_kernels
