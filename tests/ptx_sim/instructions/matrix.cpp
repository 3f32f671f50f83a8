// ldmatrix, stmatrix and mma.sync: what a warp does with small matrices.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <cstdio>

namespace deepgen::ptx_sim {
namespace {

constexpr int kRowBytes = 16; // of a matrix of 8 x 8 elements of 16 bits

uint64_t row_address(const Warp& w, const Operand& o, size_t lane) {
  const uint64_t address = w.in(o)[lane] + uint64_t(o.offset);
  if (address % kRowBytes)
    throw Fault("a row of a matrix at address " + std::to_string(address) + " is misaligned");
  return address;
}

/// Lanes 8 i to 8 i + 7 have the addresses of matrix i's rows. Lane l gets the elements 2 (l % 4) and the
/// next of row l / 4, or transposed of column l / 4.
void load_matrices(Warp& w, const Instruction& in) {
  if (!w.gathered(all_lanes)) return;
  uint64_t out[4][32];
  for (size_t i = 0; i < in.count(0); ++i) {
    uint16_t element[8][8];
    for (size_t row = 0; row < 8; ++row) {
      uint64_t offset;
      Block& block = w.block.cluster.block_of(w.block, row_address(w, in.at(1), 8 * i + row), offset);
      std::memcpy(element[row], block.shared.read(offset, kRowBytes, w.access()), kRowBytes);
    }
    for (int l = 0; l < 32; ++l) {
      const int r = l / 4, c = 2 * (l % 4);
      out[i][l] = in.flag ? uint32_t(element[c][r]) | uint32_t(element[c + 1][r]) << 16
                          : uint32_t(element[r][c]) | uint32_t(element[r][c + 1]) << 16;
    }
  }
  for (size_t i = 0; i < in.count(0); ++i) w.put(in.at(0, i), out[i]);
}

void store_matrices(Warp& w, const Instruction& in) {
  if (!w.gathered(all_lanes)) return;
  for (size_t i = 0; i < in.count(1); ++i) {
    const uint64_t* x = w.in(in.at(1, i));
    uint16_t element[8][8];
    for (int l = 0; l < 32; ++l) {
      const int r = l / 4, c = 2 * (l % 4);
      (in.flag ? element[c][r] : element[r][c]) = uint16_t(x[l]);
      (in.flag ? element[c + 1][r] : element[r][c + 1]) = uint16_t(x[l] >> 16);
    }
    for (size_t row = 0; row < 8; ++row) {
      uint64_t offset;
      Block& block = w.block.cluster.block_of(w.block, row_address(w, in.at(0), 8 * i + row), offset);
      std::memcpy(block.shared.write(offset, kRowBytes, w.access()), element[row], kRowBytes);
    }
  }
}

/// The fragments of mma.sync. With g = lane / 4 and t = lane % 4, a register has E = 32 / bits neighbours
/// along K (one for f64); register r of A begins at row g + 8 (r mod M/8) and k = E t + 4 E (r / (M/8)),
/// register r of B at column g and k = E t + 4 E r; value i of C and D lies in row g + 8 (i / 2) and column 2
/// t + i % 2.
struct Fragments {
  double a[16][64], b[64][8];

  Fragments(const Warp& w, const Instruction& in) {
    const auto fa = Format(in.types[1]), fb = Format(in.types[2]);
    const int bits = bits_of(fa), each = std::max(1, 32 / bits), halves = in.m / 8;
    for (size_t r = 0; r < in.count(1); ++r) {
      const uint64_t* x = w.in(in.at(1, r));
      for (int l = 0; l < 32; ++l)
        for (int j = 0; j < each; ++j)
          a[l / 4 + 8 * (int(r) % halves)][each * (l % 4) + 4 * each * (int(r) / halves) + j] =
              decode(fa, x[l] >> (bits * j));
    }
    for (size_t r = 0; r < in.count(2); ++r) {
      const uint64_t* x = w.in(in.at(2, r));
      for (int l = 0; l < 32; ++l)
        for (int j = 0; j < each; ++j)
          b[each * (l % 4) + 4 * each * int(r) + j][l / 4] = decode(fb, x[l] >> (bits * j));
    }
  }
};

void multiply(Warp& w, const Instruction& in) {
  if (!w.gathered(all_lanes)) return;
  const Fragments f(w, in);
  const auto from = Format(in.types[3]), to = Format(in.types[0]);
  double sums[16][8] = {};
  for (int row = 0; row < in.m; ++row) // the columns together, as that is vector code
    for (int k = 0; k < in.k; ++k)
      for (int column = 0; column < 8; ++column) sums[row][column] += f.a[row][k] * f.b[k][column];
  uint64_t out[4][32];
  for (size_t i = 0; i < in.count(0); ++i) {
    const uint64_t* c = w.in(in.at(3, i));
    for (int l = 0; l < 32; ++l) {
      const double sum = sums[l / 4 + 8 * (int(i) / 2)][2 * (l % 4) + int(i) % 2];
      out[i][l] = from == Format::s32 ? uint32_t(uint32_t(c[l]) + uint32_t(int32_t(sum)))
                                      : encode(to, sum + decode(from, c[l]));
    }
  }
  for (size_t i = 0; i < in.count(0); ++i) w.put(in.at(0, i), out[i]);
}

/// "m16n8k32"
bool read_shape(const std::string& text, Instruction& in) {
  unsigned m, n, k;
  if (std::sscanf(text.c_str(), "m%un%uk%u", &m, &n, &k) != 3) return false;
  in.m = uint16_t(m), in.n = uint16_t(n), in.k = uint16_t(k);
  return true;
}

} // namespace

bool decode_matrix(const Opcode& op, Instruction& in) {
  if (op.name() == "ldmatrix" || op.name() == "stmatrix") {
    if (!op.has("m8n8") || op.last() != "b16") return false;
    in.run = op.name() == "ldmatrix" ? load_matrices : store_matrices;
    in.flag = op.has("trans");
    return true;
  }
  if (op.name() != "mma") return false;
  // mma.sync.aligned.shape.row.col.d.a.b.c
  if (op.parts.size() != 10 || !read_shape(op.parts[3], in) || op.parts[4] != "row" || op.parts[5] != "col")
    return false;
  for (size_t i = 0; i < 4; ++i) in.types[i] = format_of(op.parts[6 + i]);
  const int each = std::max(1, 32 / bits_of(Format(in.types[1])));
  if (in.n != 8 || in.m > 16 || in.k > 64 || in.count(1) != size_t(in.m / 8 * (in.k / (4 * each))) ||
      in.count(2) != size_t(in.k / (4 * each)) || in.count(0) != size_t(in.m / 4) ||
      bits_of(Format(in.types[0])) < 32)
    return false;
  in.run = multiply;
  return true;
}

} // namespace deepgen::ptx_sim
