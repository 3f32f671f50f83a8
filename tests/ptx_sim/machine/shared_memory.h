// SharedMemory: one block's, with the last writer and the readers of every byte, so that conflicting accesses
// of two warps without a barrier between them are found.
#pragma once

#include "tests/ptx_sim/machine/order.h"

#include <string>

namespace deepgen::ptx_sim {

class SharedMemory {
public:
  /// Of all agents the first `readers` read.
  SharedMemory(size_t bytes, size_t readers);

  size_t size() const { return bytes_.size(); }
  /// Bytes that nothing has written are NaN in every floating-point type.
  void start_block();

  /// Throws Fault where [offset, offset + count) is out of bounds, or a conflicting access is not ordered
  /// with this one.
  const uint8_t* read(uint64_t offset, size_t count, const Access&);
  uint8_t* write(uint64_t offset, size_t count, const Access&);
  /// Without any check.
  const uint8_t* peek(uint64_t offset) const { return &bytes_[offset]; }
  /// A reading that was under way since `begun`: nothing may have written meanwhile. Recorded as the agent's
  /// and clock's of `done`.
  void finish_read(uint64_t offset, size_t count, const Access& begun, const Access& done);

private:
  struct Writer {
    Agent agent = 0;
    uint32_t clock = 0, line = 0;
    bool generic = true;
  };
  /// Calls `visit` with the first byte of every cell: of a whole word, or of one byte where a word was
  /// accessed in parts.
  template <typename Visit>
  void for_each_cell(uint64_t offset, size_t count, const Visit& visit);
  void split(size_t word);
  void check_bounds(uint64_t offset, size_t count) const;
  void check_written(size_t cell, const Access&, bool async_proxy) const;
  void check_read(size_t cell, const Access&) const;
  [[noreturn]] void fail(size_t cell, const Access&, const std::string& what) const;

  std::vector<uint8_t> bytes_, split_;
  std::vector<Writer> writers_;
  std::vector<uint32_t> reads_; ///< [cell][reader]: the clock of its last reading
  size_t readers_;
};

} // namespace deepgen::ptx_sim
