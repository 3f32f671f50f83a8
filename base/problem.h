// Problem: what is to be computed, independent of how and where. A small value with one canonical text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deepgen {

enum class Type { f32, f64 };
enum class Layout { nn, nt, tn, tt }; ///< first letter A, second B; n: as named, t: stored transposed
enum class EpilogueOp { bias, relu, gelu, silu };

/// D[M,N] = epilogue(alpha * A[M,K] * B[K,N] + beta * C[M,N]), `batch` times; all matrices row-major.
/// Layout n stores A as [M,K] and B as [K,N]; t stores A as [K,M] and B as [N,K].
/// The epilogue ops apply left to right: bias adds bias[n] (type of D) to every row, gelu is the erf form.
struct Problem {
  std::string op = "gemm";
  int64_t m = 1, n = 1, k = 1, batch = 1;
  Type a = Type::f32, b = Type::f32, d = Type::f32, accumulate = Type::f32;
  Layout layout = Layout::nn;
  std::vector<EpilogueOp> epilogue;
  int64_t align = 4; ///< bytes to which every base address and row start is aligned; the size of D's type

  bool operator==(const Problem&) const = default;

  bool a_transposed() const { return layout == Layout::tn || layout == Layout::tt; }
  bool b_transposed() const { return layout == Layout::nt || layout == Layout::tt; }
  bool has(EpilogueOp op) const;
  /// Floating-point operations of one call: 2 M N K batch (the epilogue is not counted, as in every BLAS).
  double flops() const { return 2.0 * double(m) * double(n) * double(k) * double(batch); }
  /// Columns of the matrices as stored, which is also the smallest leading dimension, in elements.
  int64_t a_columns() const { return a_transposed() ? m : k; }
  int64_t b_columns() const { return b_transposed() ? k : n; }
  int64_t a_rows() const { return a_transposed() ? k : m; }
  int64_t b_rows() const { return b_transposed() ? n : k; }

  /// The canonical line, e.g.
  /// "gemm m=512 n=2048 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4".
  std::string key() const;
  /// The inverse of key(); throws Error naming the offending field. parse(key()) == *this, and
  /// parse(text).key() == text: any other spelling is refused, so that one problem has one key.
  static Problem parse(std::string_view key);
};

std::string to_string(Type);
std::string to_string(Layout);
std::string to_string(EpilogueOp);
std::string epilogue_text(const std::vector<EpilogueOp>&); ///< "none" or "bias+gelu"
int64_t size_of(Type);                                      ///< bytes

/// Throws Error when sizes are not >= 1, types are not served, or the epilogue is not sensible.
void validate(const Problem&);

} // namespace deepgen
