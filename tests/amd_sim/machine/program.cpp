#include "tests/amd_sim/machine/decode.h"

#include "llvm/Analysis/PostDominators.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace deepgen::amd_sim {

struct Program::Source {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

Program::Program(const std::string& ir, const std::string& entry, const Chip& chip)
    : chip(chip), source_(std::make_unique<Source>()) {
  llvm::SMDiagnostic diagnostic;
  source_->module = llvm::parseAssemblyString(ir, diagnostic, source_->context);
  if (!source_->module)
    throw Fault("no LLVM IR: line " + std::to_string(diagnostic.getLineNo()) + ": " +
                diagnostic.getMessage().str());
  llvm::Module& m = *source_->module;
  std::string what;
  llvm::raw_string_ostream stream(what);
  if (llvm::verifyModule(m, &stream)) throw Fault("malformed LLVM IR: " + what);
  if (!m.getTargetTriple().isAMDGCN()) throw Fault("the module is not for amdgcn");
  const llvm::Function* kernel = m.getFunction(entry);
  if (!kernel || kernel->isDeclaration()) throw Fault("no kernel '" + entry + "'");
  if (kernel->getCallingConv() != llvm::CallingConv::AMDGPU_KERNEL)
    throw Fault("'" + entry + "' has not the calling convention amdgpu_kernel");
  Decoder(*this, m, *kernel).run();
}

Program::~Program() = default;

std::string Program::describe(const Instruction& in) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (in.source) in.source->print(stream);
  const size_t first = text.find_first_not_of(' ');
  return "line " + std::to_string(line(in)) + ": " + (first == std::string::npos ? text : text.substr(first));
}

std::string numbered(const Program& program) {
  std::string text;
  for (const Instruction& in : program.code) text += program.describe(in) + "\n";
  return text;
}

Decoder::Decoder(Program& program, const llvm::Module& module, const llvm::Function& kernel)
    : program_(program), module_(module), kernel_(kernel), layout_(module.getDataLayout()) {}

void Decoder::run() {
  llvm::Type* word = llvm::Type::getInt32Ty(module_.getContext());
  for (size_t d = 0; d < 3; ++d) program_.workitem[d] = fresh(word), program_.workgroup[d] = fresh(word);
  place_globals();
  place_parameters();
  for (const llvm::BasicBlock& b : kernel_) {
    blocks_[&b] = uint32_t(program_.blocks.size());
    program_.blocks.emplace_back();
    for (const llvm::Instruction& i : b)
      if (!i.getType()->isVoidTy()) values_[&i] = fresh(i.getType());
  }
  const llvm::PostDominatorTree tree(const_cast<llvm::Function&>(kernel_));
  for (const llvm::BasicBlock& b : kernel_) {
    Block& block = program_.blocks[blocks_[&b]];
    block.first = uint32_t(program_.code.size());
    const auto* node = tree.getNode(&b);
    const auto* above = node ? node->getIDom() : nullptr;
    if (above && above->getBlock()) block.join = int32_t(blocks_[above->getBlock()]);
    for (const llvm::Instruction& i : b) {
      if (llvm::isa<llvm::PHINode>(i) || i.isDebugOrPseudoInst()) continue;
      Instruction out;
      out.block = blocks_[&b], out.source = &i;
      decode(i, out);
      program_.code.push_back(std::move(out));
    }
  }
  const llvm::Attribute size = kernel_.getFnAttribute("amdgpu-flat-work-group-size");
  if (size.isValid()) {
    const llvm::StringRef most = size.getValueAsString().split(',').second;
    most.getAsInteger(10, program_.most_threads);
  }
}

void Decoder::decode(const llvm::Instruction& i, Instruction& out) {
  if (!i.getType()->isVoidTy()) out.result = values_.at(&i);
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
    for (const llvm::Use& u : call->args())
      if (!u->getType()->isMetadataTy()) out.in.push_back(operand(u));
  } else if (!i.isTerminator()) {
    for (const llvm::Use& u : i.operands()) out.in.push_back(operand(u));
  }
  static constexpr decltype(&decode_integer) rooms[] = {
      decode_integer, decode_float, decode_convert, decode_vector, decode_control,    decode_memory,
      decode_buffer,  decode_lanes, decode_matrix,  decode_dot,    decode_small_float};
  for (const auto room : rooms)
    if (room(*this, i, out)) return;
  out.source = &i;
  throw Fault("the simulator does not know this instruction: " + program_.describe(out));
}

Edge Decoder::edge(const llvm::BasicBlock* from, const llvm::BasicBlock* to) {
  Edge e;
  e.block = blocks_.at(to);
  for (const llvm::PHINode& phi : to->phis()) {
    const llvm::Value* value = phi.getIncomingValueForBlock(from);
    const auto* other = llvm::dyn_cast<llvm::PHINode>(value);
    e.staged |= other && other->getParent() == to;
    e.moves.push_back({values_.at(&phi).slot, operand(value)});
  }
  return e;
}

std::string intrinsic_name(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (!call) return {};
  return llvm::Intrinsic::getBaseName(call->getIntrinsicID()).drop_front(5).str();
}

int64_t immediate(const llvm::CallBase& call, unsigned argument) {
  const auto* c = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(argument));
  if (!c) throw Fault("argument " + std::to_string(argument) + " must be a constant");
  return c->getSExtValue();
}

uint32_t float_kind(const llvm::Type* t) {
  t = t->getScalarType();
  if (t->isHalfTy()) return 0;
  if (t->isBFloatTy()) return 1;
  if (t->isFloatTy()) return 2;
  if (t->isDoubleTy()) return 3;
  throw Fault("a floating-point type that the simulator does not know");
}

} // namespace deepgen::amd_sim
