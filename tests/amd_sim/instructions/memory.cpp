#include "tests/amd_sim/instructions/memory.h"

#include "tests/amd_sim/instructions/floats.h"
#include "tests/amd_sim/machine/decode.h"

#include "llvm/IR/GetElementPtrTypeIterator.h"

namespace deepgen::amd_sim {
namespace {

constexpr uint32_t kMostBytes = 128;

void check_alignment(uint64_t address, uint32_t align) {
  if (address % align)
    throw Fault("address " + std::to_string(address) + " is not aligned to " + std::to_string(align) +
                " bytes, as the instruction says");
}

const uint8_t* inside(const std::vector<uint8_t>& bytes, uint64_t at, uint32_t count, const char* what) {
  if (at > bytes.size() || count > bytes.size() - at)
    throw Fault(std::string("out of bounds: ") + std::to_string(count) + " bytes at " + std::to_string(at) +
                " of " + what);
  return bytes.data() + at;
}

const uint8_t* read_global(Wave& w, uint64_t address, uint32_t count) {
  if (address >= constant_window)
    return inside(w.group.program.data, address - constant_window, count, "the module's constants");
  if (address >= kernarg_window)
    return inside(w.group.kernarg, address - kernarg_window, count, "the arguments");
  return w.group.memory.read(address, count, w.who, false);
}

/// An address of LDS in the generic address space makes the whole instruction one of LDS.
bool is_lds(const Wave& w, const Instruction& in, const uint64_t* address) {
  const uint64_t a = address[w.first_active()];
  return in.kind == 3 || (in.kind == 0 && a >= lds_window && a < kernarg_window);
}

void load_lds(Wave& w, const Instruction& in, const uint64_t* address) {
  uint64_t offsets[64] = {};
  w.count_lds();
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    offsets[l] = in.kind == 3 ? address[l] : address[l] - lds_window;
    check_alignment(offsets[l], in.align);
    take(w, in, l, w.group.lds.read(offsets[l], in.bytes, w.lds_access(), l, w.lane_epoch));
  }
  w.group.lds.count_banks(in, offsets, w.active, in.bytes, false);
}

void load(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[0]);
  if (is_lds(w, in, address)) return load_lds(w, in, address);
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    check_alignment(address[l], in.align);
    take(w, in, l, read_global(w, address[l], in.bytes));
  }
  w.count_vector_memory(operations(in.bytes));
}

void store_lds(Wave& w, const Instruction& in, const uint64_t* address) {
  uint64_t offsets[64] = {};
  uint8_t bytes[64][kMostBytes];
  w.count_lds();
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    offsets[l] = in.kind == 3 ? address[l] : address[l] - lds_window;
    check_alignment(offsets[l], in.align);
    give(w, in, in.in[0], l, bytes[l]);
    std::memcpy(w.group.lds.write(offsets[l], in.bytes, w.lds_access(), l, w.lane_epoch), bytes[l], in.bytes);
  }
  // Two lanes that write the same bytes in one instruction must agree.
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l) && std::memcmp(w.group.lds.peek(offsets[l]), bytes[l], in.bytes) != 0)
      throw Fault("lane " + std::to_string(l) + " and another lane write different values to LDS byte " +
                  std::to_string(offsets[l]));
  w.group.lds.count_banks(in, offsets, w.active, in.bytes, true);
}

void store(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[1]);
  if (is_lds(w, in, address)) return store_lds(w, in, address);
  uint8_t bytes[kMostBytes];
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    check_alignment(address[l], in.align);
    give(w, in, in.in[0], l, bytes);
    std::memcpy(w.group.memory.write(address[l], in.bytes, w.who), bytes, in.bytes);
  }
  count_store(w, in.bytes);
}

uint8_t* private_bytes(Wave& w, int lane, uint64_t address, uint32_t count) {
  const uint64_t size = w.group.program.private_bytes;
  if (address > size || count > size - address) throw Fault("out of bounds of an alloca");
  return &w.private_memory[size_t(lane) * size + address];
}

void load_private(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[0]);
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l)) take(w, in, l, private_bytes(w, l, address[l], in.bytes));
}

void store_private(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[1]);
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l)) give(w, in, in.in[0], l, private_bytes(w, l, address[l], in.bytes));
}

using Rmw = llvm::AtomicRMWInst;

template <typename F>
uint64_t combine_floats(uint32_t operation, uint64_t x, uint64_t y) {
  if (operation == Rmw::FAdd) return F::put(F::get(x) + F::get(y));
  return operation == Rmw::FMax ? F::put(std::fmax(F::get(x), F::get(y)))
                                : F::put(std::fmin(F::get(x), F::get(y)));
}

uint64_t combine(uint32_t operation, uint64_t x, uint64_t y) {
  switch (operation) {
  case Rmw::Add:
    return x + y;
  case Rmw::Or:
    return x | y;
  case Rmw::And:
    return x & y;
  case Rmw::UMax:
    return std::max(x, y);
  case Rmw::UMin:
    return std::min(x, y);
  default:
    return y; // xchg
  }
}

/// Of global memory. kind: the operation; numbers[0]: float_kind(), or -1.
void atomic(Wave& w, const Instruction& in) {
  const uint64_t *address = w.in(in.in[0]), *y = w.in(in.in[1]);
  uint64_t before[64] = {};
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    check_alignment(address[l], in.bytes);
    uint8_t* at = w.group.memory.modify(address[l], in.bytes);
    std::memcpy(&before[l], at, in.bytes);
    const uint64_t after =
        in.numbers[0] < 0 ? combine(in.kind, before[l], y[l])
                          : with_float(
                                uint32_t(in.numbers[0]),
                                [&]<typename F>(F) { return combine_floats<F>(in.kind, before[l], y[l]); });
    std::memcpy(at, &after, in.bytes);
  }
  w.put(in.result, 0, before);
  w.count_vector_memory(1);
}

/// in[0]: the base; the other operands times numbers[2 ...]; numbers[0]: what is constant; numbers[1]: which
/// component of the pointer counts.
void add_offsets(Wave& w, const Instruction& in) {
  const auto which = uint32_t(in.numbers[1]);
  const uint64_t mask = mask_of(which ? 32 : in.result.bits);
  for (uint32_t c = 0; c < which; ++c) w.put(in.result, c, w.in(in.in[0], c));
  uint64_t sum[64];
  const uint64_t* base = w.in(in.in[0], which);
  for (int l = 0; l < w.lanes; ++l) sum[l] = base[l] + uint64_t(in.numbers[0]);
  for (size_t i = 1; i < in.in.size(); ++i) {
    const uint64_t* x = w.in(in.in[i]);
    const uint32_t shift = 64 - in.in[i].bits;
    for (int l = 0; l < w.lanes; ++l)
      sum[l] += uint64_t(int64_t(x[l] << shift) >> shift) * uint64_t(in.numbers[i + 1]);
  }
  w.compute(in.result, which, [&](int l) { return sum[l] & mask; });
}

/// numbers[0] is added.
void change_space(Wave& w, const Instruction& in) {
  const uint64_t* x = w.in(in.in[0]);
  w.compute(in.result, 0, [&](int l) { return (x[l] + uint64_t(in.numbers[0])) & mask_of(in.result.bits); });
}

void to_fat_pointer(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < 2; ++c) w.put(in.result, c, w.in(in.in[0], c));
  w.compute(in.result, 2, [](int) { return uint64_t(0); });
}

void set_constant(Wave& w, const Instruction& in) {
  w.compute(in.result, 0, [&](int) { return uint64_t(in.numbers[0]); });
}

void decode_gep(Decoder& d, const llvm::GetElementPtrInst& gep, Instruction& out) {
  if (gep.getType()->isVectorTy()) throw Fault("a vector of addresses");
  const Operand base = out.in[0];
  out.in = {base};
  out.numbers = {0, gep.getAddressSpace() == 7 ? 2 : 0};
  for (auto t = llvm::gep_type_begin(gep), end = llvm::gep_type_end(gep); t != end; ++t) {
    const llvm::Value* index = t.getOperand();
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(index);
    if (llvm::StructType* s = t.getStructTypeOrNull()) {
      out.numbers[0] +=
          int64_t(d.layout().getStructLayout(s)->getElementOffset(unsigned(constant->getZExtValue())));
      continue;
    }
    const auto step = int64_t(t.getSequentialElementStride(d.layout()).getFixedValue());
    if (constant) {
      out.numbers[0] += constant->getSExtValue() * step;
    } else {
      out.in.push_back(d.operand(index));
      out.numbers.push_back(step);
    }
  }
  out.run = add_offsets;
}

void decode_space_cast(const llvm::AddrSpaceCastInst& cast, Instruction& out) {
  const unsigned from = cast.getSrcAddressSpace(), to = cast.getDestAddressSpace();
  if (from == 8 && to == 7) {
    out.run = to_fat_pointer;
    return;
  }
  if (from > 5 || to > 5 || from == 5 || to == 5) throw Fault("a cast between address spaces");
  const auto window = int64_t(lds_window);
  out.numbers = {from == 3 ? window : to == 3 ? -window : 0};
  out.run = change_space;
}

void set_pieces(Decoder& d, llvm::Type* t, uint64_t align, Instruction& out) {
  out.pieces = d.pieces(t);
  out.bytes = uint32_t(d.layout().getTypeStoreSize(t));
  out.align = uint32_t(align);
  if (out.bytes > kMostBytes) throw Fault("a value of " + std::to_string(out.bytes) + " bytes in memory");
}

bool decode_atomic(Decoder& d, const Rmw& i, Instruction& out) {
  if (i.getPointerAddressSpace() != 1 && i.getPointerAddressSpace() != 0)
    throw Fault("an atomic operation outside of global memory");
  static constexpr Rmw::BinOp known[] = {Rmw::Add,  Rmw::Or,   Rmw::And,  Rmw::UMax, Rmw::UMin,
                                         Rmw::Xchg, Rmw::FAdd, Rmw::FMax, Rmw::FMin};
  if (std::find(std::begin(known), std::end(known), i.getOperation()) == std::end(known)) return false;
  if (i.getType()->isVectorTy()) return false;
  out.bytes = uint32_t(d.layout().getTypeStoreSize(i.getType()));
  out.kind = i.getOperation();
  out.numbers = {is_float(i.getType()) ? int64_t(float_kind(i.getType())) : -1};
  out.run = atomic;
  return true;
}

} // namespace

void take(Wave& w, const Instruction& in, int lane, const uint8_t* bytes) {
  for (uint32_t c = 0; c < in.pieces.size(); ++c) {
    uint64_t x = 0;
    std::memcpy(&x, bytes + in.pieces[c].offset, in.pieces[c].bytes);
    w.set_lane(in.result, c, lane, x & mask_of(in.result.bits));
  }
}

void give(const Wave& w, const Instruction& in, const Operand& value, int lane, uint8_t* bytes) {
  for (uint32_t c = 0; c < in.pieces.size(); ++c)
    std::memcpy(bytes + in.pieces[c].offset, &w.in(value, c)[lane], in.pieces[c].bytes);
}

void count_store(Wave& w, uint32_t bytes) {
  if (!w.group.program.chip.stores_counted_apart) w.count_vector_memory(operations(bytes));
}

bool decode_memory(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (const auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i)) return decode_gep(d, *gep, out), true;
  if (const auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(&i))
    return decode_space_cast(*cast, out), true;
  if (const auto* a = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
    const auto bytes = a->getAllocationSize(d.layout());
    if (!bytes) throw Fault("an alloca of variable size");
    out.numbers = {d.reserve_private(uint32_t(bytes->getFixedValue()), uint32_t(a->getAlign().value()))};
    return out.run = set_constant, true;
  }
  if (const auto* rmw = llvm::dyn_cast<Rmw>(&i)) return decode_atomic(d, *rmw, out);
  if (intrinsic_name(i) == "amdgcn.kernarg.segment.ptr") {
    out.numbers = {int64_t(kernarg_window)};
    return out.run = set_constant, true;
  }
  const auto* l = llvm::dyn_cast<llvm::LoadInst>(&i);
  const auto* s = llvm::dyn_cast<llvm::StoreInst>(&i);
  if (!l && !s) return false;
  set_pieces(d, l ? l->getType() : s->getValueOperand()->getType(),
             (l ? l->getAlign() : s->getAlign()).value(), out);
  out.kind = l ? l->getPointerAddressSpace() : s->getPointerAddressSpace();
  if (out.kind > 5) return false;
  if (out.kind == 5)
    out.run = l ? load_private : store_private;
  else
    out.run = l ? load : store;
  return true;
}

} // namespace deepgen::amd_sim
