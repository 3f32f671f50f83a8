// Program: one kernel of an AMDGPU LLVM module, decoded. A value is a row of components (a scalar has one, a
// vector one an element, a buffer resource two words of 64 bits), each a slot of 64 bits for every lane.
#pragma once

#include "tests/amd_sim/instructions/matrix_layout.h"
#include "tests/amd_sim/machine/chip.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Instruction;
}

namespace deepgen::amd_sim {

class Wave;
struct Instruction;
using Run = void (*)(Wave&, const Instruction&);

struct Operand {
  uint32_t slot = 0;     ///< of the first component
  bool constant = false; ///< in the program's constants, not in the wave's registers
  uint16_t count = 1;    ///< components
  uint16_t bits = 64;    ///< of a component
};

/// A component's place in memory.
struct Piece {
  uint32_t offset = 0, bytes = 0;
};

struct Move {
  uint32_t to = 0;
  Operand from;
};

/// A branch's way into a block, with what its phis take.
struct Edge {
  uint32_t block = 0;
  std::vector<Move> moves;
  bool staged = false; ///< a phi reads another phi of the block
};

struct Instruction {
  Run run = nullptr;
  Operand result;
  std::vector<Operand> in;
  std::vector<int64_t> numbers; ///< what else its decoder needs
  std::vector<Edge> edges;      ///< of a branch
  std::vector<Piece> pieces;    ///< of a value in memory
  uint32_t bytes = 0, align = 1;
  uint32_t kind = 0;
  uint32_t block = 0;
  const llvm::Instruction* source = nullptr;
};

struct Block {
  uint32_t first = 0;
  int32_t join = -1; ///< where lanes meet again that leave it by different ways; -1: nowhere
};

struct Parameter {
  uint32_t offset = 0, bytes = 8;
  std::vector<Piece> pieces;
  Operand value;
};

/// Windows of addresses that are no operand's.
inline constexpr uint64_t lds_window = uint64_t(1) << 57;
inline constexpr uint64_t kernarg_window = uint64_t(1) << 58;
inline constexpr uint64_t constant_window = uint64_t(1) << 59;

class Program {
public:
  /// `ir`: text of a module. Throws Fault for what it cannot read.
  Program(const std::string& ir, const std::string& entry, const Chip& chip);
  ~Program();
  Program(const Program&) = delete;

  Chip chip;
  std::vector<Instruction> code;
  std::vector<Block> blocks;
  std::vector<uint64_t> constants; ///< [slot][lane]
  uint32_t registers = 0;          ///< slots
  std::vector<Parameter> parameters;
  uint32_t kernarg_bytes = 0;
  uint32_t lds_bytes = 0; ///< of the module's globals; dynamic ones follow
  uint32_t private_bytes = 0;
  std::vector<uint8_t> data; ///< of constant globals, at constant_window
  std::array<Operand, 3> workitem, workgroup;
  std::vector<MatrixOp> matrix_ops;
  uint32_t most_threads = 0; ///< of a workgroup, as the kernel promises; 0: nothing is promised

  std::string describe(const Instruction&) const;
  /// Its place in the code, counted as `describe` does.
  uint32_t line(const Instruction& i) const { return uint32_t(&i - code.data()) + 1; }

private:
  struct Source;
  std::unique_ptr<Source> source_;
};

/// The kernel with the line numbers that faults name.
std::string numbered(const Program&);

} // namespace deepgen::amd_sim
