// wgmma: each warp of a warpgroup makes its 16 rows of D. The accumulators are not to be used, and the
// operands in shared memory not to be written, until the group has been waited for.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/machine/readings.h"
#include "tests/ptx_sim/machine/swizzle.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <cmath>
#include <cstdio>

namespace deepgen::ptx_sim {
namespace {

constexpr int kStepBytes = 32; // of K

/// A matrix descriptor: where 16 bytes of an operand lie. Outer is M or N.
class Descriptor {
public:
  Descriptor(uint64_t bits, bool outer_major) : outer_major_(outer_major) {
    start_ = (bits & 0x3fff) << 4;
    leading_ = (bits >> 16 & 0x3fff) << 4;
    stride_ = (bits >> 32 & 0x3fff) << 4;
    if (bits >> 49 & 7)
      throw Fault("a matrix descriptor with a base offset, which the simulator does not know");
    constexpr uint64_t spans[] = {0, 128, 64, 32};
    span_ = spans[bits >> 62];
  }

  /// K-major: of 16 bytes along K. Else of 16 bytes along the outer dimension, for one k. `outer`, `k`: in
  /// elements.
  uint64_t chunk(uint64_t outer, uint64_t k, uint64_t element_bytes) const {
    return swizzled(start_ + (outer_major_ ? outer_chunk(outer * element_bytes / 16, k)
                                           : k_chunk(outer, k * element_bytes / 16)),
                    span_);
  }

private:
  /// Eight rows of 16 bytes (or of the swizzle's span) lie behind one another; `stride` from eight to the
  /// next eight.
  uint64_t k_chunk(uint64_t row, uint64_t unit) const {
    const uint64_t pitch = span_ ? span_ : 16;
    return row % 8 * pitch + row / 8 * stride_ + unit * (span_ ? 16 : leading_);
  }
  uint64_t outer_chunk(uint64_t unit, uint64_t k) const {
    if (!span_) return unit * stride_ + k % 8 * 16 + k / 8 * leading_;
    const uint64_t units = span_ / 16;
    return unit % units * 16 + unit / units * leading_ + k % 8 * span_ + k / 8 * stride_;
  }
  uint64_t start_, leading_, stride_, span_;
  bool outer_major_;
};

uint64_t uniform(const Warp& w, const Operand& o) {
  const uint64_t* x = w.in(o);
  for (int l = 1; l < 32; ++l)
    if (x[l] != x[0]) throw Fault("an operand of wgmma differs between lanes");
  return x[0];
}

/// The group that is being made reads.
Access reader(const Warp& w) {
  Access a = w.access(true);
  a.agent = w.warpgroup, a.clock = w.wgmma_clock + w.wgmma_groups + 1;
  return a;
}

constexpr size_t kRows = 16; // of a warp
constexpr size_t kChunkBytes = 16;

template <typename Bits, Format format>
void decode_all(const uint8_t* bytes, double* out) {
  Bits elements[kChunkBytes / sizeof(Bits)];
  std::memcpy(elements, bytes, kChunkBytes);
  for (Bits x : elements) *out++ = decode(format, x);
}

/// By code of its own for each format: the simulator spends most time around this.
void decode_chunk(Format f, const uint8_t* bytes, double* out) {
  switch (f) {
  case Format::f16:
    return decode_all<uint16_t, Format::f16>(bytes, out);
  case Format::bf16:
    return decode_all<uint16_t, Format::bf16>(bytes, out);
  case Format::tf32:
    return decode_all<uint32_t, Format::tf32>(bytes, out);
  case Format::s8:
    return decode_all<uint8_t, Format::s8>(bytes, out);
  case Format::u8:
    return decode_all<uint8_t, Format::u8>(bytes, out);
  case Format::e4m3:
    return decode_all<uint8_t, Format::e4m3>(bytes, out);
  case Format::e5m2:
    return decode_all<uint8_t, Format::e5m2>(bytes, out);
  default:
    throw Fault("wgmma does not multiply this format");
  }
}

/// Where the element of an outer index and a k is kept.
struct Places {
  size_t outer, k;
};

/// One call's operands: A of 16 rows, B of n columns, K steps each.
struct Product {
  std::vector<double> a, b; ///< [row][k], [k][column]

  Product(Warp& w, const Instruction& in, Warp::ReadingGroup& reading)
      : a(kRows * in.k), b(size_t(in.n) * in.k) {
    // Operands of 16 bits may be transposed: the last immediates say so, of which A in registers has none.
    const bool may = bits_of(Format(in.types[1])) == 16, a_in_registers = in.count(1) > 1;
    const bool m_major = may && !a_in_registers && uniform(w, in.at(6)),
               n_major = may && uniform(w, in.at(in.groups() - 1));
    if (a_in_registers)
      a_from_registers(w, in);
    else
      load(w, Descriptor(uniform(w, in.at(1)), m_major), Format(in.types[1]), uint64_t(w.index % 4) * kRows,
           kRows, in.k, a, {in.k, 1}, reading, m_major);
    load(w, Descriptor(uniform(w, in.at(2)), n_major), Format(in.types[2]), 0, in.n, in.k, b, {1, in.n},
         reading, n_major);
  }

private:
  static void load(Warp& w, const Descriptor& d, Format f, uint64_t first, uint64_t count, uint64_t k_count,
                   std::vector<double>& out, Places at, Warp::ReadingGroup& reading, bool outer_major) {
    const uint64_t size = uint64_t(bits_of(f)) / 8, each = kChunkBytes / size;
    const auto fetch = [&](uint64_t outer, uint64_t k) {
      const uint64_t offset = d.chunk(first + outer, k, size);
      reading.readings.push_back({&w.block, offset, kChunkBytes});
      return w.block.shared.read(offset, kChunkBytes, reader(w));
    };
    double values[kChunkBytes];
    if (outer_major)
      for (uint64_t k = 0; k < k_count; ++k)
        for (uint64_t o = 0; o < count; o += each) {
          decode_chunk(f, fetch(o, k), values);
          for (uint64_t i = 0; i < each && o + i < count; ++i) out[(o + i) * at.outer + k * at.k] = values[i];
        }
    else
      for (uint64_t o = 0; o < count; ++o)
        for (uint64_t k = 0; k < k_count; k += each) {
          decode_chunk(f, fetch(o, k), values);
          for (uint64_t i = 0; i < each; ++i) out[o * at.outer + (k + i) * at.k] = values[i];
        }
  }

  /// As A of mma.sync.m16n8k16 (or the same in elements of other widths).
  void a_from_registers(const Warp& w, const Instruction& in) {
    const auto f = Format(in.types[1]);
    const int bits = bits_of(f), each = 32 / bits;
    for (size_t r = 0; r < in.count(1); ++r)
      for (int l = 0; l < 32; ++l)
        for (int j = 0; j < each; ++j) {
          const size_t row = size_t(l / 4 + 8 * (int(r) % 2)),
                       k = size_t(each * (l % 4) + 4 * each * (int(r) / 2) + j);
          a[row * in.k + k] = decode(f, w.in(in.at(1, r))[l] >> (bits * j));
        }
  }
};

void check_registers(const Warp& w, const Instruction& in, size_t group, bool accumulators) {
  for (size_t i = 0; i < in.count(group); ++i) {
    if (in.at(group, i).kind != Operand::reg) throw Fault("an operand of wgmma is no register");
    const uint32_t tag = w.tags[in.at(group, i).slot];
    if (tag == Warp::touched) throw Fault("a register of wgmma was written without a wgmma.fence since");
    if (tag >= Warp::first_group && !accumulators)
      throw Fault("wgmma reads what another one is still to write");
  }
}

/// One row of D: to each column's sum its products are added, in the order of k. All columns together, as
/// that is vector code: these are the loops that the simulator spends most time in.
void add_products(const Product& p, size_t row, size_t n, size_t k_count, double* __restrict sums) {
  for (size_t k = 0; k < k_count; ++k) {
    const double a = p.a[row * k_count + k];
    const double* b = &p.b[k * n];
    for (size_t c = 0; c < n; ++c) sums[c] += a * b[c];
  }
}

constexpr int kNarrowBits = 14;

/// The weight of the last bit that is kept beside `largest`.
double unit_of(double largest) { return std::ldexp(1, std::ilogb(largest) + 1 - kNarrowBits); }

/// Of 8-bit floats: addends are cut off below the 14th bit of the largest, which is what GPUs were seen to
/// keep (DeepSeek-V3 technical report, 3.3.2); the manuals promise nothing.
void add_narrow_products(const Product& p, size_t row, size_t n, size_t k_count, double* __restrict sums) {
  constexpr size_t kColumns = 256; // the most that there are
  double plain[kColumns], largest[kColumns], per_unit[kColumns];
  constexpr double kMost = 1 << kNarrowBits;
  int32_t kept[kColumns]; // in units
  std::copy_n(sums, n, plain);
  add_products(p, row, n, k_count, plain);
  for (size_t c = 0; c < n; ++c) largest[c] = std::fabs(sums[c]);
  for (size_t k = 0; k < k_count; ++k) {
    const double a = p.a[row * k_count + k];
    const double* b = &p.b[k * n];
    for (size_t c = 0; c < n; ++c) {
      const double x = std::fabs(a * b[c]);
      largest[c] = x > largest[c] ? x : largest[c];
    }
  }
  // Where there are zeros alone, or what is no number, the sum is the plain one.
  const auto is_cut = [&](size_t c) { return largest[c] > 0 && std::isfinite(plain[c]); };
  for (size_t c = 0; c < n; ++c) {
    per_unit[c] = is_cut(c) ? 1 / unit_of(largest[c]) : 0; // a power of two: products with it are exact
    kept[c] = is_cut(c) ? int32_t(sums[c] * per_unit[c]) : 0;
  }
  for (size_t k = 0; k < k_count; ++k) {
    const double a = p.a[row * k_count + k];
    const double* b = &p.b[k * n];
    for (size_t c = 0; c < n; ++c) {
      const double units = a * b[c] * per_unit[c];
      kept[c] += int32_t(std::fabs(units) <= kMost ? units : 0); // not so: it is no number
    }
  }
  for (size_t c = 0; c < n; ++c) sums[c] = is_cut(c) ? kept[c] / per_unit[c] : plain[c];
}

/// d, a, b, scale-d{, sign of a, of b{, a and b transposed}}
void multiply(Warp& w, const Instruction& in) {
  if (!w.gathered(all_lanes)) return;
  check_registers(w, in, 0, true);
  if (in.count(1) > 1) check_registers(w, in, 1, false);
  for (size_t i = 0; in.count(1) > 1 && i < in.count(1); ++i)
    w.held[in.at(1, i).slot] = Warp::first_group + w.wgmma_groups + 1;
  w.wgmma_readings.push_back({w.wgmma_groups + 1, 0, w.line, w.known, {}});
  const Product p(w, in, w.wgmma_readings.back());
  const bool keeps = uniform(w, in.at(3)) & 1;
  double sign = 1;
  for (size_t g : {4, 5})
    if (in.groups() > size_t(g) && int32_t(uniform(w, in.at(g))) == -1) sign = -sign;
  const auto type = Format(in.types[0]);
  const bool narrow = bits_of(Format(in.types[1])) == 8 && type == Format::f32;
  std::vector<double> sums(kRows * in.n);
  const auto for_each = [&](const auto& visit) { // visit(an element of D in its register, its sum)
    for (size_t i = 0; i < in.count(0); ++i) {
      uint64_t* d = w.registers(in.at(0, i));
      for (size_t l = 0; l < 32; ++l)
        visit(d[l], sums[(l / 4 + 8 * (i / 2 % 2)) * in.n + 8 * (i / 4) + 2 * (l % 4) + i % 2]);
    }
  };
  if (narrow && keeps) for_each([&](uint64_t d, double& sum) { sum = sign * decode(type, d); });
  for (size_t row = 0; row < kRows; ++row)
    (narrow ? add_narrow_products : add_products)(p, row, in.n, in.k, &sums[row * in.n]);
  for_each([&](uint64_t& d, double sum) {
    sum *= sign;
    if (type == Format::s32)
      d = uint32_t((keeps ? uint32_t(d) : 0) + uint32_t(int32_t(sum)));
    else
      d = encode(type, narrow ? sum : sum + (keeps ? decode(type, d) : 0));
  });
  for (size_t i = 0; i < in.count(0); ++i) w.tags[in.at(0, i).slot] = Warp::first_group + w.wgmma_groups + 1;
}

void fence(Warp& w, const Instruction&) {
  for (uint32_t& tag : w.tags)
    if (tag == Warp::touched) tag = 0;
}

void commit(Warp& w, const Instruction&) {
  if (!w.gathered(all_lanes)) return;
  ++w.wgmma_groups;
  ++w.block.cluster.version;
}

/// The four warps run together: what one has waited for, all have done.
void wait_for_groups(Warp& w, const Instruction& in) {
  if (!w.gathered(all_lanes)) return;
  const auto under_way = uint32_t(w.in(in.at(0))[0]);
  const uint32_t done = w.wgmma_groups > under_way ? w.wgmma_groups - under_way : 0;
  const auto first = size_t(w.index / 4 * 4);
  if (first + 4 > w.block.warps.size()) throw Fault("wgmma in a warpgroup of fewer than four warps");
  for (size_t i = first; i < first + 4; ++i)
    if (w.block.warps[i]->wgmma_groups < done) return w.try_again();
  for (size_t i = first; i < first + 4; ++i) {
    Warp& other = *w.block.warps[i];
    const Access as{w.warpgroup, w.wgmma_clock + done, &w.known, true, w.line};
    other.finish(other.wgmma_readings, as, [&](const Warp::ReadingGroup& r) { return r.group <= done; });
  }
  w.known.learn(w.warpgroup, w.wgmma_clock + done);
  for (uint32_t& tag : w.tags)
    if (tag >= Warp::first_group && tag - Warp::first_group <= done) tag = 0;
  for (uint32_t& reader : w.held)
    if (reader && reader - Warp::first_group <= done) reader = 0;
}

/// wgmma.mma_async.sync.aligned.m64nNkK.d.a.b
bool decode_multiply(const Opcode& op, Instruction& in) {
  unsigned m, n, k;
  if (op.parts.size() < 8 || std::sscanf(op.parts[4].c_str(), "m%un%uk%u", &m, &n, &k) != 3) return false;
  in.n = uint16_t(n), in.k = uint16_t(k);
  for (size_t i = 0; i < 3; ++i) in.types[i] = format_of(op.parts[5 + i]);
  const int size = bits_of(Format(in.types[1])) / 8;
  if (in.groups() < 4 || (size == 2 && in.groups() != (in.count(1) > 1 ? 7u : 8u))) return false;
  return m == 64 && n % 8 == 0 && n <= 256 && int(k) * size == kStepBytes && in.count(0) == n / 2 &&
         bits_of(Format(in.types[0])) == 32 && (in.count(1) == 1 || in.count(1) == 4);
}

} // namespace

bool decode_wgmma(const Opcode& op, Instruction& in) {
  if (op.name() != "wgmma") return false;
  in.of_wgmma = true;
  const std::string& verb = op.parts.at(1);
  if (verb == "fence")
    in.run = fence;
  else if (verb == "commit_group")
    in.run = commit;
  else if (verb == "wait_group")
    in.run = wait_for_groups;
  else if (verb == "mma_async" && decode_multiply(op, in))
    in.run = multiply;
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
