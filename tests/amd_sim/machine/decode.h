// Decode: from LLVM IR to what runs it. Each room knows its own instructions.
#pragma once

#include "tests/amd_sim/machine/program.h"
#include "tests/ptx_sim/program/fault.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <string_view>
#include <unordered_map>

namespace deepgen::amd_sim {

using ptx_sim::Fault;

class Decoder {
public:
  Decoder(Program& program, const llvm::Module& module, const llvm::Function& kernel);
  void run();

  const Chip& chip() const { return program_.chip; }
  const llvm::DataLayout& layout() const { return layout_; }
  Operand operand(const llvm::Value*);
  Operand workitem(int dimension) const { return program_.workitem[size_t(dimension)]; }
  Operand workgroup(int dimension) const { return program_.workgroup[size_t(dimension)]; }
  uint32_t reserve_private(uint32_t bytes, uint32_t align);
  Operand constant(uint64_t bits, uint16_t width);
  int64_t matrix_op(const MatrixOp& op) {
    program_.matrix_ops.push_back(op);
    return int64_t(program_.matrix_ops.size()) - 1;
  }
  /// Where the components of a value lie in memory.
  std::vector<Piece> pieces(llvm::Type*) const;
  Edge edge(const llvm::BasicBlock* from, const llvm::BasicBlock* to);

private:
  struct Width {
    uint16_t count, bits;
  };
  Width width(llvm::Type*) const;
  void place_globals();
  void place_parameters();
  Operand fresh(llvm::Type*);
  Operand constant_value(const llvm::Constant*);
  void flatten(const llvm::Constant*, std::vector<uint64_t>& words);
  uint64_t address(const llvm::Constant*);
  void decode(const llvm::Instruction&, Instruction&);

  Program& program_;
  const llvm::Module& module_;
  const llvm::Function& kernel_;
  const llvm::DataLayout& layout_;
  std::unordered_map<const llvm::Value*, Operand> values_;
  std::unordered_map<const llvm::BasicBlock*, uint32_t> blocks_;
  std::unordered_map<const llvm::GlobalVariable*, uint64_t> globals_;
};

/// A call's callee without "llvm." and the types at its end: "fma", "amdgcn.s.barrier"; empty for others.
std::string intrinsic_name(const llvm::Instruction&);
/// Of an integer argument that must be a constant.
int64_t immediate(const llvm::CallBase&, unsigned argument);
inline bool is_float(const llvm::Type* t) { return t->getScalarType()->isFloatingPointTy(); }
/// 0: f16, 1: bf16, 2: f32, 3: f64. Throws Fault on others.
uint32_t float_kind(const llvm::Type*);
inline uint64_t mask_of(uint32_t bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }
/// The lower bits, as a signed number.
inline int64_t extend(uint64_t x, uint32_t bits) { return int64_t(x << (64 - bits)) >> (64 - bits); }
/// What registers hold that nothing has written, and values that are undefined.
inline constexpr uint64_t kPoison = 0xfff8badcfff8badcu;

// Each fills `out` and returns true, or leaves an instruction that is not its own. Operands are decoded.
bool decode_integer(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_float(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_convert(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_vector(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_control(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_memory(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_buffer(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_lanes(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_matrix(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_dot(Decoder&, const llvm::Instruction&, Instruction& out);
bool decode_small_float(Decoder&, const llvm::Instruction&, Instruction& out);

} // namespace deepgen::amd_sim
