#include "tests/ptx_sim/machine/global_memory.h"

#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <cstring>

namespace deepgen::ptx_sim {
namespace {

constexpr int kRegionShift = 36; // the region's index in the upper bits of an address
constexpr size_t kWord = 4;

const std::vector<uint8_t>& poison() {
  static const std::vector<uint8_t> bytes(128, 0xff);
  return bytes;
}

std::string place(const GlobalMemory::Region& r, uint64_t address, size_t count) {
  return std::to_string(count) + " bytes at byte " + std::to_string(int64_t(address - r.base)) + " of " +
         r.name;
}

} // namespace

size_t GlobalMemory::add(const std::string& name, size_t bytes, size_t misalignment, bool writable) {
  Region r;
  r.name = name, r.writable = writable;
  r.base = (uint64_t(regions_.size() + 1) << kRegionShift) + 4096 + misalignment;
  r.lead = misalignment % kWord;
  bytes = (bytes + r.lead + kWord - 1) / kWord * kWord;
  r.bytes.assign(bytes, 0xff);
  r.owned.assign(bytes, 0);
  r.writers.resize(bytes), r.times.resize(bytes);
  regions_.push_back(std::move(r));
  return regions_.size() - 1;
}

void GlobalMemory::start_launch() {
  for (Region& r : regions_) {
    std::fill(r.writers.begin() + int64_t(r.changed_from), r.writers.begin() + int64_t(r.changed_to), 0);
    r.changed_from = r.changed_to = 0;
  }
  flags_.clear(), known_.clear();
}

const GlobalMemory::Region& GlobalMemory::find(uint64_t address, size_t count, bool reads) const {
  const uint64_t index = (address >> kRegionShift) - 1;
  if (index >= regions_.size())
    throw Fault("access outside of every operand: address " + std::to_string(address));
  const Region& r = regions_[index];
  const uint64_t at = address - r.base + r.lead;
  if (address + r.lead < r.base || at > r.bytes.size() || count > r.bytes.size() - at)
    throw Fault("out of bounds: " + place(r, address, count));
  size_t owned = 0;
  for (size_t i = 0; i < count; ++i) owned += r.owned[at + i];
  const bool in_word =
      address % kWord + count <= kWord; // and so, as `at` shows, one with a byte of the operand
  if (owned < count && !(reads && r.by_words && in_word))
    throw Fault("out of bounds: " + place(r, address, count) + ", of which elements own " +
                std::to_string(owned));
  return r;
}

const uint8_t* GlobalMemory::read(uint64_t address, size_t count, uint32_t who, bool read_only) const {
  const Region& r = find(address, count, true);
  const uint64_t at = address - r.base + r.lead;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t writer = r.writers[at + i];
    if (!writer || (writer == who && !read_only)) continue;
    const auto known = read_only ? known_.end() : known_.find({who, writer});
    if (known == known_.end() || known->second < r.times[at + i]) return poison().data();
  }
  return &r.bytes[at];
}

uint8_t* GlobalMemory::write(uint64_t address, size_t count, uint32_t who) {
  Region& r = const_cast<Region&>(find(address, count, false));
  if (!r.writable) throw Fault("writes an input: " + place(r, address, count));
  const uint64_t at = address - r.base + r.lead;
  for (size_t i = 0; i < count; ++i) {
    if (r.writers[at + i] && r.writers[at + i] != who)
      throw Fault("writes what another warp has written: " + place(r, address, count) + ", by warp " +
                  std::to_string((r.writers[at + i] - 1) % 1024) + " of cluster " +
                  std::to_string((r.writers[at + i] - 1) / 1024));
    r.writers[at + i] = who, r.times[at + i] = now_ + 1;
  }
  ++now_;
  r.change(at, count);
  return &r.bytes[at];
}

void GlobalMemory::release(uint64_t flag, uint32_t value, uint32_t who) {
  uint8_t* bytes = write(flag, sizeof value, who);
  if (std::equal(bytes, bytes + sizeof value, poison().data())) throw Fault("a flag that nobody has cleared");
  if (!std::memcmp(bytes, &value, sizeof value)) throw Fault("a flag that is set before the launch");
  std::memcpy(bytes, &value, sizeof value);
  flags_[flag] = {who, now_};
}

uint32_t GlobalMemory::acquire(uint64_t flag, uint32_t who) {
  find(flag, sizeof(uint32_t), true);
  const auto set = flags_.find(flag);
  if (set == flags_.end()) throw Fault("deadlock: waits for a flag that no block before has set");
  uint64_t& known = known_[{who, set->second.who}];
  known = std::max(known, set->second.time);
  uint32_t value;
  const Region& r = find(flag, sizeof value, true);
  std::memcpy(&value, &r.bytes[flag - r.base + r.lead], sizeof value);
  return value;
}

uint8_t* GlobalMemory::modify(uint64_t address, size_t count) {
  Region& r = const_cast<Region&>(find(address, count, false));
  if (!r.writable) throw Fault("writes an input: " + place(r, address, count));
  r.change(address - r.base + r.lead, count);
  return &r.bytes[address - r.base + r.lead];
}

} // namespace deepgen::ptx_sim
