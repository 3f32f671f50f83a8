// What a core takes for the instructions of AMX, alone and together, in nanoseconds and in cycles of the
// clock that is told. By itself, without DeepGen:
//   c++ -O2 -mamx-tile -mamx-bf16 amx.cpp -o amx && ./amx 3.85
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr long kTile = 1024;       // bytes
constexpr size_t kBytes = 4 << 20; // of a buffer
double gigahertz = 1;
char *left, *right, *sums;

double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The best of many times, of one of `count`.
template <typename Body>
void row(const char* name, long count, Body body) {
  double best = 1e9;
  for (int i = 0; i < 61; ++i) {
    const double begin = seconds();
    body();
    best = std::min(best, seconds() - begin);
  }
  std::printf("%-72s %8.2f ns %8.1f cycles\n", name, best / double(count) * 1e9,
              best / double(count) * 1e9 * gigahertz);
}

/// Rows of the left operand are `pitch` bytes apart, and from a step of K to the next it is `step`, to the
/// second tile `second`.
struct Left {
  long pitch, step, second;
};
constexpr Left kPacked = {64, 2 * kTile, kTile};
constexpr Left in_place(long pitch) { return {pitch, 64, 16 * pitch}; }

/// Two by two products a step of K, as a micro-kernel has them.
inline void products(const Left& x, const char* a, const char* b, long steps) {
  for (long k = 0; k < steps; ++k, a += x.step, b += 2 * kTile) {
    _tile_loadd(6, b, 128);
    _tile_loadd(7, b + 64, 128);
    _tile_loadd(4, a, x.pitch);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + x.second, x.pitch);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}
inline void store_sums() {
  _tile_stored(0, sums, 128);
  _tile_stored(1, sums + 64, 128);
  _tile_stored(2, sums + 2048, 128);
  _tile_stored(3, sums + 2048 + 64, 128);
}
inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

void one_by_one() {
  constexpr long n = 20000;
  row("a product", 4 * n, [] {
    for (long i = 0; i < n; ++i) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  });
  row("a store", 4 * n, [] {
    for (long i = 0; i < n; ++i) store_sums();
  });
  for (long kib : {4L, 512L, 1024L}) {
    char name[64];
    std::snprintf(name, sizeof name, "a load from %ld KiB that are swept", kib);
    const long tiles = kib * 1024 / kTile, turns = 4096 / kib;
    row(name, tiles * turns, [&] {
      for (long t = 0; t < turns; ++t)
        for (long i = 0; i < tiles; i += 4) {
          _tile_loadd(4, left + i * kTile, 64);
          _tile_loadd(5, left + i * kTile + kTile, 64);
          _tile_loadd(6, left + i * kTile + 2 * kTile, 64);
          _tile_loadd(7, left + i * kTile + 3 * kTile, 64);
        }
    });
  }
}

void blocks() {
  struct Block {
    const char* name;
    Left left;
    long panel, panels, steps; // bytes from one panel of the left operand to the next
  };
  const Block all[] = {
      {"both packed, k 256: 16 KiB of B stay, A sweeps 128 KiB", kPacked, 16 << 10, 8, 8},
      {"both packed, k 1024: 64 KiB of B, A sweeps 512 KiB", kPacked, 64 << 10, 8, 32},
      {"A in place, rows 2048 bytes apart, k 256", in_place(2048), 64 << 10, 8, 8},
      {"A in place, rows 2112 bytes apart, k 256", in_place(2112), 66 << 10, 8, 8},
      {"A in place, rows 2048 bytes apart, k 1024", in_place(2048), 64 << 10, 8, 32},
      {"A in place, rows 2112 bytes apart, k 1024", in_place(2112), 66 << 10, 8, 32},
  };
  for (const Block& x : all)
    row(x.name, 8 * x.panels * x.steps * 4, [&] {
      for (int turn = 0; turn < 8; ++turn)
        for (long p = 0; p < x.panels; ++p) products(x.left, left + p * x.panel, right, x.steps);
    });
}

/// What is multiplied decides, too: zeros at first, then numbers between -1 and 1.
void fill_with_numbers() {
  for (char* buffer : {left, right})
    for (size_t i = 0; i < kBytes; i += 2) {
      const float x = float(std::rand() % 256 - 128) / 128;
      uint32_t word;
      std::memcpy(&word, &x, 4);
      const auto high = uint16_t(word >> 16);
      std::memcpy(buffer + i, &high, 2);
    }
  _tile_loadd(4, left, 64);
  _tile_loadd(5, left + kTile, 64);
  _tile_loadd(6, right, 64);
  _tile_loadd(7, right + kTile, 64);
}

/// Of one sweep after the other for four seconds, in slices of 0.1 s: a host may slow a core down that has
/// multiplied for a while.
void go_on() {
  constexpr int kSlices = 40;
  double slices[kSlices];
  for (double& slice : slices) {
    timespec t;
    const auto now = [&] {
      return clock_gettime(CLOCK_MONOTONIC, &t), double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    };
    const double begin = now();
    long count = 0;
    for (; now() - begin < 0.1; count += 8 * 32 * 4)
      for (long p = 0; p < 8; ++p) products(kPacked, left + p * (64 << 10), right, 32);
    slice = (now() - begin) / double(count);
  }
  std::sort(slices, slices + kSlices);
  std::printf("k 1024, for 4 s, slices of 0.1 s: least, median, most %24.2f %.2f %.2f ns\n", slices[0] * 1e9,
              slices[kSlices / 2] * 1e9, slices[kSlices - 1] * 1e9);
}

/// k 1024, both packed, with the sums stored behind it; and in between one tile every so many steps.
void stores() {
  for (long every : {0L, 32L, 16L, 8L}) {
    char name[96];
    std::snprintf(name, sizeof name,
                  every ? "k 1024, sums stored, and a tile every %ld steps" : "k 1024, sums kept", every);
    row(name, 8 * 8 * 32 * 4, [&] {
      for (int turn = 0; turn < 8; ++turn)
        for (long p = 0; p < 8; ++p) {
          const long steps = every ? every : 32;
          for (long k = 0; k < 32; k += steps) {
            products(kPacked, left + p * (64 << 10) + k * 2 * kTile, right + k * 2 * kTile, steps);
            if (every && every < 32) _tile_stored(5, sums, 64);
          }
          if (every) store_sums();
          clear_sums();
        }
    });
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1) gigahertz = std::atof(argv[1]);
  if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) {
    std::fprintf(stderr, "no AMX, or the system refuses it\n");
    return 1;
  }
  for (char** buffer : {&left, &right, &sums}) {
    *buffer = static_cast<char*>(std::aligned_alloc(2 << 20, kBytes));
    std::memset(*buffer, 0, kBytes);
  }
  alignas(64) uint8_t config[64] = {1};
  for (int i = 0; i < 8; ++i) config[16 + 2 * i] = 64, config[48 + i] = 16;
  __asm__ volatile("" ::"r"(config) : "memory"); // GCC 12 leaves out what only the next line reads
  _tile_loadconfig(config);
  std::printf("cycles of %.2f GHz; a product is of 16 x 16 x 32 bf16\n", gigahertz);
  for (const char* what : {"zeros", "numbers between -1 and 1"}) {
    std::printf("operands are %s\n", what);
    one_by_one();
    blocks();
    stores();
    go_on();
    fill_with_numbers();
  }
  _tile_release();
  return 0;
}
