// Program: one entry of a PTX module, decoded. Every operand is a slot: registers in a warp's register file,
// immediates and addresses of symbols in the program's constants, so that an instruction reads all of them
// alike.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace deepgen::ptx_sim {

class Warp;
struct Instruction;
using Run = void (*)(Warp&, const Instruction&);

struct Operand {
  enum Kind : uint8_t { reg, constant, nothing };
  Kind kind = nothing;
  uint32_t slot = 0;
  int64_t offset = 0; ///< of an address
};

struct Instruction {
  Run run = nullptr;
  int32_t guard = -1; ///< slot of the predicate; -1: none
  bool guard_negated = false;
  /// All operands in a row; group i (one operand, or those in braces or brackets) starts at first[i].
  std::vector<Operand> operands;
  std::vector<uint16_t> first;
  // What the opcode's modifiers say, as its decoder needs it.
  uint32_t target = 0; ///< of a branch
  uint8_t bytes = 0;   ///< of one element
  bool is_signed = false, flag = false;
  bool of_wgmma = false;         ///< handles its registers itself
  bool renames = false;          ///< a plain mov
  bool first_is_address = false; ///< the first operand stands in brackets
  uint8_t kind = 0;
  uint16_t m = 0, n = 0, k = 0;
  uint8_t types[4] = {}; ///< Format
  std::string opcode;
  uint32_t line = 0;

  size_t groups() const { return first.size(); }
  size_t count(size_t group) const {
    return (group + 1 < first.size() ? first[group + 1] : operands.size()) - first[group];
  }
  const Operand& at(size_t group, size_t i = 0) const { return operands[first[group] + i]; }
};

/// Registers that every warp has: the special ones, by name ("%tid.x").
inline constexpr const char* special_registers[] = {
    "%tid.x",       "%tid.y",        "%tid.z",           "%ntid.x",
    "%ntid.y",      "%ntid.z",       "%ctaid.x",         "%ctaid.y",
    "%ctaid.z",     "%nctaid.x",     "%nctaid.y",        "%nctaid.z",
    "%laneid",      "%warpid",       "%cluster_ctarank", "%cluster_nctarank",
    "%clusterid.x", "%nclusterid.x", "%cluster_ctaid.x", "%cluster_nctaid.x",
    "%clock64",     "%smid"};
inline constexpr size_t special_count = std::size(special_registers);

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 8;
};

class Program {
public:
  /// Throws Fault for what it cannot read, with the line.
  Program(const std::string& ptx, const std::string& entry);

  std::vector<Instruction> code;
  std::vector<uint64_t> constants; ///< [slot][32 lanes]
  std::vector<uint8_t> register_bits;
  std::vector<Parameter> parameters;
  uint32_t static_shared = 0; ///< bytes before the dynamic ones
  bool uses_wgmma = false;
  std::string source(uint32_t line) const; ///< of the PTX

  uint32_t constant_slot(uint64_t value);

private:
  std::vector<std::string> lines_;
  std::map<uint64_t, uint32_t> constant_slots_;
};

/// An address in a parameter's space, as `mov` of its name yields it.
inline constexpr uint64_t parameter_window = uint64_t(1) << 56;
/// Shared addresses: the block's own from 0 on, those of block r of the cluster from (r + 1) << 24 on.
inline constexpr uint64_t cluster_window = uint64_t(1) << 24;

} // namespace deepgen::ptx_sim
