// Values: from LLVM types and constants to components and slots; where globals and parameters lie.
#include "tests/amd_sim/machine/decode.h"

#include "llvm/IR/Operator.h"

namespace deepgen::amd_sim {
namespace {

uint64_t align_up(uint64_t x, uint64_t by) { return (x + by - 1) / by * by; }

} // namespace

/// Structs whose members have different widths are not wanted by any kernel but those of two loads; their
/// components are counted as 64 bits wide.
Decoder::Width Decoder::width(llvm::Type* t) const {
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(t)) {
    const Width w = width(v->getElementType());
    return {uint16_t(w.count * v->getNumElements()), w.bits};
  }
  if (auto* a = llvm::dyn_cast<llvm::ArrayType>(t)) {
    const Width w = width(a->getElementType());
    return {uint16_t(w.count * a->getNumElements()), w.bits};
  }
  if (auto* s = llvm::dyn_cast<llvm::StructType>(t)) {
    Width all{0, 0};
    for (llvm::Type* e : s->elements()) {
      const Width w = width(e);
      all.bits = all.count == 0 || all.bits == w.bits ? w.bits : uint16_t(64);
      all.count = uint16_t(all.count + w.count);
    }
    return all;
  }
  if (t->isPointerTy()) {
    const unsigned space = t->getPointerAddressSpace();
    if (space == 7) return {3, 64}; // resource, offset
    if (space == 8) return {2, 64};
    return {1, uint16_t(layout_.getPointerSizeInBits(space))};
  }
  if (t->isFloatingPointTy()) return {1, uint16_t(t->getPrimitiveSizeInBits().getFixedValue())};
  if (t->isIntegerTy()) {
    const unsigned bits = t->getIntegerBitWidth();
    if (bits <= 64) return {1, uint16_t(bits)};
    if (bits % 64 == 0) return {uint16_t(bits / 64), 64};
  }
  throw Fault("a type that the simulator does not know");
}

std::vector<Piece> Decoder::pieces(llvm::Type* t) const {
  if (auto* s = llvm::dyn_cast<llvm::StructType>(t)) {
    std::vector<Piece> all;
    const llvm::StructLayout* l = layout_.getStructLayout(s);
    for (unsigned i = 0; i < s->getNumElements(); ++i)
      for (const Piece& p : pieces(s->getElementType(i)))
        all.push_back({p.offset + uint32_t(l->getElementOffset(i)), p.bytes});
    return all;
  }
  llvm::Type* element = nullptr;
  uint64_t n = 0;
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(t))
    element = v->getElementType(), n = v->getNumElements();
  else if (auto* a = llvm::dyn_cast<llvm::ArrayType>(t))
    element = a->getElementType(), n = a->getNumElements();
  if (element) {
    if (t->isVectorTy() && layout_.getTypeSizeInBits(element) % 8) throw Fault("a vector of bits in memory");
    std::vector<Piece> all;
    const auto step = uint32_t(layout_.getTypeAllocSize(element));
    for (uint32_t i = 0; i < n; ++i)
      for (const Piece& p : pieces(element)) all.push_back({p.offset + i * step, p.bytes});
    return all;
  }
  const Width w = width(t);
  std::vector<Piece> all;
  for (uint32_t i = 0; i < w.count; ++i)
    all.push_back({8 * i, w.count > 1 ? 8 : uint32_t(layout_.getTypeStoreSize(t))});
  return all;
}

Operand Decoder::fresh(llvm::Type* t) {
  const Width w = width(t);
  const Operand o{program_.registers, false, w.count, w.bits};
  program_.registers += w.count;
  return o;
}

Operand Decoder::constant(uint64_t bits, uint16_t width) {
  const auto lanes = size_t(program_.chip.wave);
  const Operand o{uint32_t(program_.constants.size() / lanes), true, 1, width};
  program_.constants.insert(program_.constants.end(), lanes, bits);
  return o;
}

Operand Decoder::operand(const llvm::Value* v) {
  if (llvm::isa<llvm::BasicBlock>(v) || llvm::isa<llvm::Function>(v) || llvm::isa<llvm::InlineAsm>(v))
    return {};
  if (const auto known = values_.find(v); known != values_.end()) return known->second;
  const auto* c = llvm::dyn_cast<llvm::Constant>(v);
  if (!c) throw Fault("a value that the simulator does not know");
  return values_[v] = constant_value(c);
}

Operand Decoder::constant_value(const llvm::Constant* c) {
  std::vector<uint64_t> words;
  flatten(c, words);
  const Width w = width(c->getType());
  const auto lanes = size_t(program_.chip.wave);
  const Operand o{uint32_t(program_.constants.size() / lanes), true, w.count, w.bits};
  for (uint64_t word : words) program_.constants.insert(program_.constants.end(), lanes, word);
  return o;
}

void Decoder::flatten(const llvm::Constant* c, std::vector<uint64_t>& words) {
  llvm::Type* t = c->getType();
  if (llvm::isa<llvm::UndefValue>(c)) {
    const Width w = width(t);
    return words.insert(words.end(), w.count, kPoison & mask_of(w.bits)), void();
  }
  if (t->isVectorTy() || t->isAggregateType()) {
    const uint64_t n = t->isVectorTy()  ? llvm::cast<llvm::FixedVectorType>(t)->getNumElements()
                       : t->isArrayTy() ? t->getArrayNumElements()
                                        : t->getStructNumElements();
    for (unsigned i = 0; i < n; ++i) {
      const llvm::Constant* e = c->getAggregateElement(i);
      if (!e) throw Fault("a constant that the simulator does not know");
      flatten(e, words);
    }
    return;
  }
  const auto add = [&words](const llvm::APInt& x) {
    for (unsigned i = 0; i < x.getNumWords(); ++i) words.push_back(x.getRawData()[i]);
  };
  if (const auto* i = llvm::dyn_cast<llvm::ConstantInt>(c)) return add(i->getValue());
  if (const auto* f = llvm::dyn_cast<llvm::ConstantFP>(c)) return add(f->getValueAPF().bitcastToAPInt());
  words.push_back(address(c) & mask_of(width(t).bits));
  for (uint32_t i = 1; i < width(t).count; ++i) words.push_back(0);
}

/// Of a constant that is a pointer, or a number made of one.
uint64_t Decoder::address(const llvm::Constant* c) {
  if (llvm::isa<llvm::ConstantPointerNull>(c)) return 0;
  if (const auto* i = llvm::dyn_cast<llvm::ConstantInt>(c)) return i->getZExtValue();
  if (const auto* g = llvm::dyn_cast<llvm::GlobalVariable>(c)) return globals_.at(g);
  const auto* e = llvm::dyn_cast<llvm::ConstantExpr>(c);
  if (!e) throw Fault("a constant that the simulator does not know");
  if (const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(e)) {
    llvm::APInt offset(layout_.getIndexTypeSizeInBits(gep->getType()), 0);
    if (!gep->accumulateConstantOffset(layout_, offset)) throw Fault("an address that is no constant");
    return address(llvm::cast<llvm::Constant>(gep->getPointerOperand())) + uint64_t(offset.getSExtValue());
  }
  const uint64_t x = address(e->getOperand(0));
  if (e->getOpcode() == llvm::Instruction::AddrSpaceCast)
    return e->getOperand(0)->getType()->getPointerAddressSpace() == 3 ? lds_window + x : x;
  if (e->isCast()) return x;
  const uint64_t y = address(e->getOperand(1));
  if (e->getOpcode() == llvm::Instruction::Add) return x + y;
  if (e->getOpcode() == llvm::Instruction::Sub) return x - y;
  throw Fault("a constant expression that the simulator does not know");
}

void Decoder::place_globals() {
  std::vector<const llvm::GlobalVariable*> dynamic;
  for (const llvm::GlobalVariable& g : module_.globals()) {
    const auto bytes = uint64_t(layout_.getTypeAllocSize(g.getValueType()));
    const uint64_t align = layout_.getValueOrABITypeAlignment(g.getAlign(), g.getValueType()).value();
    if (g.getAddressSpace() == 3) {
      if (bytes == 0) {
        dynamic.push_back(&g);
        continue;
      }
      globals_[&g] = align_up(program_.lds_bytes, align);
      program_.lds_bytes = uint32_t(globals_[&g] + bytes);
    } else if (g.hasInitializer()) {
      const uint64_t at = align_up(program_.data.size(), align);
      program_.data.resize(at + bytes);
      globals_[&g] = constant_window + at;
      std::vector<uint64_t> words;
      flatten(g.getInitializer(), words);
      const std::vector<Piece> places = pieces(g.getValueType());
      for (size_t i = 0; i < words.size(); ++i)
        std::memcpy(&program_.data[at + places[i].offset], &words[i], places[i].bytes);
    }
  }
  for (const llvm::GlobalVariable* g : dynamic) {
    const uint64_t align = layout_.getValueOrABITypeAlignment(g->getAlign(), g->getValueType()).value();
    program_.lds_bytes = uint32_t(align_up(program_.lds_bytes, align));
  }
  for (const llvm::GlobalVariable* g : dynamic) globals_[g] = program_.lds_bytes;
}

void Decoder::place_parameters() {
  uint64_t offset = 0;
  for (const llvm::Argument& a : kernel_.args()) {
    if (a.hasByRefAttr()) throw Fault("a parameter in memory");
    llvm::Type* t = a.getType();
    offset = align_up(offset, layout_.getABITypeAlign(t).value());
    Parameter p;
    p.offset = uint32_t(offset), p.bytes = uint32_t(layout_.getTypeStoreSize(t));
    p.pieces = pieces(t), p.value = values_[&a] = fresh(t);
    program_.parameters.push_back(p);
    offset += p.bytes;
  }
  program_.kernarg_bytes = uint32_t(offset);
}

uint32_t Decoder::reserve_private(uint32_t bytes, uint32_t align) {
  const auto at = uint32_t(align_up(program_.private_bytes, align));
  program_.private_bytes = at + bytes;
  return at;
}

} // namespace deepgen::amd_sim
