#include "tests/ptx_sim/machine/shared_memory.h"

#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {

SharedMemory::SharedMemory(size_t bytes, size_t readers)
    : bytes_((bytes + 3) / 4 * 4), split_(bytes_.size() / 4), writers_(bytes_.size()),
      reads_(bytes_.size() * readers), readers_(readers) {}

void SharedMemory::start_block() { std::fill(bytes_.begin(), bytes_.end(), uint8_t(0xff)); }

void SharedMemory::check_bounds(uint64_t offset, size_t count) const {
  if (offset > bytes_.size() || count > bytes_.size() - offset)
    throw Fault("shared memory out of bounds: " + std::to_string(count) + " bytes at " +
                std::to_string(offset) + " of " + std::to_string(bytes_.size()));
}

void SharedMemory::split(size_t word) {
  split_[word] = 1;
  for (size_t i = 1; i < 4; ++i) {
    writers_[4 * word + i] = writers_[4 * word];
    std::copy_n(&reads_[4 * word * readers_], readers_, &reads_[(4 * word + i) * readers_]);
  }
}

template <typename Visit>
void SharedMemory::for_each_cell(uint64_t offset, size_t count, const Visit& visit) {
  check_bounds(offset, count);
  const size_t end = offset + count;
  for (size_t word = offset / 4; 4 * word < end; ++word) {
    const bool whole = offset <= 4 * word && 4 * word + 4 <= end;
    if (!whole && !split_[word]) split(word);
    if (!split_[word]) {
      visit(4 * word);
      continue;
    }
    for (size_t i = std::max<size_t>(offset, 4 * word); i < std::min(end, 4 * word + 4); ++i) visit(i);
  }
}

void SharedMemory::fail(size_t cell, const Access& a, const std::string& what) const {
  const Writer& w = writers_[cell];
  throw Fault(
      "shared memory race at byte " + std::to_string(cell) + ": agent " + std::to_string(a.agent) + " " +
      what +
      (w.clock ? "; last written by agent " + std::to_string(w.agent) + " in line " + std::to_string(w.line)
               : ""));
}

void SharedMemory::check_written(size_t cell, const Access& a, bool async_proxy) const {
  const Writer& w = writers_[cell];
  if (w.clock > a.known->seen[w.agent]) fail(cell, a, "does not know that the write has happened");
  if (async_proxy && w.generic && w.clock > a.known->fenced[w.agent])
    fail(cell, a, "reaches it by the async proxy without a fence.proxy.async after the write");
}

void SharedMemory::check_read(size_t cell, const Access& a) const {
  const uint32_t *reads = &reads_[cell * readers_], *seen = a.known->seen.data();
  bool any = false; // without a branch for each, which takes three times as long
  for (size_t r = 0; r < readers_; ++r) any |= reads[r] > seen[r];
  if (!any) return;
  for (size_t r = 0; r < readers_; ++r)
    if (reads[r] > seen[r])
      fail(cell, a, "writes without knowing that agent " + std::to_string(r) + " has read");
}

const uint8_t* SharedMemory::read(uint64_t offset, size_t count, const Access& a) {
  for_each_cell(offset, count, [&](size_t cell) {
    check_written(cell, a, a.async_proxy);
    reads_[cell * readers_ + a.agent] = a.clock;
  });
  return &bytes_[offset];
}

uint8_t* SharedMemory::write(uint64_t offset, size_t count, const Access& a) {
  for_each_cell(offset, count, [&](size_t cell) {
    check_written(cell, a, a.async_proxy);
    check_read(cell, a);
    writers_[cell] = {a.agent, a.clock, a.line, !a.async_proxy};
  });
  return &bytes_[offset];
}

void SharedMemory::finish_read(uint64_t offset, size_t count, const Access& begun, const Access& done) {
  for_each_cell(offset, count, [&](size_t cell) {
    const Writer& w = writers_[cell];
    if (w.clock > begun.known->seen[w.agent]) fail(cell, begun, "was still reading when it was written");
    reads_[cell * readers_ + done.agent] = done.clock;
  });
}

} // namespace deepgen::ptx_sim
