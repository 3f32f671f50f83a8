#include "tests/amx_emu/amx_decode.h"

#include <cstring>

namespace deepgen::amx {
namespace {

/// What stands between 0xc4 and the opcode (Intel's manual, volume 2, 2.3.5).
struct Vex {
  explicit Vex(const uint8_t* at)
      : r(!(at[1] & 0x80)), x(!(at[1] & 0x40)), b(!(at[1] & 0x20)), map(at[1] & 0x1f), wide(at[2] & 0x80),
        operand(~(at[2] >> 3) & 0xf), longer(at[2] & 4), prefix(at[2] & 3) {}
  int r, x, b; ///< fourth bits of register numbers
  int map;
  bool wide;
  int operand;
  bool longer;
  int prefix; ///< 0 none, 1 0x66, 2 0xf3, 3 0xf2
};

std::optional<Op> memory_op(int opcode, int prefix) {
  if (opcode == 0x49 && prefix == 0) return Op::ldtilecfg;
  if (opcode == 0x49 && prefix == 1) return Op::sttilecfg;
  if (opcode == 0x4b && prefix == 1) return Op::tileload_t1;
  if (opcode == 0x4b && prefix == 2) return Op::tilestore;
  if (opcode == 0x4b && prefix == 3) return Op::tileload;
  return std::nullopt;
}

std::optional<Op> register_op(int opcode, int prefix, int modrm) {
  if (opcode == 0x49 && prefix == 0 && modrm == 0xc0) return Op::tilerelease;
  if (opcode == 0x49 && prefix == 3 && (modrm & 7) == 0) return Op::tilezero;
  if (opcode == 0x5c && prefix == 2) return Op::bf16;
  constexpr Op kBytes[] = {Op::bytes_uu, Op::bytes_us, Op::bytes_su, Op::bytes_ss};
  if (opcode == 0x5e) return kBytes[prefix];
  return std::nullopt;
}

/// Reads an address behind the byte ModRM at at[4].
void take_address(const uint8_t* at, const Vex& vex, Instruction& x) {
  const int mode = at[4] >> 6, low = at[4] & 7;
  x.length = 5;
  x.base = low + 8 * vex.b;
  bool wide = mode == 2;
  if (low == 4) {
    const int sib = at[x.length++];
    x.shift = sib >> 6;
    x.index = (sib >> 3 & 7) + 8 * vex.x;
    if (x.index == 4) x.index = -1;
    x.base = (sib & 7) + 8 * vex.b;
    if (mode == 0 && (sib & 7) == 5) x.base = -1, wide = true;
  } else if (mode == 0 && low == 5) {
    x.base = -1, wide = x.from_here = true;
  }
  if (wide) {
    int32_t displacement;
    std::memcpy(&displacement, at + x.length, 4);
    x.displacement = displacement, x.length += 4;
  } else if (mode == 1) {
    x.displacement = int8_t(at[x.length++]);
  }
}

} // namespace

std::optional<Instruction> decode(const uint8_t* at) {
  if (at[0] != 0xc4) return std::nullopt;
  const Vex vex(at);
  const int modrm = at[4];
  if (vex.map != 2 || vex.wide) return std::nullopt;
  const bool memory = modrm >> 6 != 3;
  const std::optional<Op> op = memory ? memory_op(at[3], vex.prefix) : register_op(at[3], vex.prefix, modrm);
  if (!op) return std::nullopt;
  Instruction x;
  x.op = *op, x.length = 5;
  const bool configures = x.op <= Op::tilerelease;
  if (vex.longer && !configures) return std::nullopt;
  const int field = modrm >> 3 & 7;
  if (memory) take_address(at, vex, x);
  if (x.is_product()) {
    if (vex.r || vex.b || vex.operand > 7) return std::nullopt;
    x.destination = field, x.left = modrm & 7, x.right = vex.operand;
    return x;
  }
  if (vex.operand || (configures && field)) return std::nullopt;
  if (configures) return x;
  // Tiles are loaded and stored with a SIB byte: the index is what is from one row to the next.
  if (vex.r || (memory && (modrm & 7) != 4)) return std::nullopt;
  x.destination = field;
  return x;
}

bool mark(uint8_t* at) {
  const std::optional<Instruction> x = decode(at);
  if (!x || x->op > Op::tilerelease) return false;
  at[2] |= 4;
  return true;
}

} // namespace deepgen::amx
