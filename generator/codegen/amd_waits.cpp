#include "generator/codegen/amd_waits.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

#include <algorithm>
#include <array>
#include <map>

namespace deepgen {
namespace {

/// lgkmcnt has bits 8 to 11 of gfx9's s_waitcnt; 15 waits for none.
constexpr int64_t kShift = 8, kNone = 15;

enum class Operation { other, lds, copy, counted, wait };

Operation kind_of(const llvm::MachineInstr& i, const llvm::TargetInstrInfo& info) {
  const llvm::StringRef name = info.getName(i.getOpcode());
  if (name.starts_with("DS_")) return Operation::lds;
  if (name.starts_with("GLOBAL_LOAD_LDS_")) return Operation::copy;
  if (name.starts_with("S_LOAD_") || name.starts_with("S_BUFFER_LOAD_") || name.starts_with("FLAT_"))
    return Operation::counted;
  return name == "S_WAITCNT" ? Operation::wait : Operation::other;
}

/// of[k]: at least so many of the last k operations that LLVM counts in lgkmcnt are LDS's own. Operations
/// that a path does not have, as it has just begun, need no wait.
struct Fewest {
  std::array<int64_t, kNone> of;

  Fewest() {
    for (size_t k = 0; k < of.size(); ++k) of[k] = int64_t(k);
  }
  void count(bool of_lds) {
    for (size_t k = of.size() - 1; k > 0; --k) of[k] = of[k - 1] + (of_lds ? 1 : 0);
  }
  bool join(const Fewest& other) {
    const auto before = of;
    for (size_t k = 0; k < of.size(); ++k) of[k] = std::min(of[k], other.of[k]);
    return of != before;
  }
};

class LdsWaits : public llvm::MachineFunctionPass {
public:
  static char ID;
  LdsWaits() : MachineFunctionPass(ID) {}
  llvm::StringRef getPassName() const override { return "DeepGen: waits for LDS beside copies"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(llvm::MachineFunction& f) override {
    info_ = f.getSubtarget().getInstrInfo();
    if (!has_copies(f)) return false;
    std::map<const llvm::MachineBasicBlock*, Fewest> starts;
    for (bool changed = true; changed;) {
      changed = false;
      for (llvm::MachineBasicBlock& block : f) {
        Fewest state = starts[&block];
        pass_through(block, state, nullptr);
        for (const llvm::MachineBasicBlock* next : block.successors()) changed |= starts[next].join(state);
      }
    }
    bool changed = false;
    for (llvm::MachineBasicBlock& block : f) {
      Fewest state = starts[&block];
      pass_through(block, state, &changed);
    }
    return changed;
  }

private:
  bool has_copies(const llvm::MachineFunction& f) const {
    for (const llvm::MachineBasicBlock& block : f)
      for (const llvm::MachineInstr& i : block.instrs())
        if (kind_of(i, *info_) == Operation::copy) return true;
    return false;
  }

  /// With `changed`, waits are lowered.
  void pass_through(llvm::MachineBasicBlock& block, Fewest& state, bool* changed) const {
    for (llvm::MachineInstr& i : block.instrs()) {
      const Operation kind = kind_of(i, *info_);
      if (kind == Operation::lds || kind == Operation::copy || kind == Operation::counted)
        state.count(kind == Operation::lds);
      if (!changed || kind != Operation::wait) continue;
      llvm::MachineOperand& operand = i.getOperand(0);
      const int64_t all = operand.getImm(), left = all >> kShift & kNone;
      if (left == kNone) continue;
      const int64_t lower = state.of[size_t(left)];
      *changed |= lower != left;
      operand.setImm((all & ~(kNone << kShift)) | lower << kShift);
    }
  }

  const llvm::TargetInstrInfo* info_ = nullptr;
};

char LdsWaits::ID = 0;

} // namespace

llvm::FunctionPass* lds_waits_pass() { return new LdsWaits; }

} // namespace deepgen
