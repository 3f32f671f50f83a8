// A model of AMX's tiles: does one instruction, and checks what the hardware checks (Intel's manual, volume
// 1, chapter 18, and the pages of the instructions).
#pragma once

#include "tests/amx_emu/amx_decode.h"

#include <array>

namespace deepgen::amx {

inline constexpr int tile_count = 8, most_rows = 16, most_bytes = 64;

/// Registers of 64 bits by their numbers in machine code; where the next instruction is.
struct Registers {
  std::array<uint64_t, 16> general{};
  uint64_t next = 0;
};

class Machine {
public:
  /// Null, or what is wrong: a literal. Then the instruction has done nothing. Allocates nothing: it runs in
  /// a handler of signals.
  const char* step(const Instruction&, const Registers&);

  bool configured() const { return palette_ == 1; }
  int64_t count(Op op) const { return counts_[size_t(op)]; }
  int64_t products() const;
  void forget_counts() { counts_ = {}; }

  using Row = std::array<uint8_t, most_bytes>;
  using Tile = std::array<Row, most_rows>;
  const Tile& tile(int number) const { return tiles_[size_t(number)]; }

private:
  struct Shape {
    int rows = 0, bytes = 0;
    bool configured() const { return rows != 0; }
  };
  const Shape& shape(int number) const { return shapes_[size_t(number)]; }
  const char* load_config(uint64_t address);
  const char* store_config(uint64_t address) const;
  const char* move(const Instruction&, uint64_t address, int64_t row_bytes);
  const char* multiply(const Instruction&);
  void reset();

  int palette_ = 0;
  std::array<Shape, tile_count> shapes_{};
  std::array<Tile, tile_count> tiles_{};
  std::array<int64_t, op_count> counts_{};
};

} // namespace deepgen::amx
