// The instructions of AMX in machine code.
#pragma once

#include <cstdint>
#include <optional>

namespace deepgen::amx {

enum class Op {
  ldtilecfg,
  sttilecfg,
  tilerelease,
  tilezero,
  tileload,
  tileload_t1, ///< with a hint to the caches
  tilestore,
  bf16,     ///< tdpbf16ps
  bytes_ss, ///< tdpbssd: the first letter is of the left operand, the second of the right one
  bytes_su, ///< tdpbsud
  bytes_us, ///< tdpbusd
  bytes_uu, ///< tdpbuud
};
inline constexpr int op_count = int(Op::bytes_uu) + 1;

struct Instruction {
  Op op = Op::tilezero;
  int length = 0;                              ///< bytes
  int destination = -1, left = -1, right = -1; ///< tiles
  // Memory: registers by their numbers in machine code, -1: none. From the end of the instruction where
  // `from_here`.
  int base = -1, index = -1, shift = 0;
  int64_t displacement = 0;
  bool from_here = false;

  bool is_product() const { return op >= Op::bf16; }
  bool in_memory() const { return op <= Op::sttilecfg || (op >= Op::tileload && op <= Op::tilestore); }
};

/// Null where the bytes are none of AMX. Reads at most 11. An instruction that mark() changed is decoded as
/// what it was.
std::optional<Instruction> decode(const uint8_t* at);

/// Makes ldtilecfg, sttilecfg and tilerelease, which CPUs with AMX do for everybody, illegal everywhere: with
/// VEX.L set, which no such instruction has. Returns whether it was one of them.
bool mark(uint8_t* at);

} // namespace deepgen::amx
