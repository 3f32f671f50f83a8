// GlobalMemory: the operands of a call, each a region of its own. Only bytes that belong to an element may be
// touched, but of an operand whose rows are not aligned to words, all words from the first element to the
// last may be read; they hold poison where no element is. What one warp writes in a launch no other may write
// in the same launch, and one that reads it gets poison too: it is no fault as long as nothing is made of it.
// Flags let others read: who has acquired what another released sees all that this one wrote before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace deepgen::ptx_sim {

/// Of a vector that is zero at first: pages of the system's, which are no memory until they are written. Most
/// of an operand's bytes are never written.
template <typename T>
struct ZeroPages {
  using value_type = T;
  ZeroPages() = default;
  template <typename U>
  ZeroPages(const ZeroPages<U>&) {}
  T* allocate(size_t count) {
    void* memory = std::calloc(count, sizeof(T));
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  template <typename U>
  void construct(U*) {} // by resize(): it is zero
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const ZeroPages&) const = default;
};

class GlobalMemory {
public:
  struct Region {
    std::string name;
    uint64_t base = 0;
    bool writable = false;
    bool by_words = false; ///< what lies between its elements may be read, a word at a time
    std::vector<uint8_t>
        bytes; ///< all 0xff at first: NaN in every floating-point type; some more than the operand's
    std::vector<uint8_t> owned;                         ///< whether an element owns the byte
    std::vector<uint32_t, ZeroPages<uint32_t>> writers; ///< in this launch: who, or 0
    std::vector<uint64_t, ZeroPages<uint64_t>> times;   ///< when they wrote, in writes of the launch
    size_t lead = 0;                                    ///< bytes before `base`
    size_t changed_from = 0, changed_to = 0;            ///< in this launch: no byte outside was written
    void change(size_t from, size_t count) {
      if (changed_from == changed_to) changed_from = from, changed_to = from + count;
      changed_from = std::min(changed_from, from), changed_to = std::max(changed_to, from + count);
    }
  };

  /// `misalignment`: bytes by which the region's start misses 256-byte alignment. Returns its index.
  size_t add(const std::string& name, size_t bytes, size_t misalignment, bool writable);
  Region& operator[](size_t index) { return regions_[index]; }
  const Region& operator[](size_t index) const { return regions_[index]; }
  /// There must be one of that name.
  Region& named(const std::string& name) {
    return *std::ranges::find_if(regions_, [&](const Region& x) { return x.name == name; });
  }

  void start_launch();
  /// `who`: the accessing warp, not 0; `read_only`: by an instruction that does not see this launch's writes.
  /// Up to 128 bytes. Throws Fault for bytes that no element owns.
  const uint8_t* read(uint64_t address, size_t count, uint32_t who, bool read_only) const;
  uint8_t* write(uint64_t address, size_t count, uint32_t who);
  /// For atomic operations, which may meet.
  uint8_t* modify(uint64_t address, size_t count);
  /// A flag of 4 bytes, which must have had another value before the launch: one that is set already lets
  /// others go on too soon.
  void release(uint64_t flag, uint32_t value, uint32_t who);
  /// Throws Fault where nobody has released: as blocks run one after another, that would never end.
  uint32_t acquire(uint64_t flag, uint32_t who);

  uint64_t copies = 0; ///< tensor copies from it
  uint64_t empty_copies =
      0; ///< those of boxes without an element of the tensor: the hardware is slow with them

private:
  const Region& find(uint64_t address, size_t count, bool reads) const;
  std::vector<Region> regions_;
  struct Release {
    uint32_t who;
    uint64_t time;
  };
  std::map<uint64_t, Release> flags_;                       ///< of this launch, by address
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> known_; ///< [reader, writer]: until when
  uint64_t now_ = 0;
};

} // namespace deepgen::ptx_sim
