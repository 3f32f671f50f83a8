#include "runtime/core/scratch.h"

#include <atomic>
#include <sched.h>
#include <sys/mman.h>

namespace deepgen::scratch {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr size_t kPage = 4096, kLine = 64;
constexpr uint32_t kSlots = 256, kFewestSlots = 16;

/// The head of a reservation; its slots follow. A flag a cache line, as neighbours belong to other threads.
struct Region {
  struct alignas(kLine) Flag {
    std::atomic<uint32_t> taken;
  };
  size_t slot_bytes;
  uint32_t slots;
  Region* older;
  Flag flags[kSlots];

  char* slot(uint32_t i) { return reinterpret_cast<char*>(this) + head_bytes() + i * slot_bytes; }
  size_t bytes() const { return head_bytes() + slots * slot_bytes; }
  bool in_use() const {
    for (const Flag& flag : flags)
      if (flag.taken.load(std::memory_order_acquire)) return true;
    return false;
  }
  static size_t head_bytes() { return (sizeof(Region) + kPage - 1) / kPage * kPage; }
};

/// The newest region has the largest slots. Older ones stay mapped, as a call may be using them.
std::atomic<Region*> newest{nullptr};
std::atomic<uint32_t> growing{0};

std::atomic<uint32_t> next_hint{0};
/// 1 + the slot that this thread used last, whose pages are in its caches. initial-exec: a lazily allocated
/// thread-local variable would call malloc inside a kernel call.
thread_local uint32_t hint __attribute__((tls_model("initial-exec"))) = 0;

Region* map_region(size_t slot_bytes) {
  // Fewer slots where address space is scarce (ulimit -v, strict overcommit); at least one for each of some
  // threads.
  for (uint32_t slots = kSlots; slots >= kFewestSlots; slots /= 4) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(slot_bytes, size_t(slots), &bytes) ||
        __builtin_add_overflow(bytes, Region::head_bytes(), &bytes))
      continue;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    Region* region = static_cast<Region*>(memory); // zero pages are a valid Region
    region->slot_bytes = slot_bytes;
    region->slots = slots;
    return region;
  }
  return nullptr;
}

bool large_enough(const Region* region, size_t bytes) { return region && region->slot_bytes >= bytes; }

} // namespace

bool reserve(size_t bytes) {
  if (!bytes || large_enough(newest.load(std::memory_order_acquire), bytes)) return true;
  if (bytes > SIZE_MAX / 2) return false;
  while (growing.exchange(1, std::memory_order_acquire)) sched_yield();
  Region* current = newest.load(std::memory_order_relaxed);
  bool ok = large_enough(current, bytes);
  if (!ok) {
    size_t slot_bytes = (bytes + kPage - 1) / kPage * kPage;
    // Doubling bounds how many reservations a growing set of libraries can leave behind.
    Region* region =
        current && current->slot_bytes > slot_bytes / 2 ? map_region(2 * current->slot_bytes) : nullptr;
    if (!region) region = map_region(slot_bytes);
    if (region) {
      region->older = current;
      newest.store(region, std::memory_order_release);
      ok = true;
    }
  }
  growing.store(0, std::memory_order_release);
  return ok;
}

void release() {
  for (Region* region = newest.exchange(nullptr, std::memory_order_acq_rel); region;) {
    Region* older = region->older;
    if (!region->in_use()) munmap(region, region->bytes());
    region = older;
  }
}

void reset_after_fork() {
  growing.store(0, std::memory_order_relaxed);
  for (Region* r = newest.load(std::memory_order_relaxed); r; r = r->older)
    for (Region::Flag& flag : r->flags) flag.taken.store(0, std::memory_order_relaxed);
}

Slot::Slot(size_t bytes) {
  if (!bytes) return;
  Region* region = newest.load(std::memory_order_acquire);
  if (!hint) hint = 1 + next_hint.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t tries = 0;; ++tries) {
    const uint32_t i = (hint - 1 + tries) % region->slots;
    std::atomic<uint32_t>& flag = region->flags[i].taken;
    if (!flag.load(std::memory_order_relaxed) && !flag.exchange(1, std::memory_order_acquire)) {
      hint = 1 + i;
      data_ = region->slot(i);
      flag_ = &flag;
      return;
    }
    if (tries % region->slots == region->slots - 1) sched_yield();
  }
}

Slot::~Slot() {
  if (flag_) static_cast<std::atomic<uint32_t>*>(flag_)->store(0, std::memory_order_release);
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::scratch
