// Lanes: who a lane is, and what the lanes of a wave tell each other.
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

namespace deepgen::amd_sim {
namespace {

void copy_value(Wave& w, const Instruction& in) { w.put(in.result, 0, w.in(in.in[0])); }

void read_first_lane(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t x = w.in(in.in[0], c)[w.first_active()];
    w.compute(in.result, c, [x](int) { return x; });
  }
}

void read_lane(Wave& w, const Instruction& in) {
  const auto lane = w.uniform(in.in[1], "the lane of readlane") % uint64_t(w.lanes);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t x = w.in(in.in[0], c)[lane];
    w.compute(in.result, c, [x](int) { return x; });
  }
}

/// writelane(value, lane, others).
void write_lane(Wave& w, const Instruction& in) {
  const uint64_t value = w.uniform(in.in[0], "the value of writelane");
  const auto lane = int(w.uniform(in.in[1], "the lane of writelane") % uint64_t(w.lanes));
  const uint64_t* others = w.in(in.in[2]);
  w.compute(in.result, 0, [&](int l) { return l == lane ? value : others[l]; });
}

/// mbcnt.lo, mbcnt.hi (in.kind: 32): how many of the mask's lanes come before this one.
void count_before(Wave& w, const Instruction& in) {
  const uint64_t *mask = w.in(in.in[0]), *base = w.in(in.in[1]);
  w.compute(in.result, 0, [&](int l) {
    const int before = std::clamp(l - int(in.kind), 0, 32);
    return base[l] + uint64_t(std::popcount(mask[l] & mask_of(uint32_t(before))));
  });
}

void ballot(Wave& w, const Instruction& in) {
  const uint64_t* x = w.in(in.in[0]);
  uint64_t all = 0;
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l)) all |= (x[l] & 1) << l;
  w.compute(in.result, 0, [all](int) { return all; });
}

uint64_t from_lane(const Wave& w, const uint64_t* x, int lane) {
  if (!w.is_active(lane))
    throw Fault("a value is taken from lane " + std::to_string(lane) + ", which is not active");
  return x[lane];
}

/// Lane l has x[from(l)].
template <typename From>
void gather(Wave& w, const Instruction& in, const Operand& x, const From& from) {
  uint64_t out[64] = {};
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l)) out[l] = from_lane(w, w.in(x), from(l));
  w.put(in.result, 0, out);
}

/// ds.bpermute(4 * lane, value).
void backward_permute(Wave& w, const Instruction& in) {
  const uint64_t* address = w.in(in.in[0]);
  gather(w, in, in.in[1], [&](int l) { return int(address[l] / 4 % uint64_t(w.lanes)); });
}

void forward_permute(Wave& w, const Instruction& in) {
  const uint64_t *address = w.in(in.in[0]), *x = w.in(in.in[1]);
  uint64_t out[64] = {};
  for (int l = 0; l < w.lanes; ++l)
    if (w.is_active(l)) out[address[l] / 4 % uint64_t(w.lanes)] = x[l];
  w.put(in.result, 0, out);
}

/// ds.swizzle(value, how): groups of 32 lanes by masks, or of 4 by their numbers.
void swizzle(Wave& w, const Instruction& in) {
  const auto how = uint32_t(in.numbers[0]);
  gather(w, in, in.in[0], [&](int l) {
    if (how >> 15 & 1) return (l & ~3) | int(how >> 2 * (l & 3) & 3);
    return (l & ~31) | (((l & int(how & 31)) | int(how >> 5 & 31)) ^ int(how >> 10 & 31));
  });
}

/// The lane that a DPP control takes from; -1: none.
int dpp_source(uint32_t control, int l) {
  const int row = l & ~15, in_row = l & 15, n = int(control & 15);
  const auto within = [&](int at) { return at >= 0 && at < 16 ? row + at : -1; };
  if (control < 0x100) return (l & ~3) | int(control >> 2 * (l & 3) & 3);
  switch (control >> 4) {
  case 0x10:
    return within(in_row + n); // row_shl
  case 0x11:
    return within(in_row - n); // row_shr
  case 0x12:
    return row + ((in_row - n) & 15); // row_ror
  case 0x15:
    return row + n; // row_newbcast, row_share
  case 0x16:
    return row + (in_row ^ n); // row_xmask
  default:
    break;
  }
  if (control == 0x140) return row + 15 - in_row;
  if (control == 0x141) return (l & ~7) + 7 - (l & 7);
  if (control == 0x142) return row >= 16 ? row - 1 : -1; // row_bcast:15
  if (control == 0x143) return l >= 32 ? 31 : -1;        // row_bcast:31
  throw Fault("a DPP control that the simulator does not know");
}

/// update.dpp(old, value, control, row mask, bank mask, zero): numbers are the last four.
void dpp(Wave& w, const Instruction& in) {
  const uint64_t *old = w.in(in.in[0]), *x = w.in(in.in[1]);
  uint64_t out[64] = {};
  for (int l = 0; l < w.lanes; ++l) {
    if (!w.is_active(l)) continue;
    const bool masked = !(in.numbers[1] >> (l / 16) & 1) || !(in.numbers[2] >> (l / 4 % 4) & 1);
    const int from = dpp_source(uint32_t(in.numbers[0]), l);
    if (masked)
      out[l] = old[l];
    else if (from < 0 || !w.is_active(from))
      out[l] = in.numbers[3] ? 0 : old[l];
    else
      out[l] = x[from];
  }
  w.put(in.result, 0, out);
}

/// permlane16, permlanex16 (in.kind: 1) (old, value, selectors of lanes 0 to 7 and 8 to 15, ...).
void permute_row(Wave& w, const Instruction& in) {
  const uint64_t low = w.uniform(in.in[2], "a selector of permlane16"),
                 high = w.uniform(in.in[3], "a selector of permlane16");
  gather(w, in, in.in[1], [&](int l) {
    const uint64_t selector = l & 8 ? high : low;
    return ((l & ~15) ^ (in.kind ? 16 : 0)) + int(selector >> 4 * (l & 7) & 15);
  });
}

/// permlane32.swap, permlane16.swap(x, y): the odd groups of in.kind lanes of x and the even ones of y change
/// places.
void swap_groups(Wave& w, const Instruction& in) {
  const uint64_t *x = w.in(in.in[0]), *y = w.in(in.in[1]);
  const auto n = int(in.kind);
  w.expect_together("permlane swap");
  uint64_t first[64], second[64];
  for (int l = 0; l < w.lanes; ++l) {
    const bool odd = l / n % 2;
    first[l] = odd ? y[l - n] : x[l];
    second[l] = odd ? y[l] : x[l + n];
  }
  w.put(in.result, 0, first);
  w.put(in.result, 1, second);
}

bool decode_identity(Decoder& d, const std::string& name, Instruction& out) {
  const int dimension = name.back() - 'x';
  if (name.starts_with("amdgcn.workitem.id."))
    out.in = {d.workitem(dimension)};
  else if (name.starts_with("amdgcn.workgroup.id."))
    out.in = {d.workgroup(dimension)};
  else if (name == "amdgcn.wavefrontsize")
    out.in = {d.constant(uint64_t(d.chip().wave), 32)};
  else
    return false;
  return out.run = copy_value, true;
}

bool decode_permutation(const llvm::CallBase& call, const std::string& name, Instruction& out) {
  if (name == "amdgcn.ds.bpermute")
    out.run = backward_permute;
  else if (name == "amdgcn.ds.permute")
    out.run = forward_permute;
  else if (name == "amdgcn.ds.swizzle")
    out.numbers = {immediate(call, 1)}, out.run = swizzle;
  else if (name == "amdgcn.update.dpp")
    out.numbers = {immediate(call, 2), immediate(call, 3), immediate(call, 4), immediate(call, 5)},
    out.run = dpp;
  else if (name == "amdgcn.permlane16" || name == "amdgcn.permlanex16")
    out.kind = name == "amdgcn.permlanex16", out.run = permute_row;
  else if (name == "amdgcn.permlane32.swap" || name == "amdgcn.permlane16.swap")
    out.kind = name == "amdgcn.permlane32.swap" ? 32 : 16, out.run = swap_groups;
  return out.run != nullptr;
}

} // namespace

bool decode_lanes(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  const std::string name = intrinsic_name(i);
  if (!name.starts_with("amdgcn.")) return false;
  if (decode_identity(d, name, out)) return true;
  if (name == "amdgcn.readfirstlane")
    out.run = read_first_lane;
  else if (name == "amdgcn.readlane")
    out.run = read_lane;
  else if (name == "amdgcn.writelane")
    out.run = write_lane;
  else if (name == "amdgcn.mbcnt.lo" || name == "amdgcn.mbcnt.hi")
    out.kind = name.ends_with("hi") ? 32 : 0, out.run = count_before;
  else if (name == "amdgcn.ballot")
    out.run = ballot;
  return out.run != nullptr || decode_permutation(llvm::cast<llvm::CallBase>(i), name, out);
}

} // namespace deepgen::amd_sim
