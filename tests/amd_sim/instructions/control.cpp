// Branches, barriers, fences, waits, and what has no effect here.
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/workgroup.h"

#include "llvm/IR/InlineAsm.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

void jump(Wave& w, const Instruction& in) { w.branch(in, {w.active}); }

void branch(Wave& w, const Instruction& in) {
  const uint64_t* condition = w.in(in.in[0]);
  uint64_t taken = 0;
  for (int l = 0; l < w.lanes; ++l) taken |= (condition[l] & 1) << l;
  w.branch(in, {w.active & taken, w.active & ~taken});
}

/// Edge 0 is the default; numbers are the cases of the others.
void switch_over(Wave& w, const Instruction& in) {
  const uint64_t* x = w.in(in.in[0]);
  std::vector<uint64_t> masks(in.edges.size());
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    const auto found = std::find(in.numbers.begin(), in.numbers.end(), int64_t(x[l]));
    masks[found == in.numbers.end() ? 0 : size_t(found - in.numbers.begin()) + 1] |= uint64_t(1) << l;
  }
  w.branch(in, masks);
}

void leave(Wave& w, const Instruction&) { w.leave(); }
void unreachable(Wave&, const Instruction&) { throw Fault("reaches what cannot be reached"); }
void nothing(Wave&, const Instruction&) {}

void assume(Wave& w, const Instruction& in) {
  const uint64_t* x = w.in(in.in[0]);
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l) && !(x[l] & 1))
      throw Fault("an assumption does not hold in lane " + std::to_string(l));
}

void barrier(Wave& w, const Instruction&) {
  w.expect_together("s_barrier");
  w.group.signal(w);
  w.group.await(w);
}

void signal(Wave& w, const Instruction&) {
  w.expect_together("s_barrier_signal");
  w.group.signal(w);
}

void await(Wave& w, const Instruction&) {
  w.expect_together("s_barrier_wait");
  w.group.await(w);
}

WaitCount wait_of(const Instruction& in) { return {uint32_t(in.numbers[0]), uint32_t(in.numbers[1])}; }

void wait(Wave& w, const Instruction& in) { w.wait(wait_of(in)); }

/// A fence waits only in wave-wide code, as s_waitcnt does; order among lanes it makes anywhere.
void fence(Wave& w, const Instruction& in) { w.wait(wait_of(in)); }

void order(Wave& w, const Instruction&) { w.order_lanes(); }

void set_wait(Instruction& out, const WaitCount& w) {
  out.numbers = {w.vector_memory, w.lds};
  out.run = wait;
}

/// What a fence is for: metadata amdgpu-synchronize-as, "local" (LDS) or "global"; without, both.
bool concerns(const llvm::FenceInst& f, llvm::StringRef space) {
  const llvm::MDNode* node = f.getMetadata("mmra");
  if (!node) return true;
  bool named = false, other = false;
  const auto look = [&](const llvm::MDNode* tag) {
    const auto* value = llvm::dyn_cast<llvm::MDString>(tag->getOperand(1));
    if (value) (value->getString() == space ? named : other) = true;
  };
  if (llvm::isa<llvm::MDString>(node->getOperand(0)))
    look(node);
  else
    for (const llvm::MDOperand& o : node->operands()) look(llvm::cast<llvm::MDNode>(o));
  return named || !other;
}

/// AMDGPUUsage, memory model: a release at workgroup scope waits for LDS operations alone, at agent or system
/// scope for all. (On gfx10 and later it also waits for loads in workgroup scope; that is not relied on.)
void decode_fence(const llvm::FenceInst& f, Instruction& out) {
  llvm::SmallVector<llvm::StringRef> names;
  f.getContext().getSyncScopeNames(names);
  const llvm::StringRef scope = names[f.getSyncScopeID()];
  WaitCount w;
  const bool narrow = scope.starts_with("wavefront") || scope.starts_with("singlethread");
  if (llvm::isReleaseOrStronger(f.getOrdering()) && !narrow) {
    if (concerns(f, "local")) w.lds = 0;
    if (concerns(f, "global") && !scope.starts_with("workgroup")) w.vector_memory = 0;
  }
  set_wait(out, w);
  out.run = scope.starts_with("singlethread") ? nothing : fence;
}

/// Inline assembly of waits and a barrier, as MLIR makes it.
bool decode_assembly(const llvm::CallBase& call, Instruction& out) {
  std::string text = llvm::cast<llvm::InlineAsm>(call.getCalledOperand())->getAsmString().str();
  std::replace(text.begin(), text.end(), '\n', ';');
  WaitCount w;
  bool waits = false, stops = false;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, ';');
  for (llvm::StringRef line : lines) {
    line = line.trim();
    if (line.empty() || line.starts_with("s_nop") || line.starts_with("s_setprio") ||
        line.starts_with("s_sched"))
      continue;
    if (stops) return false;
    const auto count = [&](llvm::StringRef counter, uint32_t& value) {
      const auto [before, after] = line.split(counter);
      if (!after.empty()) after.split(')').first.getAsInteger(10, value);
    };
    if (line.starts_with("s_waitcnt ")) {
      count("vmcnt(", w.vector_memory), count("lgkmcnt(", w.lds), waits = true;
    } else if (line.starts_with("s_barrier")) {
      stops = true;
    } else {
      return false;
    }
  }
  set_wait(out, w);
  if (stops)
    out.run = [](Wave& wave, const Instruction& in) { wave.wait(wait_of(in)), barrier(wave, in); };
  else if (!waits)
    out.run = order;
  return true;
}

bool decode_terminator(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  const llvm::BasicBlock* b = i.getParent();
  if (llvm::isa<llvm::ReturnInst>(i)) return out.run = leave, true;
  if (llvm::isa<llvm::UnreachableInst>(i)) return out.run = unreachable, true;
  for (unsigned s = 0; s < i.getNumSuccessors(); ++s) out.edges.push_back(d.edge(b, i.getSuccessor(s)));
  if (const auto* s = llvm::dyn_cast<llvm::SwitchInst>(&i)) {
    out.in = {d.operand(s->getCondition())};
    out.edges.resize(1);
    for (const auto& c : s->cases()) {
      out.numbers.push_back(int64_t(c.getCaseValue()->getZExtValue()));
      out.edges.push_back(d.edge(b, c.getCaseSuccessor()));
    }
    return out.run = switch_over, true;
  }
  if (i.getNumSuccessors() == 1) return out.run = jump, true;
  if (!llvm::isa<llvm::BranchInst>(i)) return false;
  out.in = {d.operand(llvm::cast<llvm::BranchInst>(i).getCondition())};
  return out.run = branch, true;
}

bool decode_wait(Decoder& d, const llvm::CallBase& call, const std::string& name, Instruction& out) {
  WaitCount w;
  const auto count = [&] { return uint32_t(immediate(call, 0)); };
  if (name == "amdgcn.s.waitcnt")
    w = d.chip().decode_waitcnt(count());
  else if (name == "amdgcn.s.wait.loadcnt" || name == "amdgcn.s.wait.asynccnt")
    w.vector_memory = count();
  else if (name == "amdgcn.s.wait.dscnt")
    w.lds = count();
  else if (!name.starts_with("amdgcn.s.wait."))
    return false;
  set_wait(out, w);
  return true;
}

} // namespace

bool decode_control(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (i.isTerminator()) return decode_terminator(d, i, out);
  if (const auto* f = llvm::dyn_cast<llvm::FenceInst>(&i)) return decode_fence(*f, out), true;
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
  if (!call) return false;
  if (call->isInlineAsm()) return decode_assembly(*call, out);
  const std::string name = intrinsic_name(i);
  if (name == "amdgcn.s.barrier")
    out.run = barrier;
  else if (name == "amdgcn.s.barrier.signal")
    out.run = signal;
  else if (name == "amdgcn.s.barrier.wait")
    out.run = await;
  else if (name == "amdgcn.wave.barrier")
    out.run = order;
  else if (name == "assume")
    out.run = assume;
  else if (name.starts_with("amdgcn.sched.") || name == "amdgcn.s.setprio" || name == "amdgcn.iglp.opt" ||
           name == "amdgcn.s.sleep" || name == "amdgcn.s.nop" || name.starts_with("lifetime.") ||
           name == "amdgcn.s.prefetch.data" || name == "prefetch" || name.starts_with("experimental.noalias"))
    out.run = nothing;
  else
    return decode_wait(d, *call, name, out);
  return true;
}

} // namespace deepgen::amd_sim
