#include "measure/loader.h"

#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace deepgen {
namespace {

constexpr std::array<const char*, DEEPGEN_ARG_COUNT> kArgNames = {DEEPGEN_ARG_NAMES};

constexpr unsigned char kTrap = 0xcc; // int3

deepgen_arg slot_of(const std::string& name, const Kernel& kernel) {
  for (size_t i = 0; i < kArgNames.size(); ++i)
    if (name == kArgNames[i])
      return deepgen_arg(i);
  throw Error("unknown kernel argument '" + name + "'", kernel.choice.text(),
              "this deepgen-measure is older than the deepgen that compiled the kernel",
              "use the two of one version");
}

uint64_t bits(double value, Type type) {
  uint64_t out = 0;
  if (type == Type::f32) {
    const float narrow = float(value);
    std::memcpy(&out, &narrow, sizeof narrow);
  } else {
    std::memcpy(&out, &value, sizeof value);
  }
  return out;
}

} // namespace

LoadedKernel::LoadedKernel(const Kernel& k)
    : type_(k.problem.accumulate), tiles_m_(k.tiles_m), tiles_n_(k.tiles_n), tiles_b_(k.tiles_b) {
  constexpr int64_t kPage = 4096;
  if (k.entry < 0 || size_t(k.entry) >= k.code.size() || k.align < 1 || k.align > kPage || k.tiles_m < 1 ||
      k.tiles_n < 1 || k.tiles_b < 1 || k.workspace < 0)
    throw Error("malformed kernel description", k.choice.text(),
                "entry " + std::to_string(k.entry) + " of " + std::to_string(k.code.size()) +
                    " bytes, alignment " + std::to_string(k.align),
                "delete the kernel file and build again");
  for (const std::string& name : k.args)
    slots_.push_back(slot_of(name, k));
  bytes_ = (k.code.size() + kPage - 1) / kPage * kPage;
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw Error("cannot map memory for a kernel", k.choice.text(), std::strerror(errno));
  std::memset(pages, kTrap, bytes_);
  std::memcpy(pages, k.code.data(), k.code.size());
  pages_ = pages;
  if (mprotect(pages, bytes_, PROT_READ | PROT_EXEC) != 0) {
    const std::string why = std::strerror(errno);
    munmap(pages, bytes_);
    throw Error("cannot make a kernel's memory executable", k.choice.text(), why,
                "allow executable anonymous memory for this process (SELinux, noexec policies)");
  }
  entry_ = reinterpret_cast<deepgen_cpu_entry>(static_cast<char*>(pages) + k.entry);
}

LoadedKernel::~LoadedKernel() {
  if (pages_)
    munmap(pages_, bytes_);
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : pages_(other.pages_), bytes_(other.bytes_), entry_(other.entry_), slots_(std::move(other.slots_)),
      type_(other.type_), tiles_m_(other.tiles_m_), tiles_n_(other.tiles_n_), tiles_b_(other.tiles_b_) {
  other.pages_ = nullptr;
}

std::vector<uint64_t> LoadedKernel::arguments(const CallBuffers& x, const TileRanges& r) const {
  const auto pointer = [](const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); };
  const uint64_t values[DEEPGEN_ARG_COUNT] = {
      pointer(x.a),         pointer(x.b),         pointer(x.c),         pointer(x.d),
      pointer(x.bias),      uint64_t(x.lda),      uint64_t(x.ldb),      uint64_t(x.ldc),
      uint64_t(x.ldd),      uint64_t(x.stride_a), uint64_t(x.stride_b), uint64_t(x.stride_c),
      uint64_t(x.stride_d), bits(x.alpha, type_), bits(x.beta, type_),  pointer(x.workspace),
      uint64_t(r.m0),       uint64_t(r.m1),       uint64_t(r.n0),       uint64_t(r.n1),
      uint64_t(r.b0),       uint64_t(r.b1)};
  std::vector<uint64_t> block;
  block.reserve(slots_.size());
  for (deepgen_arg slot : slots_)
    block.push_back(values[slot]);
  return block;
}

} // namespace deepgen
