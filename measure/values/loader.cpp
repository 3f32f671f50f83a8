#include "measure/values/loader.h"

#include "base/text/memory.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace deepgen {
namespace {

constexpr std::array<const char*, DEEPGEN_ARG_COUNT> kArgNames = {DEEPGEN_ARG_NAMES};

constexpr unsigned char kTrap = 0xcc; // int3

deepgen_arg slot_of(const std::string& name, const Kernel& kernel) {
  for (size_t i = 0; i < kArgNames.size(); ++i)
    if (name == kArgNames[i]) return deepgen_arg(i);
  throw Error("unknown kernel argument '" + name + "'", kernel.choice.text(),
              "this deepgen-measure is older than the deepgen that compiled the kernel",
              "use the two of one version");
}

} // namespace

uint64_t argument(double value, Type type) {
  uint64_t out = 0;
  if (type == Type::f32) {
    const float narrow = float(value);
    std::memcpy(&out, &narrow, sizeof narrow);
  } else if (type == Type::i32) {
    const int32_t whole = int32_t(value);
    std::memcpy(&out, &whole, sizeof whole);
  } else {
    std::memcpy(&out, &value, sizeof value);
  }
  return out;
}

LoadedKernel::LoadedKernel(const Kernel& k) : tiles_{k.tiles_m, k.tiles_n, k.tiles_b}, rules_(k.tile_rules) {
  constexpr int64_t kPage = 4096;
  if (k.entry < 0 || size_t(k.entry) >= k.code.size() || k.align < 1 || k.align > kPage || k.tiles_m < 1 ||
      k.tiles_n < 1 || k.tiles_b < 1 || k.workspace < 0)
    throw Error("malformed kernel description", k.choice.text(),
                "entry " + std::to_string(k.entry) + " of " + std::to_string(k.code.size()) +
                    " bytes, alignment " + std::to_string(k.align),
                "delete the kernel file and build again");
  for (const std::string& name : k.args) slots_.push_back(slot_of(name, k));
  bytes_ = (k.code.size() + kPage - 1) / kPage * kPage;
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw no_memory("not enough memory for a kernel's code", k.choice.text(), int64_t(bytes_), errno);
  std::memset(pages, kTrap, bytes_);
  std::memcpy(pages, k.code.data(), k.code.size());
  pages_ = pages;
  if (mprotect(pages, bytes_, PROT_READ | PROT_EXEC) != 0) {
    const std::string why = std::strerror(errno);
    munmap(pages, bytes_);
    throw HostFault(
        "cannot make a kernel's memory executable", k.choice.text(), why,
        "allow executable anonymous memory for this process (a policy of SELinux, PaX or systemd's "
        "MemoryDenyWriteExecute forbids it), and run the same command again: it goes on here");
  }
  entry_ = reinterpret_cast<deepgen_cpu_entry>(static_cast<char*>(pages) + k.entry);
}

LoadedKernel::~LoadedKernel() {
  if (pages_) munmap(pages_, bytes_);
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : pages_(other.pages_), bytes_(other.bytes_), entry_(other.entry_), slots_(std::move(other.slots_)),
      tiles_(other.tiles_), rules_(other.rules_) {
  other.pages_ = nullptr;
}

TileRanges LoadedKernel::full_range(const SlotValues& values) const {
  const auto size = [&](deepgen_arg slot) { return int64_t(values[slot]); };
  const Sizes sizes = {size(DEEPGEN_ARG_M), size(DEEPGEN_ARG_N), size(DEEPGEN_ARG_K),
                       size(DEEPGEN_ARG_BATCH)};
  const auto tiles = [&](size_t i) { return rules_[i].exists() ? rules_[i].at(sizes) : tiles_[i]; };
  return {0, tiles(0), 0, tiles(1), 0, tiles(2)};
}

std::vector<uint64_t> LoadedKernel::arguments(SlotValues values, const TileRanges& r) const {
  values[DEEPGEN_ARG_M0] = uint64_t(r.m0);
  values[DEEPGEN_ARG_M1] = uint64_t(r.m1);
  values[DEEPGEN_ARG_N0] = uint64_t(r.n0);
  values[DEEPGEN_ARG_N1] = uint64_t(r.n1);
  values[DEEPGEN_ARG_B0] = uint64_t(r.b0);
  values[DEEPGEN_ARG_B1] = uint64_t(r.b1);
  std::vector<uint64_t> block;
  block.reserve(slots_.size());
  for (deepgen_arg slot : slots_) block.push_back(values[slot]);
  return block;
}

} // namespace deepgen
