#include "measure/values/buffers.h"

#include "base/text/memory.h"
#include "measure/process/fault.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace deepgen {
namespace {

constexpr int64_t kPage = 4096;
/// Address space only. Wide enough that an access one row off still lands in it.
constexpr int64_t kGuardBytes = 1 << 20;
constexpr int64_t kVectorBytes = 64;
constexpr int64_t kZoneBytes =
    256; ///< canaries before the first element, and behind the last one where there is room

} // namespace

GuardedMatrix::GuardedMatrix(const char* name, Type type, const View& view, Guard guard, bool misaligned)
    : view_(view), bytes_(size_of(type)) {
  const int64_t extent = view.extent() * bytes_;
  const int64_t inner = (extent + kZoneBytes + kVectorBytes + kPage - 1) / kPage * kPage;
  mapped_ = size_t(inner + 2 * kGuardBytes);
  void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw no_memory("not enough memory to measure", name, int64_t(mapped_), errno);
  mapping_ = static_cast<char*>(memory);
  first_ = mapping_ + kGuardBytes;
  last_ = first_ + inner;
  if (mprotect(first_, size_t(inner), PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(mapping_, mapped_);
    throw no_memory("not enough memory to measure", name, inner, error);
  }
  // The guard must touch the operand, which fixes the address; where that is aligned by chance, one element
  // is given up.
  data_ = guard == Guard::behind ? last_ - extent : first_;
  const bool aligned = reinterpret_cast<uintptr_t>(data_) % uintptr_t(2 * bytes_) == 0;
  if (misaligned && aligned) data_ += guard == Guard::behind ? -bytes_ : bytes_;
  region_ = fault::add_region(name, mapping_, mapping_ + mapped_, data_, data_ + extent);
}

GuardedMatrix::~GuardedMatrix() {
  if (!mapping_) return;
  fault::remove_region(region_);
  munmap(mapping_, mapped_);
}

GuardedMatrix::GuardedMatrix(GuardedMatrix&& o) noexcept
    : view_(o.view_), bytes_(o.bytes_), mapping_(o.mapping_), first_(o.first_), last_(o.last_),
      data_(o.data_), mapped_(o.mapped_), region_(o.region_) {
  o.mapping_ = nullptr;
}

void GuardedMatrix::poison() {
  std::fill(reinterpret_cast<uint32_t*>(first_), reinterpret_cast<uint32_t*>(last_), canary);
}

void GuardedMatrix::fill(const char* dense) {
  poison();
  const size_t row_bytes = size_t(view_.columns * bytes_);
  for (int64_t entry = 0; entry < view_.batch; ++entry)
    for (int64_t r = 0; r < view_.rows; ++r, dense += row_bytes) std::memcpy(row(entry, r), dense, row_bytes);
}

void GuardedMatrix::make_read_only() {
  if (mprotect(first_, size_t(last_ - first_), PROT_READ) !=
      0) // the kernel has no room for another mapping, say
    throw no_memory("cannot protect an operand against writing", "mprotect", last_ - first_, errno);
}

std::string GuardedMatrix::damage_between(const char* begin, const char* end) const {
  // Elements of one or two bytes begin and end within a canary.
  char pattern[sizeof canary];
  std::memcpy(pattern, &canary, sizeof canary);
  const auto unit = std::min<int64_t>(bytes_, sizeof canary);
  for (; begin < end; begin += unit)
    if (std::memcmp(begin, pattern + size_t(begin - first_) % sizeof canary, size_t(unit)) != 0)
      return "byte " + std::to_string(begin - data_);
  return "";
}

std::string GuardedMatrix::damage() const {
  if (auto at = damage_between(first_, data_); !at.empty()) return "written before the first element, " + at;
  const char* cursor = data_;
  for (int64_t entry = 0; entry < view_.batch; ++entry)
    for (int64_t r = 0; r < view_.rows; ++r) {
      const char* begin = row(entry, r);
      if (auto at = damage_between(cursor, begin); !at.empty())
        return "written between rows, before row " + std::to_string(r) + " of batch entry " +
               std::to_string(entry) + ", " + at;
      cursor = begin + view_.columns * bytes_;
    }
  if (auto at = damage_between(cursor, last_); !at.empty()) return "written behind the last element, " + at;
  return "";
}

namespace {
int64_t whole_lines(int64_t bytes) {
  return std::max<int64_t>(bytes, 1) + (-std::max<int64_t>(bytes, 1) & 63);
}

/// A config may ask for more than any such machine has. That is the config's fault.
int64_t possible(int64_t bytes) {
  if (const int64_t all = physical_memory(); all && bytes > all)
    throw Error("the config wants more workspace than this machine has memory", bytes_text(bytes),
                "of " + bytes_text(all));
  return bytes;
}
} // namespace

GuardedWorkspace::GuardedWorkspace(int64_t bytes)
    : bytes_(possible(bytes)),
      matrix_("the workspace", Type::f32, View::dense(1, whole_lines(bytes) / 4, 1), Guard::behind, false) {}

} // namespace deepgen
