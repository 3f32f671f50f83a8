// Calls of a tuned library from odd places of a process.
#pragma once

#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define REQUIRE(condition)                                                                                   \
  do {                                                                                                       \
    if (!(condition))                                                                                        \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), std::fflush(stdout), _Exit(1);     \
  } while (false)

// clang's control flow integrity knows no functions that others compiled: a plugin's, the installed runtime's
// tasks.
#if defined(__clang__)
#define CALLS_WHAT_CFI_DOES_NOT_KNOW __attribute__((no_sanitize("cfi-icall")))
#else
#define CALLS_WHAT_CFI_DOES_NOT_KNOW
#endif

namespace process {

using Sizes = kernels::product_sizes;

/// Operands of kernels::product(): whole numbers times `unit`.
struct Product {
  std::vector<float> a = std::vector<float>(Sizes::bytes_a / sizeof(float)),
                     b = std::vector<float>(Sizes::bytes_b / sizeof(float)),
                     d = std::vector<float>(Sizes::bytes_d / sizeof(float));
  explicit Product(float unit = 1) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = unit * float(int(i * 7 % 11) - 5);
    for (size_t i = 0; i < b.size(); ++i) b[i] = float(int(i * 5 % 13) - 6);
  }
  void run() {
    d.assign(d.size(), -1);
    REQUIRE(kernels::product(a.data(), b.data(), d.data()) == DEEPGEN_OK);
  }
  bool is_right() const {
    for (int64_t m = 0; m < Sizes::m; ++m)
      for (int64_t n = 0; n < Sizes::n; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < Sizes::k; ++k)
          sum += a[size_t(m * Sizes::k + k)] * b[size_t(k * Sizes::n + n)];
        if (d[size_t(m * Sizes::n + n)] != sum) return false;
      }
    return true;
  }
};

inline bool equal_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

// Each ends the process where something is not so.
void static_constructors();
void thread_destructors();
void forks();
void signal_handlers();
void floating_point();
void guard_pages();
void lazy_operands();
void plugins();
void hook();

} // namespace process
