#include "workload/readers/blas.h"

#include "base/text/error.h"
#include "workload/log/fields.h"

#include <algorithm>
#include <cctype>

namespace deepgen {
namespace {

struct Word {
  std::string_view text;
  Type type;
};
// Of the BLAS libraries of AMD; of NVIDIA; of PyTorch; of oneDNN.
constexpr Word kTypes[] = {{"f32_r", Type::f32},        {"f64_r", Type::f64},
                           {"f16_r", Type::f16},        {"bf16_r", Type::bf16},
                           {"f8_r", Type::e4m3},        {"bf8_r", Type::e5m2},
                           {"i8_r", Type::i8},          {"i32_r", Type::i32},
                           {"R_32F", Type::f32},        {"R_64F", Type::f64},
                           {"R_16F", Type::f16},        {"R_16BF", Type::bf16},
                           {"R_8F_E4M3", Type::e4m3},   {"R_8F_E5M2", Type::e5m2},
                           {"R_8I", Type::i8},          {"R_32I", Type::i32},
                           {"float", Type::f32},        {"double", Type::f64},
                           {"Half", Type::f16},         {"BFloat16", Type::bf16},
                           {"tf32", Type::tf32},        {"Float8_e4m3fn", Type::e4m3},
                           {"Float8_e5m2", Type::e5m2}, {"signed char", Type::i8},
                           {"int", Type::i32},          {"f32", Type::f32},
                           {"f64", Type::f64},          {"f16", Type::f16},
                           {"bf16", Type::bf16},        {"f8_e4m3", Type::e4m3},
                           {"f8_e5m2", Type::e5m2},     {"s8", Type::i8},
                           {"s32", Type::i32}};

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// Scales stand before the bias, as the libraries have it: they are of the product.
void add_scales(const BlasCall& call, std::vector<EpilogueOp>& ops) {
  using Scale = BlasCall::Scale;
  const bool any = call.scale_a != Scale::none || call.scale_b != Scale::none || call.scale_alpha;
  if (any && !call.beta_is_zero)
    throw Untranslatable{"it scales the product and adds C (beta is not 0): DeepGen would scale C as well"};
  if (call.scale_alpha && call.scale_a == Scale::vector)
    throw Untranslatable{"it has two scales for each row: of A, and as alpha"};
  if (call.scale_b == Scale::tensor) ops.push_back(EpilogueOp::scale_a);
  if (call.scale_a == Scale::tensor) ops.push_back(EpilogueOp::scale_b);
  if (call.scale_b == Scale::vector) ops.push_back(EpilogueOp::scale_row);
  if (call.scale_a == Scale::vector || call.scale_alpha) ops.push_back(EpilogueOp::scale_col);
}

} // namespace

Type type_of_log(std::string_view word) {
  if (word.starts_with("c10::")) word.remove_prefix(5);
  for (const Word& known : kTypes)
    if (word == known.text) return known.type;
  if (has(word, "fnuz"))
    throw Untranslatable{"its type " + shown(word) + " is of the form fnuz, which is not served"};
  if (word.ends_with("_c") || word.starts_with("C_") || has(word, "omplex"))
    throw Untranslatable{"its type " + shown(word) + " is complex, which is not served"};
  throw Untranslatable{"its type " + shown(word) + " is not served"};
}

bool is_transposed(std::string_view word) {
  if (word.starts_with("OP_")) word.remove_prefix(3);
  if (word == "N" || word == "n" || word == "none") return false;
  if (word == "T" || word == "t" || word == "C" || word == "c" || word == "transpose") return true;
  throw Untranslatable{"its transposition " + shown(word) + " is not understood"};
}

std::optional<EpilogueOp> activation_of_log(std::string_view word) {
  const std::string name = lower(word);
  if (name.empty() || name == "none") return {};
  if (name == "relu") return EpilogueOp::relu;
  if (name == "gelu") return EpilogueOp::gelu_tanh;
  if (name == "swish" || name == "silu") return EpilogueOp::silu;
  if (name == "sigmoid") return EpilogueOp::sigmoid;
  if (name == "clamp") return EpilogueOp::clamp;
  throw Untranslatable{"its activation " + shown(word) + " is not served"};
}

void apply_compute(std::string_view word, Gemm& gemm) {
  const std::string name = lower(word);
  if (gemm.a != Type::f32) return;
  if (has(name, "xf32") || has(name, "tf32"))
    gemm.a = gemm.b = Type::tf32;
  else if (has(name, "fast"))
    throw Untranslatable{"it computes f32 by " + shown(word) + ", which rounds to 16 bits and is not served"};
}

void finish(Gemm gemm, Call& call) {
  complete(gemm);
  try {
    validate(gemm);
  } catch (const Error& e) { // what, and the line that says where
    std::string text = e.what();
    const size_t where = text.find("\n  where:  ");
    std::string why = first_line(text);
    if (where != std::string::npos) why += ": " + first_line(text.substr(where + 11));
    throw Untranslatable{why};
  }
  call.problem = std::move(gemm);
}

void translate(const BlasCall& blas, Call& call) {
  call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch);
  Gemm gemm;
  gemm.m = blas.n, gemm.n = blas.m, gemm.k = blas.k, gemm.batch = blas.batch;
  // Column-major, not transposed, is row-major and transposed; and the product of the transposes has B first.
  gemm.layout = blas.transposed_b ? (blas.transposed_a ? Layout::tt : Layout::tn)
                                  : (blas.transposed_a ? Layout::nt : Layout::nn);
  gemm.a = type_of_log(blas.b), gemm.b = type_of_log(blas.a), gemm.d = type_of_log(blas.d);
  apply_compute(blas.compute, gemm);
  if (!blas.c.empty() && !blas.beta_is_zero && type_of_log(blas.c) != gemm.d)
    throw Untranslatable{"its C is " + shown(blas.c) + " and its D " + shown(blas.d) +
                         ", which is not served"};
  add_scales(blas, gemm.epilogue);
  if (blas.bias) {
    if (!blas.bias_type.empty() && type_of_log(blas.bias_type) != gemm.epilogue_type())
      throw Untranslatable{"its bias is " + shown(blas.bias_type) + ", and DeepGen's would be " +
                           to_string(gemm.epilogue_type())};
    gemm.epilogue.push_back(EpilogueOp::bias);
  }
  if (blas.activation) gemm.epilogue.push_back(*blas.activation);
  if (blas.scale_d) gemm.epilogue.push_back(EpilogueOp::scale_d);
  finish(std::move(gemm), call);
}

} // namespace deepgen
