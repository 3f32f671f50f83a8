#include "tests/amd_sim/instructions/matrix_layout.h"

#include "tests/ptx_sim/program/fault.h"

#include <cstdio>

namespace deepgen::amd_sim {
namespace {

Element element_of(const std::string& name) {
  static constexpr std::pair<const char*, Element> all[] = {
      {"f64", Element::f64},   {"f32", Element::f32}, {"xf32", Element::xf32}, {"f16", Element::f16},
      {"bf16", Element::bf16}, {"fp8", Element::fp8}, {"bf8", Element::bf8},   {"i8", Element::i8},
      {"iu8", Element::i8},    {"i32", Element::i32}};
  for (const auto& [text, element] : all)
    if (name == text) return element;
  throw ptx_sim::Fault("a matrix operation that the simulator does not know: of " + name);
}

} // namespace

int bits_of(Element e) {
  switch (e) {
  case Element::f64:
    return 64;
  case Element::f32:
  case Element::xf32:
  case Element::i32:
    return 32;
  case Element::f16:
  case Element::bf16:
    return 16;
  default:
    return 8;
  }
}

MatrixOp::MatrixOp(const std::string& name, int bits_a, int bits_d) {
  char family[8] = {}, result[8] = {}, first[8] = {}, second[8] = {};
  int read = std::sscanf(name.c_str(), "%4[a-z].%4[a-z0-9].%dx%dx%d%7[a-z0-9].%7[a-z0-9]", family, result, &m,
                         &n, &k, first, second);
  if (read < 6)
    read = std::sscanf(name.c_str(), "%4[a-z].%4[a-z0-9].%dx%dx%d.%7[a-z0-9].%7[a-z0-9]", family, result, &m,
                       &n, &k, first, second);
  const std::string which = family, other = second;
  if (read < 6 || (which != "mfma" && which != "wmma"))
    throw ptx_sim::Fault("a matrix operation that the simulator does not know: " + name);
  a = element_of(first);
  b = other.empty() || other == "1k" || other == "tied" ? a : element_of(other);
  d = element_of(result);
  items_a = bits_a / bits_of(a), items_d = bits_d / bits_of(d);
  if (which == "wmma")
    kind = items_a == k ? wmma_gfx11 : wmma_gfx12, lanes = 32;
  else
    blocks = lanes * items_a / (m * k);
}

/// AMD Matrix Instruction Calculator (ROCm/amd_matrix_instruction_calculator): lane and register by i, j, k
/// and block, as it prints them for CDNA1 to CDNA3, RDNA3 and RDNA4. gfx950 goes on with the same rule for
/// its deeper K (IREE, getSingleSubgroupLayout).
Place MatrixOp::a_at(int row, int depth, int block) const {
  switch (kind) {
  case mfma:
    return {row + m * (block + blocks * (depth / items_a)), depth % items_a};
  case wmma_gfx11:
    return {row, depth};
  default:
    // Two bytes and wider: pairs of registers by turns from the two halves; the same for A and B, so that
    // nobody sees it who loads both alike.
    if (bits_of(a) >= 16) return {row + 16 * (depth / 4 % 2), depth / 8 * 4 + depth % 4};
    return {row + 16 * (depth / items_a), depth % items_a};
  }
}

Place MatrixOp::d_at(int row, int column, int block) const {
  switch (kind) {
  case wmma_gfx11: // results of two bytes have a register each; which half is the instruction's to say
    return {column + 16 * (row % 2), bits_of(d) == 16 ? row / 2 * 2 : row / 2};
  case wmma_gfx12:
    return {column + 16 * (row / 8), row % 8};
  default:
    break;
  }
  if (d == Element::f64) // four rows are four groups of lanes
    return {column + n * block + 16 * (row % 4), row / 4};
  if (m == 4) return {column + 4 * block, row};
  const int groups = lanes / n; // of lanes, each with four rows in a row
  return {column + n * (row / 4 % groups), block * m * n / lanes + row / (4 * groups) * 4 + row % 4};
}

} // namespace deepgen::amd_sim
