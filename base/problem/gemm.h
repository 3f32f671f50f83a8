// Gemm: a matrix product with an epilogue. A small value with one canonical text form.
#pragma once

#include "base/problem/epilogue_op.h"
#include "base/problem/rate.h"
#include "base/problem/size.h"
#include "base/problem/types.h"

#include <optional>
#include <vector>

namespace deepgen {

enum class Layout { nn, nt, tn, tt }; ///< first letter A, second B; n: as named, t: stored transposed

/// D[M,N] = epilogue(alpha * A[M,K] * B[K,N] + beta * C[M,N]), `batch` times; all matrices row-major.
/// Layout n stores A as [M,K] and B as [K,N]; t stores A as [K,M] and B as [N,K].
/// The epilogue ops apply left to right, each at most once, in the accumulator's type (f32 when that is i32),
/// and the result is rounded to D's type: to nearest even; for i8 to the nearest integer, ties to even,
/// saturated to [-128, 127]. With a gate, the product is gate(alpha * A * Bg) * (alpha * A * Bu), D =
/// epilogue(that + beta * C): B has both weights, [Bg; Bu] one behind the other, as 2 N columns (layout n) or
/// 2 N rows (layout t). With groups, the rows of A, C and D belong to as many groups, one behind the other,
/// and each group has a matrix of B of its own, and a bias and scale_col: experts of a mixture. How many rows
/// each has is in a table in device memory: offsets[g] is the first row of group g, offsets[groups] the end
/// of the last one, at most M. Rows of no group are left as they are. C has D's type. Vectors and matrices of
/// the epilogue have epilogue_type(), scales scale_type(). The vectors are the same for every batch entry;
/// residual and multiplier have one matrix per entry. A size may be a range: then a call passes it.
struct Gemm {
  int64_t m = 1, n = 1, k = 1, batch = 1; ///< of a range: its upper end
  std::array<std::optional<int64_t>, size_count>
      least; ///< of a range: its lower end, by Size; a call may also pass 0
  Type a = Type::f32, b = Type::f32, d = Type::f32, accumulate = Type::f32;
  Layout layout = Layout::nn;
  int64_t groups = 0;             ///< 0: all rows have the same B
  std::optional<EpilogueOp> gate; ///< silu, gelu, gelu_tanh, sigmoid or relu
  bool packed_b = false; ///< calls take B as deepgen_pack_b() has written it (base/problem/packed_b.h)
  std::vector<EpilogueOp> epilogue;
  /// BATCH_INVARIANT: the bits of a row of D depend neither on M, nor on the row's place, nor on other rows.
  /// All kernels of a function then add up over K in one order (Template::sum_order()).
  bool batch_invariant = false;
  /// THREADS: calls are tuned for so many threads of the runtime's pool; on the CPU alone.
  int64_t threads = 1;
  int64_t align =
      4; ///< bytes; every pointer and row start is aligned to its own type, and this is the smallest of those

  bool operator==(const Gemm&) const = default;

  bool ranged(Size size) const { return least[size_t(size)].has_value(); }
  bool ranged() const { return ranged(Size::m) || ranged(Size::n) || ranged(Size::k) || ranged(Size::batch); }
  /// Those above: of ranges, the largest.
  Sizes sizes() const { return {m, n, k, batch}; }
  /// Whether a call may pass these: each in its range or 0 there, and as built where it is fixed.
  bool takes(const Sizes&) const;
  /// The problem of one call, without ranges. Throws Error when a size is 0 or not one that it takes.
  Gemm at(const Sizes&) const;
  /// The same with its ranges' upper ends there: what rules and estimates of calls of these sizes look at.
  Gemm up_to(const Sizes&) const;

  bool a_transposed() const { return layout == Layout::tn || layout == Layout::tt; }
  bool b_transposed() const { return layout == Layout::nt || layout == Layout::tt; }
  bool has(EpilogueOp op) const;
  /// Columns of A * B: those of both weights where there is a gate.
  int64_t sum_columns() const { return gate ? 2 * n : n; }
  /// The problem without its gate, with B as it is: N is what sum_columns() was.
  Gemm ungated() const;
  /// Floating-point (or integer) operations of one call: 2 M K sum_columns() batch (gate and epilogue are not
  /// counted, as in every BLAS).
  double flops() const { return 2.0 * double(m) * double(sum_columns()) * double(k) * double(batch); }
  /// Bytes of one call with beta 0 whose operands are each read, or written, once.
  double bytes() const;
  Rate rate() const { return {flops(), "GFLOP/s"}; }
  /// How long a call takes on one core, in operations of a GEMM.
  double work() const { return flops(); }
  /// Matrices in B.
  int64_t b_matrices() const { return groups ? groups : batch; }
  /// Rows that a group has on average, rounded up; all of them without groups.
  int64_t group_rows() const { return groups ? (m + groups - 1) / groups : m; }
  /// A problem of as much work whose groups all have group_rows(): a batch.
  Gemm as_batch() const;
  /// Columns of the matrices as stored, which is also the smallest leading dimension, in elements.
  int64_t a_columns() const { return a_transposed() ? m : k; }
  int64_t b_columns() const { return b_transposed() ? k : sum_columns(); }
  int64_t a_rows() const { return a_transposed() ? k : m; }
  int64_t b_rows() const { return b_transposed() ? sum_columns() : k; }
  /// Of bias, bias_row, residual and multiplier: D's type, or f32 when that is i8.
  Type epilogue_type() const;
  /// Of the scales, alpha, beta and the clamp's bounds: f64 for f64 problems, i32 when D is i32 (alpha and
  /// beta are then integers), else f32. Also the type in which the epilogue computes.
  Type scale_type() const;

  /// The canonical line, e.g.
  /// "gemm m=512 n=2048 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4"; a gate
  /// stands before the epilogue, and groups before that: "layout=nt groups=8 gate=silu epilogue=none". A
  /// packed B stands between them: "layout=nt gate=silu packed=b epilogue=none".
  /// A range is "m=1..8192", and "epilogue=none invariant=rows align=4" is batch invariant. More threads than
  /// one stand before align: "threads=8 align=4".
  std::string key() const;
  /// The inverse of key(); throws Error naming the offending field. parse(key()) == *this, and
  /// parse(text).key() == text: any other spelling is refused, so that one problem has one key.
  static Gemm parse(std::string_view key);
};

inline constexpr int64_t most_groups = 1024;
inline constexpr int64_t most_threads = 1024; ///< as the runtime's pool

/// Types whose products are summed in i32.
bool is_integer(Type);

std::string to_string(Layout);
std::string to_string(EpilogueOp);
std::string epilogue_text(const std::vector<EpilogueOp>&); ///< "none" or "bias+gelu"

/// Fills in what follows from a, b and d: the accumulator (f32; f64; i32) and the alignment.
void complete(Gemm&);

/// Throws Error when sizes are not >= 1, a range is empty, types are not served, or the epilogue is not
/// sensible. Served (a b
/// -> d): f32, f64; f16 and bf16 -> same or f32; tf32 -> f32; e4m3 and e5m2 in any pairing -> f16, bf16, f32;
/// i8 -> i32 (no epilogue, no gate), f32, bf16, i8; the same with u8 for A; with a packed B f32 by bf16 and
/// by i8 -> f32.
void validate(const Gemm&);

} // namespace deepgen
