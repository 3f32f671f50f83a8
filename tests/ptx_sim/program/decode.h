// Decode: from an opcode to what runs it. Each room knows its own instructions.
#pragma once

#include "tests/ptx_sim/program/program.h"

#include <vector>

namespace deepgen::ptx_sim {

/// An opcode in its parts: "ld.global.v2.b32" is {"ld", "global", "v2", "b32"}.
struct Opcode {
  std::string text;
  std::vector<std::string> parts;

  explicit Opcode(const std::string& text);
  bool has(std::string_view part) const;
  const std::string& name() const { return parts[0]; }
  const std::string& last() const { return parts.back(); }
};

/// Width in bytes of "b32", "f64", "u8", ...; 0 for what is no type.
int type_bytes(const std::string& type);
uint8_t format_of(const std::string& type); ///< Format of "f16", "e4m3", "s8", ...; throws Fault

/// What an instruction does that orders or hints only.
inline void nothing(Warp&, const Instruction&) {}

// Each fills `in` and returns true, or leaves an instruction that is not its own.
bool decode_arithmetic(const Opcode&, Instruction& in);
bool decode_float(const Opcode&, Instruction& in);
bool decode_convert(const Opcode&, Instruction& in, const Program&);
bool decode_memory(const Opcode&, Instruction& in, const Program&);
bool decode_threads(const Opcode&, Instruction& in);
bool decode_matrix(const Opcode&, Instruction& in);
bool decode_bulk(const Opcode&, Instruction& in);
bool decode_mbarrier(const Opcode&, Instruction& in);
bool decode_wgmma(const Opcode&, Instruction& in);
bool decode_cluster(const Opcode&, Instruction& in);

} // namespace deepgen::ptx_sim
