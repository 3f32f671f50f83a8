// PyTorch TunableOp: the CSV of tuned or untuned products, each once, so that a line counts as one call.
// Column-major.
//
//   GemmTunableOp_BFloat16_TN,tn_6144_8_2560_ld_2560_2560_6144,Gemm_Hipblaslt_6849,0.200725
//   GemmStridedBatchedTunableOp_float_TN,tn_128_128_64_B_96_ld_64_64_128
//   ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,tn_64_12288_2048_ld_2048_2048_64_rw_1_bias_None
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

constexpr std::string_view kOp = "TunableOp_";

bool is_tunable(std::string_view line) {
  const std::string_view begin = line.substr(0, 32);
  return (line.starts_with("Gemm") || line.starts_with("ScaledGemm")) && begin.find(kOp) != begin.npos;
}

/// The name of a type ends at an underscore, and may have one: Float8_e4m3fn.
std::string_view cut_type(std::string_view& rest) {
  const std::string_view all = rest;
  std::string_view word = cut_first(rest, '_');
  if (word == "Float8") word = all.substr(0, word.size() + 1 + cut_first(rest, '_').size());
  return word;
}

/// Behind "TunableOp_": the types and "_TN".
void read_types(std::string_view text, bool scaled, BlasCall& blas) {
  if (text.size() < 3 || text[text.size() - 3] != '_')
    throw Untranslatable{"its name ends without transpositions"};
  text.remove_suffix(3);
  blas.a = cut_type(text);
  blas.b = blas.d = blas.a;
  if (scaled) blas.b = cut_type(text), blas.d = cut_type(text);
  if (!text.empty() || blas.d.empty()) throw Untranslatable{"its types are not understood"};
}

/// tn_<m>_<n>_<k>[_B_<batch>]_ld_...[_rw_<0|1>_bias_<type>]
void read_sizes(std::string_view text, BlasCall& blas, std::string_view& bias, bool& by_rows) {
  std::string_view rest = text;
  const std::string_view letters = cut_first(rest, '_');
  if (letters.size() != 2) throw Untranslatable{"its sizes are not understood"};
  blas.transposed_a = is_transposed(letters.substr(0, 1)),
  blas.transposed_b = is_transposed(letters.substr(1));
  blas.m = size_of_text("M", cut_first(rest, '_'));
  blas.n = size_of_text("N", cut_first(rest, '_'));
  blas.k = size_of_text("K", cut_first(rest, '_'));
  while (!rest.empty()) {
    const std::string_view word = cut_first(rest, '_');
    if (word == "B") blas.batch = size_of_text("batch", cut_first(rest, '_'));
    if (word == "rw") by_rows = cut_first(rest, '_') == "1";
    if (word == "bias") bias = rest, rest = {};
  }
}

bool read_tunable(std::string_view line, Call& call) {
  const std::vector<std::string_view> cells = split(line, ',');
  if (cells.size() < 2) throw Untranslatable{"the line is cut off"};
  if (cells.size() >= 4) call.seconds = time_of_text(cells[3]) * 1e-3;
  const std::string_view name = cells[0], op = name.substr(0, name.find(kOp));
  if (op == name) throw Untranslatable{"its name is not understood"};
  BlasCall blas;
  std::string_view bias;
  bool by_rows = false;
  read_sizes(trimmed(cells[1]), blas, bias, by_rows);
  call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch);
  const bool scaled = op == "ScaledGemm";
  if (!scaled && op != "Gemm" && op != "GemmStridedBatched" && op != "GemmAndBias")
    throw Untranslatable{"its function " + shown(op) + " is not served"};
  read_types(name.substr(op.size() + kOp.size()), scaled, blas);
  if (scaled) {
    blas.beta_is_zero = true;
    blas.scale_a = blas.scale_b = by_rows ? BlasCall::Scale::vector : BlasCall::Scale::tensor;
  }
  blas.bias = op == "GemmAndBias" || (!bias.empty() && bias != "None");
  if (blas.bias) blas.bias_type = bias;
  translate(blas, call);
  return true;
}

} // namespace

const LogKind kTunableOp = {"TunableOp", is_tunable, read_tunable};

} // namespace deepgen
