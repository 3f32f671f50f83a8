#include "runtime/cpu/cpu.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace deepgen::cpu {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

#if defined(__x86_64__)

enum Leaf { leaf1_ecx, leaf1_edx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax, extended_ecx, leaf_count };

/// Which registers the operating system saves: without that, an instruction faults whatever CPUID says.
enum State { none, ymm, zmm, tmm };

struct Bit {
  const char* name;
  Leaf leaf;
  int bit;
  State state;
  int level; ///< the x86-64 level that demands it, 0: none does
};

// Sorted by name.
constexpr Bit kBits[] = {
    {"amx-bf16", leaf7_edx, 22, tmm, 0},   {"amx-int8", leaf7_edx, 25, tmm, 0},
    {"amx-tile", leaf7_edx, 24, tmm, 0},   {"avx", leaf1_ecx, 28, ymm, 3},
    {"avx2", leaf7_ebx, 5, ymm, 3},        {"avx512bf16", leaf7_1_eax, 5, zmm, 0},
    {"avx512bw", leaf7_ebx, 30, zmm, 4},   {"avx512cd", leaf7_ebx, 28, zmm, 4},
    {"avx512dq", leaf7_ebx, 17, zmm, 4},   {"avx512f", leaf7_ebx, 16, zmm, 4},
    {"avx512fp16", leaf7_edx, 23, zmm, 0}, {"avx512vl", leaf7_ebx, 31, zmm, 4},
    {"avx512vnni", leaf7_ecx, 11, zmm, 0}, {"avxvnni", leaf7_1_eax, 4, ymm, 0},
    {"bmi", leaf7_ebx, 3, none, 3},        {"bmi2", leaf7_ebx, 8, none, 3},
    {"cx16", leaf1_ecx, 13, none, 2},      {"f16c", leaf1_ecx, 29, ymm, 3},
    {"fma", leaf1_ecx, 12, ymm, 3},        {"lzcnt", extended_ecx, 5, none, 3},
    {"movbe", leaf1_ecx, 22, none, 3},     {"popcnt", leaf1_ecx, 23, none, 2},
    {"sahf", extended_ecx, 0, none, 2},    {"sse2", leaf1_edx, 26, none, 1},
    {"sse3", leaf1_ecx, 0, none, 2},       {"sse4.1", leaf1_ecx, 19, none, 2},
    {"sse4.2", leaf1_ecx, 20, none, 2},    {"ssse3", leaf1_ecx, 9, none, 2},
};
static_assert(sizeof(kBits) / sizeof(kBits[0]) <= max_features);

struct Probe {
  uint32_t leaves[leaf_count] = {};
  bool saved[4] = {true, false, false, false}; ///< by State

  Probe() {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) leaves[leaf1_ecx] = c, leaves[leaf1_edx] = d;
    const bool osxsave = leaves[leaf1_ecx] & (1u << 27);
    uint32_t subleaves = 0;
    if (__get_cpuid_count(7, 0, &subleaves, &b, &c, &d))
      leaves[leaf7_ebx] = b, leaves[leaf7_ecx] = c, leaves[leaf7_edx] = d;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) leaves[leaf7_1_eax] = a;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) leaves[extended_ecx] = c;
    if (!osxsave) return;
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved[ymm] = (low & 0x6) == 0x6;
    saved[zmm] = (low & 0xe6) == 0xe6;
    saved[tmm] = (low & 0x60000) == 0x60000;
  }

  bool has(const Bit& bit) const { return (leaves[bit.leaf] >> bit.bit & 1) && saved[bit.state]; }
};

uint32_t probe_level() {
  const Probe probe;
  int level = 4;
  for (const Bit& bit : kBits)
    if (bit.level && !probe.has(bit) && bit.level <= level) level = bit.level - 1;
  return level < 1 ? 1 : uint32_t(level);
}

/// The kernel saves tiles only for processes that have asked (Linux, Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr long arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(arch_prctl), "D"(request_permission), "S"(tile_data)
                   : "rcx", "r11", "memory");
  return result == 0;
}

/// An extension, and the level below which no kernel uses it.
struct IsaExtension {
  uint32_t bit, level;
  const char* features[3];
};
constexpr IsaExtension kExtensions[] = {
    {DEEPGEN_ISA_AVXVNNI, 3, {"avxvnni"}},
    {DEEPGEN_ISA_AVX512VNNI, 4, {"avx512vnni"}},
    {DEEPGEN_ISA_AVX512BF16, 4, {"avx512bf16"}},
    {DEEPGEN_ISA_AMX, 4, {"amx-bf16", "amx-int8", "amx-tile"}},
};

uint32_t probe_extensions() {
  const Probe probe;
  const auto has = [&](const char* name) {
    for (const Bit& bit : kBits)
      if (std::strcmp(bit.name, name) == 0) return probe.has(bit);
    return false;
  };
  uint32_t found = 0;
  for (const IsaExtension& x : kExtensions) {
    bool all = true;
    for (const char* feature : x.features) all = all && (!feature || has(feature));
    if (all && (x.bit != DEEPGEN_ISA_AMX || may_use_tiles())) found |= x.bit;
  }
  return found;
}

#endif

std::atomic<uint32_t> cached_level{~0u}, cached_extensions{~0u};

} // namespace

ModelName::ModelName() {
#if defined(__x86_64__)
  constexpr uint32_t first = 0x80000002u, leaves = 3;
  uint32_t words[4 * leaves] = {};
  for (uint32_t i = 0; i < leaves; ++i)
    if (!__get_cpuid(first + i, words + 4 * i, words + 4 * i + 1, words + 4 * i + 2, words + 4 * i + 3))
      return;
  const char* begin = reinterpret_cast<const char*>(words);
  size_t length = strnlen(begin, sizeof words);
  for (; length && *begin == ' '; ++begin) --length;
  for (; length && begin[length - 1] == ' ';) --length;
  std::memcpy(text, begin, length);
#endif
}

bool is_model(const char* name) { return std::strcmp(name, ModelName().text) == 0; }

uint32_t hardware_level() {
  uint32_t level = cached_level.load(std::memory_order_relaxed);
  if (level != ~0u) return level;
#if defined(__x86_64__)
  level = probe_level();
#else
  level = 0;
#endif
  cached_level.store(level, std::memory_order_relaxed);
  return level;
}

uint32_t usable_isa() {
  const uint32_t level = deepgen_cpu_level();
  uint32_t extensions = cached_extensions.load(std::memory_order_relaxed);
  if (extensions == ~0u) {
#if defined(__x86_64__)
    extensions = probe_extensions();
#else
    extensions = 0;
#endif
    cached_extensions.store(extensions, std::memory_order_relaxed);
  }
  const char* text = std::getenv("DEEPGEN_CPU_LEVEL");
  if (text && text[0] >= '1' && text[0] <= '4' && !text[1]) return level; // that level and nothing else
  uint32_t isa = level;
#if defined(__x86_64__)
  for (const IsaExtension& x : kExtensions)
    if (level >= x.level) isa |= extensions & x.bit;
#endif
  return isa;
}

unsigned features(const char* (&names)[max_features]) {
  unsigned count = 0;
#if defined(__x86_64__)
  const Probe probe;
  for (const Bit& bit : kBits)
    if (probe.has(bit)) names[count++] = bit.name;
#else
  (void)names;
#endif
  return count;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::cpu

uint32_t deepgen_cpu_level(void) {
  const uint32_t level = deepgen::cpu::hardware_level();
  // For tests and debugging; it can only lower the level, as raising it would be a SIGILL.
  const char* text = std::getenv("DEEPGEN_CPU_LEVEL");
  if (text && text[0] >= '1' && text[0] <= '4' && (!text[1] || (text[1] == '+' && !text[2])) &&
      uint32_t(text[0] - '0') < level)
    return text[0] - '0';
  return level;
}
