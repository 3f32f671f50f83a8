// Matrix layouts against two independent sources: what AMD's Matrix Instruction Calculator
// (ROCm/amd_matrix_instruction_calculator, --detail-instruction) prints, and the tables that IREE generates
// code by (iree/compiler/Codegen/Dialect/GPU/IR/IREEGPUAttrs.cpp, getSingleSubgroupLayout). The calculator
// does not know gfx950.
#include "tests/amd_sim/instructions/matrix_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace deepgen::amd_sim::layout_test {
namespace {

using Formula = int (*)(int row_or_i, int k_or_j, int block);

/// Lane and item of A[i][k] and D[i][j], as printed: "item" is the element counted through the registers.
struct Printed {
  const char* name;
  int bits_a, bits_d;
  Formula a_lane, a_item, d_lane, d_item;
};

// Items of A, by bytes of an element: f16 and bf16 "(floor(k / 2) % 2).[16*(k % 2)+15 : ...]", and so on.
int halves(int, int k, int) { return 2 * (k / 2 % 2) + k % 2; }
int two_halves(int, int k, int) { return k % 2; }
int four_bytes(int, int k, int) { return k % 4; }
int eight_bytes(int, int k, int) { return 4 * (k / 4 % 2) + k % 4; }
int one(int, int, int) { return 0; }
template <int Rows, int Items>
int a_lane(int i, int k, int) {
  return Rows * (k / Items) + i;
}
template <int Rows>
int block_lane(int i, int, int block) {
  return Rows * block + i;
}
int d_lane_32(int i, int j, int) { return 32 * (i / 4) % 64 + j; }
int d_item_32(int i, int, int block) { return 16 * block + 4 * (i / 8) + i % 4; }
int d_lane_16(int i, int j, int) { return 16 * (i / 4) + j; }
int d_item_16(int i, int, int block) { return 4 * block + i % 4; }

constexpr Printed printed[] = {
    {"mfma.f32.32x32x8f16", 64, 512, a_lane<32, 4>, halves, d_lane_32, d_item_32},
    {"mfma.f32.16x16x16f16", 64, 128, a_lane<16, 4>, halves, d_lane_16, d_item_16},
    {"mfma.f32.32x32x8bf16.1k", 64, 512, a_lane<32, 4>, halves, d_lane_32, d_item_32},
    {"mfma.f32.16x16x16bf16.1k", 64, 128, a_lane<16, 4>, halves, d_lane_16, d_item_16},
    {"mfma.f32.16x16x8bf16", 32, 128, a_lane<16, 2>, two_halves, d_lane_16, d_item_16},
    {"mfma.f32.16x16x4f32", 32, 128, a_lane<16, 1>, one, d_lane_16, d_item_16},
    {"mfma.f32.32x32x2f32", 32, 512, a_lane<32, 1>, one, d_lane_32, d_item_32},
    {"mfma.f32.16x16x8.xf32", 64, 128, a_lane<16, 2>, two_halves, d_lane_16, d_item_16},
    {"mfma.f32.32x32x4.xf32", 64, 512, a_lane<32, 2>, two_halves, d_lane_32, d_item_32},
    {"mfma.i32.16x16x32.i8", 64, 128, a_lane<16, 8>, eight_bytes, d_lane_16, d_item_16},
    {"mfma.i32.32x32x16.i8", 64, 512, a_lane<32, 8>, eight_bytes, d_lane_32, d_item_32},
    {"mfma.i32.16x16x16i8", 32, 128, a_lane<16, 4>, four_bytes, d_lane_16, d_item_16},
    {"mfma.i32.32x32x8i8", 32, 512, a_lane<32, 4>, four_bytes, d_lane_32, d_item_32},
    {"mfma.f32.16x16x32.fp8.fp8", 64, 128, a_lane<16, 8>, eight_bytes, d_lane_16, d_item_16},
    {"mfma.f32.32x32x16.bf8.fp8", 64, 512, a_lane<32, 8>, eight_bytes, d_lane_32, d_item_32},
    {"mfma.f32.32x32x1f32", 32, 1024, block_lane<32>, one, d_lane_32, d_item_32},
    {"mfma.f32.32x32x4f16", 64, 1024, block_lane<32>, halves, d_lane_32, d_item_32},
    {"mfma.f32.16x16x4f16", 64, 512, block_lane<16>, halves, d_lane_16, d_item_16},
    {"mfma.f32.4x4x4f16", 64, 128, block_lane<4>, halves, [](int, int j, int b) { return 4 * b + j; },
     [](int i, int, int) { return i; }},
    {"mfma.f64.16x16x4f64", 64, 256, a_lane<16, 1>, one, [](int i, int j, int) { return 16 * (i % 4) + j; },
     [](int i, int, int) { return i / 4; }},
    {"mfma.f64.4x4x4f64", 64, 64, [](int i, int k, int b) { return 4 * b + 16 * k + i; }, one,
     [](int i, int j, int b) { return 16 * (i % 4) + 4 * b + j; }, one},
    // RDNA3, wave32: lanes "i and i+16", all of K in a lane.
    {"wmma.f32.16x16x16.f16", 256, 256, [](int i, int, int) { return i; }, [](int, int k, int) { return k; },
     [](int i, int j, int) { return 16 * i % 32 + j; }, [](int i, int, int) { return i / 2; }},
    {"wmma.i32.16x16x16.iu8", 128, 256, [](int i, int, int) { return i; }, [](int, int k, int) { return k; },
     [](int i, int j, int) { return 16 * i % 32 + j; }, [](int i, int, int) { return i / 2; }},
    {"wmma.f16.16x16x16.f16", 256, 256, [](int i, int, int) { return i; }, [](int, int k, int) { return k; },
     [](int i, int j, int) { return 16 * i % 32 + j; }, [](int i, int, int) { return i / 2 * 2; }},
    // RDNA4, wave32.
    {"wmma.f32.16x16x16.bf16", 128, 256, [](int i, int k, int) { return 16 * (k / 4 % 2) + i; },
     [](int, int k, int) { return 2 * (2 * (k / 8) + k / 2 % 2) + k % 2; },
     [](int i, int j, int) { return 16 * (i / 8) + j; }, [](int i, int, int) { return i % 8; }},
    {"wmma.f32.16x16x16.fp8.bf8", 64, 256, a_lane<16, 8>, eight_bytes,
     [](int i, int j, int) { return 16 * (i / 8) + j; }, [](int i, int, int) { return i % 8; }},
    {"wmma.i32.16x16x16.iu8", 64, 256, a_lane<16, 8>, eight_bytes,
     [](int i, int j, int) { return 16 * (i / 8) + j; }, [](int i, int, int) { return i % 8; }},
};

TEST(MatrixLayout, IsThatOfTheMatrixInstructionCalculator) {
  for (const Printed& p : printed) {
    const MatrixOp op(p.name, p.bits_a, p.bits_d);
    for (int block = 0; block < op.blocks; ++block)
      for (int i = 0; i < op.m; ++i) {
        for (int k = 0; k < op.k; ++k) {
          const Place expected{p.a_lane(i, k, block), p.a_item(i, k, block)};
          EXPECT_EQ(op.a_at(i, k, block), expected) << p.name << " A " << i << " " << k;
          EXPECT_EQ(op.b_at(k, i, block), expected) << p.name << " B " << k << " " << i;
        }
        for (int j = 0; j < op.n; ++j)
          EXPECT_EQ(op.d_at(i, j, block), (Place{p.d_lane(i, j, block), p.d_item(i, j, block)}))
              << p.name << " D " << i << " " << j;
      }
  }
}

/// A dimension of a tile is cut into parts, lanes, and elements in a row.
struct Tile {
  std::array<int, 2> outer, thread, strides, element;

  Place at(int x, int y) const {
    const std::array<int, 2> at{x, y};
    Place p;
    int outside = 0, inside = 0;
    for (size_t d = 0; d < 2; ++d) {
      p.lane += at[d] / element[d] % thread[d] * strides[d];
      inside = inside * element[d] + at[d] % element[d];
      outside = outside * outer[d] + at[d] / element[d] / thread[d];
    }
    p.item = outside * element[0] * element[1] + inside;
    return p;
  }
};

struct Tiled {
  const char* name;
  int bits_a, bits_d;
  Tile a, d;
};

constexpr Tile a_16(int k) { return {{1, 1}, {16, 4}, {1, 16}, {1, k / 4}}; }
constexpr Tile a_32(int k) { return {{1, 1}, {32, 2}, {1, 32}, {1, k / 2}}; }
constexpr Tile d_16{{1, 1}, {4, 16}, {16, 1}, {4, 1}}, d_32{{4, 1}, {2, 32}, {32, 1}, {4, 1}};
constexpr Tile d_f64{{4, 1}, {4, 16}, {16, 1}, {1, 1}};
constexpr Tile a_gfx11{{1, 1}, {16, 1}, {1, 0}, {1, 16}}, d_gfx11{{8, 1}, {2, 16}, {16, 1}, {1, 1}};
constexpr Tile a_gfx12{{1, 1}, {16, 2}, {1, 16}, {1, 8}}, d_gfx12{{1, 1}, {2, 16}, {16, 1}, {8, 1}};

constexpr Tiled tiled[] = {
    {"mfma.f32.16x16x4f32", 32, 128, a_16(4), d_16},
    {"mfma.f64.16x16x4f64", 64, 256, a_16(4), d_f64},
    {"mfma.f32.16x16x8bf16", 32, 128, a_16(8), d_16},
    {"mfma.f32.32x32x4bf16", 32, 512, a_32(4), d_32},
    {"mfma.i32.16x16x16i8", 32, 128, a_16(16), d_16},
    {"mfma.f32.16x16x16f16", 64, 128, a_16(16), d_16},
    {"mfma.f32.16x16x16bf16.1k", 64, 128, a_16(16), d_16},
    {"mfma.i32.32x32x8i8", 32, 512, a_32(8), d_32},
    {"mfma.f32.32x32x8f16", 64, 512, a_32(8), d_32},
    {"mfma.f32.32x32x8bf16.1k", 64, 512, a_32(8), d_32},
    {"mfma.f32.16x16x32.f16", 128, 128, a_16(32), d_16},
    {"mfma.f32.16x16x32.bf16", 128, 128, a_16(32), d_16},
    {"mfma.f32.16x16x32.fp8.fp8", 64, 128, a_16(32), d_16},
    {"mfma.i32.16x16x32.i8", 64, 128, a_16(32), d_16},
    {"mfma.f32.32x32x16.f16", 128, 512, a_32(16), d_32},
    {"mfma.f32.32x32x16.bf16", 128, 512, a_32(16), d_32},
    {"mfma.f32.32x32x16.bf8.bf8", 64, 512, a_32(16), d_32},
    {"mfma.i32.32x32x16.i8", 64, 512, a_32(16), d_32},
    {"mfma.i32.16x16x64.i8", 128, 128, a_16(64), d_16},
    {"mfma.i32.32x32x32.i8", 128, 512, a_32(32), d_32},
    {"wmma.f32.16x16x16.f16", 256, 256, a_gfx11, d_gfx11},
    {"wmma.f32.16x16x16.bf16", 256, 256, a_gfx11, d_gfx11},
    {"wmma.i32.16x16x16.iu8", 128, 256, a_gfx11, d_gfx11},
    {"wmma.f32.16x16x16.fp8.fp8", 64, 256, a_gfx12, d_gfx12},
    {"wmma.i32.16x16x16.iu8", 64, 256, a_gfx12, d_gfx12},
};

TEST(MatrixLayout, IsThatOfIree) {
  for (const Tiled& t : tiled) {
    const MatrixOp op(t.name, t.bits_a, t.bits_d);
    for (int i = 0; i < op.m; ++i) {
      for (int k = 0; k < op.k; ++k) EXPECT_EQ(op.a_at(i, k), t.a.at(i, k)) << t.name << " " << i << " " << k;
      for (int j = 0; j < op.n; ++j) EXPECT_EQ(op.d_at(i, j), t.d.at(i, j)) << t.name << " " << i << " " << j;
    }
  }
}

/// gfx12 takes K of 16-bit elements by turns from the two halves of the wave, as the calculator prints and
/// IREE says in a comment, where its table has them in a row: the same lanes' elements of A and B meet.
TEST(MatrixLayout, Gfx12TakesHalvesByTurns) {
  const MatrixOp op("wmma.f32.16x16x16.f16", 128, 256);
  for (int i = 0; i < 16; ++i) {
    std::set<std::pair<int, int>> ours, theirs;
    for (int k = 0; k < 16; ++k) {
      const Place a = op.a_at(i, k), t = a_gfx12.at(i, k);
      ours.insert({a.lane, a.item}), theirs.insert({t.lane, t.item});
      EXPECT_EQ(a, op.b_at(k, i));
      EXPECT_EQ(op.d_at(i, k), d_gfx12.at(i, k));
    }
    EXPECT_EQ(ours, theirs);
  }
}

TEST(MatrixLayout, HasAPlaceForEveryElement) {
  for (const Printed& p : printed) {
    const MatrixOp op(p.name, p.bits_a, p.bits_d);
    std::set<std::array<int, 2>> a, d;
    for (int block = 0; block < op.blocks; ++block)
      for (int i = 0; i < op.m; ++i) {
        for (int k = 0; k < op.k; ++k) a.insert({op.a_at(i, k, block).lane, op.a_at(i, k, block).item});
        for (int j = 0; j < op.n; ++j) d.insert({op.d_at(i, j, block).lane, op.d_at(i, j, block).item});
      }
    EXPECT_EQ(int(a.size()), op.m * op.k * op.blocks) << p.name;
    EXPECT_EQ(int(d.size()), op.m * op.n * op.blocks) << p.name;
  }
}

} // namespace
} // namespace deepgen::amd_sim::layout_test
