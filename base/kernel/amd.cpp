#include "base/kernel/amd.h"

#include <algorithm>

namespace deepgen {
namespace {

struct Row {
  AmdArch arch;
  // The part that stands for the arch; shared memory is the arch's.
  const char* name;
  int64_t cores, l2_mib, clock_mhz, gb_per_second;
};

// LLVM, "User Guide for AMDGPU Backend", and the ISA documents (registers, waves, LDS); vendor data sheets
// (the rest). RDNA counts work-group processors.
constexpr Row kRows[] = {
    {{"gfx906", 64, 256, 4, 256, 10, 64 << 10, 64 << 10, false},
     "AMD Radeon Instinct MI50",
     60,
     4,
     1725,
     1024},
    {{"gfx90a", 64, 512, 8, 512, 8, 64 << 10, 64 << 10, true}, "AMD Instinct MI210", 104, 8, 1700, 1638},
    {{"gfx942", 64, 512, 8, 512, 8, 64 << 10, 64 << 10, true}, "AMD Instinct MI300X", 304, 32, 2100, 5300},
    {{"gfx950", 64, 512, 8, 512, 8, 160 << 10, 160 << 10, true}, "AMD Instinct MI355X", 256, 32, 2400, 8000},
    {{"gfx1100", 32, 1536, 24, 256, 16, 128 << 10, 64 << 10, false},
     "AMD Radeon RX 7900 XTX",
     48,
     6,
     2500,
     960},
    {{"gfx1201", 32, 1536, 24, 256, 16, 128 << 10, 64 << 10, false},
     "AMD Radeon RX 9070 XT",
     32,
     8,
     2970,
     640}};

} // namespace

int64_t AmdArch::waves(int64_t registers_of_lane, int64_t lds_of_block, int64_t threads_of_block) const {
  const int64_t each = std::max<int64_t>(granule, (registers_of_lane + granule - 1) / granule * granule);
  const int64_t block = (threads_of_block + wave - 1) / wave,
                by_registers = std::min(registers / each, most_waves);
  // A block's waves are dealt out to the SIMDs, and all of them must fit at once.
  int64_t blocks = by_registers * simds / block;
  if (lds_of_block > 0) blocks = std::min(blocks, lds / lds_of_block);
  return blocks == 0 ? 0 : std::max<int64_t>(1, std::min(by_registers, blocks * block / simds));
}

const AmdArch* find_amd(const std::string& arch) {
  for (const Row& r : kRows)
    if (arch == r.arch.name) return &r.arch;
  return nullptr;
}

bool is_amd(const std::string& arch) { return find_amd(arch) != nullptr; }

std::string amd_archs() {
  std::string text;
  for (const Row& r : kRows) text += (text.empty() ? "" : " ") + std::string(r.arch.name);
  return text;
}

Device generic_amd(const AmdArch& arch) {
  const Row& r =
      *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& x) { return &x.arch == &arch; });
  Device d;
  d.arch = arch.name, d.name = r.name, d.present = false, d.isa = 0, d.cores = r.cores;
  d.l1d = 0, d.l2 = r.l2_mib << 20, d.l3 = 0;
  d.shared_block = arch.lds_block, d.shared_multiprocessor = arch.lds;
  d.clock_khz = r.clock_mhz * 1000, d.memory_bandwidth = r.gb_per_second * 1000000000;
  return d;
}

} // namespace deepgen
