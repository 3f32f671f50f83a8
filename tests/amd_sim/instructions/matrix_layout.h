// Matrix layouts: which lane and which element of its operand holds what of A, B, C and D in a matrix
// instruction. Needs no LLVM.
#pragma once

#include <cstdint>
#include <string>

namespace deepgen::amd_sim {

enum class Element { f64, f32, xf32, f16, bf16, fp8, bf8, i8, i32 };
int bits_of(Element);

struct Place {
  int lane = 0, item = 0;
  bool operator==(const Place&) const = default;
};

struct MatrixOp {
  enum Kind { mfma, wmma_gfx11, wmma_gfx12 } kind = mfma;
  int m = 0, n = 0, k = 0;
  int blocks = 1; ///< products that one instruction computes side by side
  Element a = Element::f32, b = Element::f32, d = Element::f32;
  int items_a = 1, items_d = 1; ///< elements of one lane's operand
  int lanes = 64;

  /// From an intrinsic's name behind "llvm.amdgcn." and the bits of its operands A and D: for example
  /// "mfma.f32.32x32x8f16", "mfma.f32.16x16x16bf16.1k", "wmma.f32.16x16x16.f16". Throws Fault.
  MatrixOp(const std::string& name, int bits_a, int bits_d);

  // C is as D. Block: of mfma alone. gfx11 holds A and B twice, also 16 lanes on.
  Place a_at(int row, int k, int block = 0) const;
  Place b_at(int k, int column, int block = 0) const { return a_at(column, k, block); }
  Place d_at(int row, int column, int block = 0) const;
};

} // namespace deepgen::amd_sim
