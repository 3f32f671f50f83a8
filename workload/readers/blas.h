// A column-major matrix product, as all BLAS libraries log it, and the row-major problem that it is.
#pragma once

#include "workload/log/call.h"

#include <optional>

namespace deepgen {

/// D = activation(alpha op(A) op(B) + beta C + bias), all column-major, M by N; the bias has length M. Words
/// as the log has them.
struct BlasCall {
  enum class Scale { none, tensor, vector };

  bool transposed_a = false, transposed_b = false;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view a, b, c, d; ///< types; an empty c is d's
  std::string_view compute;    ///< empty: what the types imply
  bool beta_is_zero = false;   ///< false where it is not known
  bool bias = false;
  std::string_view bias_type; ///< empty: as it should be
  std::optional<EpilogueOp> activation;
  Scale scale_a = Scale::none, scale_b = Scale::none; ///< a vector: one value for each row of A, column of B
  bool scale_d = false, scale_alpha = false;          ///< the latter: one alpha for each row
};

/// Sets the call's flops and problem. D's transpose is computed: m and n change places, A becomes B, and the
/// scale of one that of the other. Throws Untranslatable.
void translate(const BlasCall&, Call&);

/// The type of a word in any of the logs: "f16_r", "R_16F", "Half", "c10::Half", "f16". Throws
/// Untranslatable.
Type type_of_log(std::string_view word);
/// "N", "T", "C", "OP_T", "transpose". Throws Untranslatable.
bool is_transposed(std::string_view word);
/// "none" and "": none; "relu", "gelu", "swish" and so on. Throws Untranslatable.
std::optional<EpilogueOp> activation_of_log(std::string_view word);
/// tf32 where it says so. Throws Untranslatable where inputs would be rounded to 16 bits.
void apply_compute(std::string_view word, Gemm&);
/// Fills in what follows, and throws Untranslatable where DeepGen does not serve it.
void finish(Gemm, Call&);

} // namespace deepgen
