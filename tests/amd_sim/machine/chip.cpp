#include "tests/amd_sim/machine/chip.h"

#include "tests/ptx_sim/program/fault.h"

namespace deepgen::amd_sim {
namespace {

uint64_t lanes_from(uint32_t first, uint32_t count) {
  return (count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << first;
}

std::vector<uint64_t> in_a_row(uint32_t wave, uint32_t count) {
  std::vector<uint64_t> all;
  for (uint32_t first = 0; first < wave; first += count) all.push_back(lanes_from(first, count));
  return all;
}

} // namespace

Chip::Chip(const std::string& name) : arch(name) {
  const bool good = name.starts_with("gfx") && name.size() >= 6 &&
                    name.find_first_not_of("0123456789abcdef", 3) == std::string::npos;
  if (!good) throw ptx_sim::Fault("no gfx target: " + name);
  major = std::stoi(name.substr(3, name.size() - 5));
  wave = major >= 10 ? 32 : 64;
  cdna4 = name == "gfx950";
  waits_at_barrier = name == "gfx900" || name == "gfx906" || name == "gfx908";
  fnuz = name == "gfx940" || name == "gfx941" || name == "gfx942";
  stores_counted_apart = major >= 10;
  flushes = name == "gfx90a";
}

/// LLVM, AMDGPUUsage, "s_waitcnt": the fields' places by generation.
WaitCount Chip::decode_waitcnt(uint32_t x) const {
  const auto field = [x](uint32_t low, uint32_t bits) { return x >> low & ((1u << bits) - 1); };
  uint32_t memory, lds, memory_bits = 6, lds_bits = 6;
  if (major == 9)
    memory = field(0, 4) | field(14, 2) << 4, lds = field(8, 4), lds_bits = 4;
  else if (major == 10)
    memory = field(0, 4) | field(14, 2) << 4, lds = field(8, 6);
  else if (major == 11)
    memory = field(10, 6), lds = field(4, 6);
  else
    throw ptx_sim::Fault(arch + " has no s_waitcnt");
  WaitCount w;
  if (memory + 1 < 1u << memory_bits) w.vector_memory = memory;
  if (lds + 1 < 1u << lds_bits) w.lds = lds;
  return w;
}

/// gfx906, gfx90a, gfx942: 32 banks, 128 bytes a clock; the groups of ds_read_b128 and ds_write_b128 are
/// those of AMD's article "Avoiding LDS Bank Conflicts on AMD GPUs Using CK-Tile Framework" and of the CK
/// Tile documentation. gfx950: as measured by HipKittens (64 banks for 64- and 128-bit reads). Groups of the
/// other widths, and of RDNA, are lanes in a row: nobody has published others.
Chip::Phases Chip::lds_phases(uint32_t bytes, bool write) const {
  const auto w = uint32_t(wave);
  if (cdna4 && !write && bytes > 12) {
    const uint64_t first = lanes_from(0, 4) | lanes_from(12, 4) | lanes_from(20, 8);
    const uint64_t second = lanes_from(4, 8) | lanes_from(16, 4) | lanes_from(28, 4);
    return {64, {first, second, first << 32, second << 32}};
  }
  if (cdna4 && !write && bytes > 4 && bytes <= 8) return {64, in_a_row(w, 32)};
  if (major == 9 && !write && bytes > 12) {
    std::vector<uint64_t> all;
    for (uint32_t base : {0u, 32u})
      for (uint32_t i = 0; i < 4; ++i)
        all.push_back(lanes_from(base + 4 * i, 4) | lanes_from(base + 16 + 4 * (i ^ 1), 4));
    return {32, all};
  }
  return {32, in_a_row(w, bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8)};
}

} // namespace deepgen::amd_sim
