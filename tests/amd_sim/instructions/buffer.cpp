// Buffers: loads and stores through a resource (V#) that checks bounds, fat pointers (address space 7), and
// loads that go to LDS on their own.
#include "tests/amd_sim/instructions/memory.h"
#include "tests/amd_sim/machine/decode.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

struct Resource {
  uint64_t base = 0;
  uint64_t records = 0; ///< bytes
};

/// The words of a raw buffer: base of 48 bits and stride; bytes; format and, from gfx10 on, how bounds are
/// checked (OOB_SELECT, bits 28 and 29: 2 not at all, 3 as a raw buffer).
Resource make_resource(const Chip& chip, uint64_t low, uint64_t high) {
  const auto flags = uint32_t(high >> 32);
  if (low >> 48 & 0x3fff) throw Fault("a buffer with a stride: only raw buffers are simulated");
  if (!(flags >> 12 & 0x7f))
    throw Fault("the buffer resource has no data format, which the hardware takes for no buffer");
  const uint32_t select = flags >> 28 & 3;
  if (chip.major >= 10 && select < 2)
    throw Fault("OOB_SELECT of the buffer resource is that of no raw buffer");
  const bool checked = chip.major < 10 || select == 3;
  return {low & 0xffffffffffffu, checked ? high & 0xffffffffu : ~uint64_t(0) >> 1};
}

/// in[which]: of one kind of resource. All lanes must agree, or the backend makes a loop over the lanes.
Resource resource_of(const Wave& w, const Operand& o) {
  const auto word = [&](uint32_t c) { return w.uniform(o, "the buffer resource", c); };
  if (o.count == 4)
    return make_resource(w.group.program.chip, word(0) | word(1) << 32, word(2) | word(3) << 32);
  return make_resource(w.group.program.chip, word(0), word(1));
}

/// Bytes at the beginning of an access that are in range; each dword is checked by itself.
uint32_t in_range(const Resource& r, uint64_t offset, uint32_t bytes) {
  uint32_t good = 0;
  while (good < bytes && offset + good + std::min(4u, bytes - good) <= r.records)
    good += std::min(4u, bytes - good);
  return good;
}

/// Whether the scalar offset counts in the check depends on the chip.
uint32_t in_range(const Resource& r, uint64_t offset, uint64_t scalar, uint32_t bytes) {
  const uint32_t good = in_range(r, offset, bytes);
  if (scalar && in_range(r, offset + scalar, bytes) != good)
    throw Fault("whether this access is in bounds of the buffer depends on the chip: with the scalar offset "
                "it is at byte " +
                std::to_string(offset + scalar) + " of " + std::to_string(r.records));
  return good;
}

/// Of less aligned ones some chips leave out the lower bits of the address.
void check_alignment(const Resource& r, uint64_t offset, uint64_t scalar, uint32_t bytes) {
  const uint32_t align = std::min(bytes, 4u);
  if ((r.base + offset + scalar) % align || (offset + scalar) % align)
    throw Fault("an access of a buffer by " + std::to_string(bytes) + " bytes that is aligned to less than " +
                std::to_string(align));
}

/// What is out of range reads as zero; what of a dword is half out of range differs among chips: poison.
void read(Wave& w, const Resource& r, uint64_t offset, uint64_t scalar, uint32_t bytes, uint8_t* out) {
  check_alignment(r, offset, scalar, bytes);
  const uint32_t good = in_range(r, offset, scalar, bytes);
  if (good) std::memcpy(out, w.group.memory.read(r.base + offset + scalar, good, w.who, false), good);
  std::memset(out + good, 0, bytes - good);
  if (good < bytes && offset + good < r.records) std::memset(out + good, 0xff, std::min(4u, bytes - good));
}

void write(Wave& w, const Resource& r, uint64_t offset, uint64_t scalar, uint32_t bytes,
           const uint8_t* from) {
  check_alignment(r, offset, scalar, bytes);
  const uint32_t good = in_range(r, offset, scalar, bytes);
  if (good < bytes && offset + good < r.records)
    throw Fault(
        "a store whose dword is half out of the buffer's bounds: what is written depends on the chip");
  if (good) std::memcpy(w.group.memory.write(r.base + offset + scalar, good, w.who), from, good);
}

/// Operands: the resource at in.kind, then the offset and the scalar offset.
struct BufferPlace {
  Resource resource;
  const uint64_t* offset;
  uint64_t scalar;
};
BufferPlace place_of(const Wave& w, const Instruction& in) {
  return {resource_of(w, in.in[in.kind]), w.in(in.in[in.kind + 1]),
          w.uniform(in.in[in.kind + 2], "the scalar offset of a buffer access")};
}
/// A fat pointer has both.
BufferPlace fat_place(const Wave& w, const Operand& pointer) {
  return {resource_of(w, pointer), w.in(pointer, 2), 0};
}

void load_at(Wave& w, const Instruction& in, const BufferPlace& p) {
  uint8_t bytes[128];
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    read(w, p.resource, p.offset[l], p.scalar, in.bytes, bytes);
    take(w, in, l, bytes);
  }
  w.count_vector_memory(operations(in.bytes));
}

void store_at(Wave& w, const Instruction& in, const BufferPlace& p) {
  uint8_t bytes[128];
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    give(w, in, in.in[0], l, bytes);
    write(w, p.resource, p.offset[l], p.scalar, in.bytes, bytes);
  }
  count_store(w, in.bytes);
}

void load_buffer(Wave& w, const Instruction& in) { load_at(w, in, place_of(w, in)); }
void store_buffer(Wave& w, const Instruction& in) { store_at(w, in, place_of(w, in)); }
void load_fat(Wave& w, const Instruction& in) { load_at(w, in, fat_place(w, in.in[0])); }
void store_fat(Wave& w, const Instruction& in) { store_at(w, in, fat_place(w, in.in[1])); }

/// make.buffer.rsrc(base, stride, bytes, flags).
void make(Wave& w, const Instruction& in) {
  const uint64_t *base = w.in(in.in[0]), *stride = w.in(in.in[1]), *records = w.in(in.in[2]),
                 *flags = w.in(in.in[3]);
  w.compute(in.result, 0, [&](int l) { return (base[l] & 0xffffffffffffu) | stride[l] << 48; });
  w.compute(in.result, 1, [&](int l) {
    if (records[l] >> 32 && w.is_active(l)) throw Fault("a buffer of 4 GiB or more");
    return records[l] | flags[l] << 32;
  });
}

/// Loads into LDS. Lane l's data go to base + offset + l * size, whatever lanes are active: the base is a
/// scalar register (M0). Nobody knows of the copy until the wave has waited for it.
template <typename Fetch>
void load_to_lds(Wave& w, const Operand& base, int64_t size, int64_t offset, const Fetch& fetch) {
  const Chip& chip = w.group.program.chip;
  if (size != 4 && !(chip.cdna4 && (size == 12 || size == 16)))
    throw Fault(chip.arch + " has no loads to LDS of " + std::to_string(size) + " bytes");
  const uint64_t first = w.uniform(base, "the LDS address of a load to LDS") + uint64_t(offset);
  if (first % 4) throw Fault("the LDS address of a load to LDS is not aligned to 4 bytes");
  w.count_vector_memory(1);
  w.last_copy = w.memory_clock;
  const ptx_sim::Knowledge known = w.published();
  uint8_t bytes[16];
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    fetch(l, bytes);
    const ptx_sim::Access access{w.copies, w.memory_clock, &known, false, w.line()};
    std::memcpy(w.group.lds.write(first + uint64_t(l * size), size_t(size), access, l, w.lane_epoch), bytes,
                size_t(size));
  }
}

/// (resource, LDS, size, offset, scalar offset, constant offset, aux); numbers: size, constant offset.
void buffer_to_lds(Wave& w, const Instruction& in) {
  const Resource r = resource_of(w, in.in[0]);
  const uint64_t* offset = w.in(in.in[3]);
  const uint64_t scalar = w.uniform(in.in[4], "the scalar offset of a buffer access");
  load_to_lds(w, in.in[1], in.numbers[0], in.numbers[1], [&](int l, uint8_t* out) {
    read(w, r, offset[l] + uint64_t(in.numbers[1]), scalar, uint32_t(in.numbers[0]), out);
  });
}

/// (pointer, LDS, size, constant offset, aux).
void global_to_lds(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[0]);
  load_to_lds(w, in.in[1], in.numbers[0], in.numbers[1], [&](int l, uint8_t* out) {
    const auto size = uint32_t(in.numbers[0]);
    std::memcpy(out, w.group.memory.read(address[l] + uint64_t(in.numbers[1]), size, w.who, false), size);
  });
}

void fat_to_lds(Wave& w, const Instruction& in) {
  const BufferPlace p = fat_place(w, in.in[0]);
  load_to_lds(w, in.in[1], in.numbers[0], in.numbers[1], [&](int l, uint8_t* out) {
    read(w, p.resource, p.offset[l] + uint64_t(in.numbers[1]), 0, uint32_t(in.numbers[0]), out);
  });
}

void set_bytes(Decoder& d, llvm::Type* t, Instruction& out) {
  out.pieces = d.pieces(t);
  out.bytes = uint32_t(d.layout().getTypeStoreSize(t));
  if (out.bytes > 128) throw Fault("a value of " + std::to_string(out.bytes) + " bytes in a buffer");
}

bool decode_fat(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (const auto* l = llvm::dyn_cast<llvm::LoadInst>(&i)) {
    if (l->getPointerAddressSpace() != 7) return false;
    set_bytes(d, l->getType(), out);
    return out.run = load_fat, true;
  }
  const auto* s = llvm::dyn_cast<llvm::StoreInst>(&i);
  if (!s || s->getPointerAddressSpace() != 7) return false;
  set_bytes(d, s->getValueOperand()->getType(), out);
  return out.run = store_fat, true;
}

} // namespace

bool decode_buffer(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (decode_fat(d, i, out)) return true;
  const std::string name = intrinsic_name(i);
  if (!name.starts_with("amdgcn.")) return false;
  const auto& call = llvm::cast<llvm::CallBase>(i);
  if (name == "amdgcn.make.buffer.rsrc") {
    out.run = make;
  } else if (name == "amdgcn.raw.ptr.buffer.load" || name == "amdgcn.raw.buffer.load") {
    set_bytes(d, i.getType(), out);
    out.run = load_buffer;
  } else if (name == "amdgcn.raw.ptr.buffer.store" || name == "amdgcn.raw.buffer.store") {
    set_bytes(d, i.getOperand(0)->getType(), out);
    out.kind = 1, out.run = store_buffer;
  } else if (name == "amdgcn.raw.ptr.buffer.load.lds" || name == "amdgcn.raw.buffer.load.lds") {
    out.numbers = {immediate(call, 2), immediate(call, 5)};
    out.run = buffer_to_lds;
  } else if (name == "amdgcn.global.load.lds" || name == "amdgcn.load.to.lds") {
    out.numbers = {immediate(call, 2), immediate(call, 3)};
    out.run = call.getArgOperand(0)->getType()->getPointerAddressSpace() == 7 ? fat_to_lds : global_to_lds;
  }
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
