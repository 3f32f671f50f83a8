// Moves, and loads and stores of threads.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

namespace deepgen::ptx_sim {
namespace {

void move(Warp& w, const Instruction& in) {
  uint64_t out[32];
  std::memcpy(out, w.in(in.operands[1]), sizeof out);
  w.put(in.operands[0], out);
}

/// mov {a, b}, c; in.m: bits of a part.
void unpack(Warp& w, const Instruction& in) {
  uint64_t whole[32], part[32];
  std::memcpy(whole, w.in(in.at(1)), sizeof whole);
  for (size_t i = 0; i < in.count(0); ++i) {
    for (int l = 0; l < 32; ++l) part[l] = whole[l] << (64 - in.m * (i + 1)) >> (64 - in.m);
    w.put(in.at(0, i), part);
  }
}

/// mov c, {a, b}
void pack(Warp& w, const Instruction& in) {
  uint64_t whole[32] = {};
  for (size_t i = 0; i < in.count(1); ++i) {
    const uint64_t* part = w.in(in.at(1, i));
    for (int l = 0; l < 32; ++l) whole[l] |= (part[l] << (64 - in.m) >> (64 - in.m)) << (in.m * i);
  }
  w.put(in.at(0), whole);
}

uint64_t address_of(const Warp& w, const Operand& o, int lane) { return w.in(o)[lane] + uint64_t(o.offset); }

void check_alignment(uint64_t address, size_t bytes) {
  if (address % bytes)
    throw Fault("misaligned: " + std::to_string(bytes) + " bytes at address " + std::to_string(address));
}

void check_waited(const Warp& w) {
  if (w.block.cluster.dependent && !w.waited_for_predecessor)
    throw Fault("global memory before griddepcontrol.wait of a dependent launch");
}

uint32_t identity(const Warp& w) { return uint32_t(w.block.cluster.number << 10 | w.agent) + 1; }

uint64_t load_element(const uint8_t* from, const Instruction& in) {
  uint64_t x = 0;
  std::memcpy(&x, from, in.bytes);
  if (!in.is_signed) return x;
  const int up = 64 - 8 * in.bytes;
  return uint64_t(int64_t(x << up) >> up) << (64 - in.m) >> (64 - in.m); // to the register's width
}

/// One access of a lane, of all elements of a vector; `source(address)` finds the bytes.
template <typename Source>
void load(Warp& w, const Instruction& in, const Source& source) {
  const size_t count = in.count(0), bytes = in.bytes * count;
  uint64_t out[8][32];
  const uint8_t* from = nullptr;
  uint64_t last = 0;
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t address = address_of(w, in.at(1), l);
    if (!from || address != last) {
      check_alignment(address, bytes);
      from = source(address, bytes);
      last = address;
    }
    for (size_t i = 0; i < count; ++i) out[i][l] = load_element(from + i * in.bytes, in);
  }
  for (size_t i = 0; i < count; ++i) w.put(in.at(0, i), out[i]);
}

void load_global(Warp& w, const Instruction& in) {
  check_waited(w);
  const GlobalMemory& memory = w.block.cluster.memory;
  load(w, in,
       [&](uint64_t address, size_t bytes) { return memory.read(address, bytes, identity(w), in.flag); });
}

/// Flags between blocks, of 4 bytes: ld.acquire.gpu and st.release.gpu.
void load_flag(Warp& w, const Instruction& in) {
  check_waited(w);
  uint64_t out[32] = {};
  for (int l = 0; l < 32; ++l)
    if (w.is_active(l)) out[l] = w.block.cluster.memory.acquire(address_of(w, in.at(1), l), identity(w));
  w.put(in.at(0), out);
}

void store_flag(Warp& w, const Instruction& in) {
  check_waited(w);
  for (int l = 0; l < 32; ++l)
    if (w.is_active(l))
      w.block.cluster.memory.release(address_of(w, in.at(0), l), uint32_t(w.in(in.at(1))[l]), identity(w));
}

void load_shared(Warp& w, const Instruction& in) {
  load(w, in, [&](uint64_t address, size_t bytes) {
    uint64_t offset;
    Block& block = w.block.cluster.block_of(w.block, address, offset);
    if (&block != &w.block) block.check_alive(), w.reads_others |= w.active;
    return block.shared.read(offset, bytes, w.access());
  });
}

void load_parameter(Warp& w, const Instruction& in) {
  const std::vector<uint8_t>& all = w.block.cluster.parameters;
  load(w, in, [&](uint64_t address, size_t bytes) {
    const uint64_t offset = address - parameter_window;
    if (offset + bytes > all.size()) throw Fault("outside of the parameters");
    return all.data() + offset;
  });
}

template <typename Target>
void store(Warp& w, const Instruction& in, const Target& target) {
  const size_t count = in.count(1), bytes = in.bytes * count;
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t address = address_of(w, in.at(0), l);
    check_alignment(address, bytes);
    uint8_t* to = target(address, bytes);
    for (size_t i = 0; i < count; ++i) std::memcpy(to + i * in.bytes, &w.in(in.at(1, i))[l], in.bytes);
  }
}

void store_global(Warp& w, const Instruction& in) {
  check_waited(w);
  GlobalMemory& memory = w.block.cluster.memory;
  store(w, in, [&](uint64_t address, size_t bytes) { return memory.write(address, bytes, identity(w)); });
}

void store_shared(Warp& w, const Instruction& in) {
  store(w, in, [&](uint64_t address, size_t bytes) {
    uint64_t offset;
    Block& block = w.block.cluster.block_of(w.block, address, offset);
    return block.shared.write(offset, bytes, w.access());
  });
}

/// cp.async [to], [from], bytes{, of which so many are read}: the write is the copying agent's.
void copy_async(Warp& w, const Instruction& in) {
  check_waited(w);
  const size_t bytes = w.in(in.at(2))[0];
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t to = address_of(w, in.at(0), l), from = address_of(w, in.at(1), l);
    size_t valid = bytes;
    if (in.groups() > 3 && in.flag) valid = size_t(uint32_t(w.in(in.at(3))[l]));
    if (valid > bytes) throw Fault("cp.async of more than " + std::to_string(bytes) + " bytes");
    check_alignment(to, bytes), check_alignment(from, bytes);
    Access access = w.access();
    access.agent = w.copies, access.clock = w.copy_group;
    uint8_t* out = w.block.shared.write(to, bytes, access);
    std::memset(out, 0, bytes);
    if (valid) std::memcpy(out, w.block.cluster.memory.read(from, valid, identity(w), true), valid);
  }
}

void commit_copies(Warp& w, const Instruction&) {
  if (w.gathered()) ++w.copy_group;
}

/// What the copies of so many groups wrote is known, to the generic proxy alone: what reads it by the other
/// one wants a fence.
void know_copies(Warp& w, uint32_t groups) {
  uint32_t& seen = w.known.seen[w.copies];
  seen = std::max(seen, groups);
}

void wait_copies(Warp& w, const Instruction& in) {
  if (!w.gathered()) return;
  const uint64_t under_way = in.groups() ? w.in(in.at(0))[0] : 0;
  if (w.copy_group > under_way) know_copies(w, w.copy_group - 1 - uint32_t(under_way));
}

void wait_all_copies(Warp& w, const Instruction&) {
  if (!w.gathered()) return;
  know_copies(w, w.copy_group++);
}

/// prefetch.global.L2 [a]: hardware would forgive an address that does not exist, but it is a mistake.
void prefetch(Warp& w, const Instruction& in) {
  for (int l = 0; l < 32; ++l)
    if (w.is_active(l)) w.block.cluster.memory.read(address_of(w, in.at(0), l), 1, identity(w), false);
}

bool decode_move(const Opcode& op, Instruction& in) {
  if (op.name() == "cvta" || op.text == "mov.pred") { // generic addresses are the windows' own
    in.run = move;
    return true;
  }
  if (op.name() != "mov" || op.parts.size() != 2) return false;
  const size_t bits = 8 * size_t(type_bytes(op.last()));
  const size_t to = in.count(0), from = in.count(1);
  in.m = uint16_t(bits / std::max(to, from));
  in.run = to > 1 ? unpack : from > 1 ? pack : move;
  in.renames = to == 1 && from == 1;
  return bits > 0;
}

bool decode_copy(const Opcode& op, Instruction& in) {
  if (op.text == "cp.async.commit_group")
    in.run = commit_copies;
  else if (op.text == "cp.async.wait_group")
    in.run = wait_copies;
  else if (op.text == "cp.async.wait_all")
    in.run = wait_all_copies;
  else if (op.has("shared") && op.last() == "global") {
    in.run = copy_async;
    in.flag = in.groups() > 3 && !op.has("L2::cache_hint");
  } else
    return false;
  return true;
}

} // namespace

Opcode::Opcode(const std::string& opcode) : text(opcode) {
  for (size_t from = 0; from <= text.size();) {
    const size_t dot = std::min(text.find('.', from), text.size());
    parts.push_back(text.substr(from, dot - from));
    from = dot + 1;
  }
}

bool Opcode::has(std::string_view part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

int type_bytes(const std::string& type) {
  if (type.size() < 2 || std::string("busf").find(type[0]) == std::string::npos) return 0;
  const std::string digits = type.substr(1);
  return digits == "8"     ? 1
         : digits == "16"  ? 2
         : digits == "32"  ? 4
         : digits == "64"  ? 8
         : digits == "128" ? 16
                           : 0;
}

uint8_t format_of(const std::string& type) {
  static const std::pair<const char*, Format> all[] = {
      {"f32", Format::f32},   {"f64", Format::f64},   {"f16", Format::f16},   {"bf16", Format::bf16},
      {"tf32", Format::tf32}, {"e4m3", Format::e4m3}, {"e5m2", Format::e5m2}, {"s8", Format::s8},
      {"u8", Format::u8},     {"s32", Format::s32}};
  for (const auto& [name, format] : all)
    if (type == name) return uint8_t(format);
  throw Fault("unknown type " + type);
}

bool decode_memory(const Opcode& op, Instruction& in, const Program& program) {
  if (decode_move(op, in)) return true;
  if (op.name() == "cp") return decode_copy(op, in);
  if (op.name() == "createpolicy" || op.name() == "prefetch") {
    in.run = op.text == "prefetch.global.L2" ? prefetch : nothing;
    return true;
  }
  const bool loads = op.name() == "ld";
  if (!loads && op.name() != "st") return false;
  const std::string& type = op.last();
  in.bytes = uint8_t(type_bytes(type)), in.is_signed = type[0] == 's', in.flag = op.has("nc");
  in.kind = op.has("relaxed") || op.has("acquire") || op.has("volatile"); // may meet writes of others
  if (loads && in.operands[0].kind == Operand::reg) in.m = program.register_bits[in.operands[0].slot];
  if (in.bytes == 0 || in.bytes > 8 || in.count(loads ? 0 : 1) > 8) return false;
  if (op.text == "ld.acquire.gpu.global.b32")
    in.run = load_flag;
  else if (op.text == "st.release.gpu.global.b32")
    in.run = store_flag;
  else if (op.has("param"))
    in.run = loads ? load_parameter : nullptr;
  else if (op.has("global"))
    in.run = loads ? load_global : store_global;
  else if (op.has("shared") || op.has("shared::cta") || op.has("shared::cluster"))
    in.run = loads ? load_shared : store_shared;
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
