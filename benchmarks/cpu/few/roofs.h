// What one core reaches at most: bytes a second that it reads, and products a second by each instruction that
// it has, from registers alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>
#if defined(__AVX512F__) || defined(__AMX_TILE__)
#include <immintrin.h>
#endif
#if defined(__AMX_TILE__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace roofs {

inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

constexpr int kSums = 12;     ///< more than latency and ports ask for
constexpr int kTurns = 20000; ///< a few hundred microseconds
/// CPU time of a roof: in two milliseconds a neighbour of the core was not seen to rest, and roofs came out
/// at half of what kernels reached.
constexpr double kSeconds = 0.3;

/// What a quiet core does: one time in ten is shorter. The least of all is no time: a virtual machine's clock
/// of CPU time was seen to stand still for a while.
inline double quiet(std::vector<double>& times) {
  const auto at = times.begin() + std::ptrdiff_t(times.size() / 10);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

/// Multiplications and additions a second.
template <typename Vector, typename Step>
double rate(double each, Vector a, Vector b, Step step) {
  std::vector<double> times;
  for (const double end = now() + kSeconds; now() < end;) {
    Vector sums[kSums] = {};
    for (Vector& sum : sums) __asm__ volatile("" : "+x"(sum)); // nor that all are equal
    const double begin = now();
    for (int turn = 0; turn < kTurns; ++turn) {
      __asm__ volatile("" : "+x"(a), "+x"(b)); // operands that no compiler knows
#pragma GCC unroll 12
      for (Vector& sum : sums) sum = step(sum, a, b);
    }
    times.push_back(now() - begin);
    for (Vector& sum : sums) __asm__ volatile("" ::"x"(sum));
  }
  return each * kSums * kTurns / quiet(times);
}

#if defined(__AVX512F__)
using Floats = float __attribute__((vector_size(64)));
#else
using Floats = float __attribute__((vector_size(32)));
#endif

inline double multiply_adds() {
  const Floats a = Floats{} + 0.5f, b = Floats{} + 0.25f;
  return rate(2.0 * sizeof(Floats) / 4, a, b, [](Floats sum, Floats x, Floats y) { return sum * x + y; });
}

#if defined(__AVX512BF16__)
inline double bf16_pairs() {
  const __m512i x = _mm512_set1_epi32(0x3f003f00);
  return rate(64.0, _mm512_castsi512_ps(x), _mm512_castsi512_ps(x),
              [](__m512 sum, __m512 a, __m512 b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); });
}
#else
inline double bf16_pairs() { return 0; }
#endif

#if defined(__AVX512VNNI__)
inline double bytes() {
  const __m512i x = _mm512_set1_epi32(0x01010101);
  return rate(128.0, x, x, [](__m512i sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); });
}
#else
inline double bytes() { return 0; }
#endif

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
inline bool begin_tiles() {
  if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) return false; // the system's leave to use tiles
  alignas(64) uint8_t config[64] = {1};
  for (int i = 0; i < 8; ++i) config[16 + 2 * i] = 64, config[48 + i] = 16;
  __asm__ volatile("" ::"r"(config) : "memory"); // GCC 12 leaves out what only the next line reads
  _tile_loadconfig(config);
  return true;
}
/// Products of four tiles of sums; `each`: operations of one.
template <typename Four>
double tile_rate(double each, Four four) {
  if (!begin_tiles()) return 0;
  std::vector<double> times;
  for (const double end = now() + kSeconds; now() < end;) {
    const double begin = now();
    for (int turn = 0; turn < kTurns; ++turn) four();
    times.push_back(now() - begin);
  }
  _tile_release();
  return 4 * each * kTurns / quiet(times);
}
inline double bf16_tiles() {
  return tile_rate(2.0 * 16 * 16 * 32, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  });
}
inline double byte_tiles() {
  return tile_rate(2.0 * 16 * 16 * 64, [] {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  });
}
#else
inline double bf16_tiles() { return 0; }
inline double byte_tiles() { return 0; }
#endif

/// Operations a second, of the best instruction for an A and a B of these types.
inline double products(const std::string& a) {
  static const double floats = multiply_adds();
  static const double halves = std::max({floats, bf16_pairs(), bf16_tiles()});
  static const double integers = std::max({floats, bytes(), byte_tiles()});
  return a == "bf16" ? halves : a == "i8" ? integers : floats;
}

/// As many loads at a time as a core has buffers for lines that come; with `ahead`, each line is asked for
/// so many bytes before.
template <size_t ahead>
__attribute__((noinline)) uint64_t read_all(const char* data, size_t bytes) {
  uint64_t sums[64] = {};
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  for (size_t i = 0; i + 64 <= bytes / 8; i += 64) {
    if (ahead)
      for (size_t line = 0; line < 8; ++line)
        __builtin_prefetch(data + 8 * i + ahead + 64 * line, 0, 2); // beyond the end it does nothing
    for (size_t j = 0; j < 64; ++j) sums[j] += words[i + j];
  }
  uint64_t sum = 0;
  for (uint64_t x : sums) sum += x;
  return sum;
}

} // namespace roofs
