// hipBLASLt: the profile of HIPBLASLT_LOG_MASK 64 and 128, a line for each different call and how often it
// came, and the bench lines of mask 32, one for each call.
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

using Scale = BlasCall::Scale;

Scale scale_word(const Fields& f, std::string_view name) {
  const std::string_view word = f.find(name).value_or("0");
  if (word == "0" || word == "false" || word == "none") return Scale::none;
  if (word == "1" || word == "true") return Scale::tensor;
  if (word == "2") return Scale::vector;
  throw Untranslatable{"its " + std::string(name) + " " + shown(word) + " (scales of blocks) is not served"};
}

/// What is none of DeepGen's epilogues or layouts.
void refuse_the_rest(const Fields& f) {
  for (const char* name : {"gradient", "use_e", "swizzleA", "swizzleB", "grouped_gemm"})
    if (f.is_set(name)) throw Untranslatable{std::string(name) + " is not served"};
  if (f.is_set("scaleC")) throw Untranslatable{"scaleC is not served"};
  const std::string_view mode = f.find("batch_mode").value_or("0");
  if (mode != "0" && mode.find("strided") == mode.npos)
    throw Untranslatable{"its batch_mode " + shown(mode) + " is not served"};
  if (f.is_set("bias_vector") && f.find("bias_source").value_or("d") != "d")
    throw Untranslatable{"its bias is a gradient's, of " + shown(*f.find("bias_source"))};
}

bool read_fields(const Fields& f, Call& call) {
  if (f.times("m") > 1 || f.times("M") > 1)
    throw Untranslatable{"a grouped call, whose lines say nothing of its rows at run time"};
  BlasCall blas;
  blas.m = f.size("M", "m"), blas.n = f.size("N", "n"), blas.k = f.size("K", "k");
  if (f.find("batch_count")) blas.batch = f.size("batch_count");
  call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch);
  refuse_the_rest(f);
  blas.transposed_a = is_transposed(f.text("transA")), blas.transposed_b = is_transposed(f.text("transB"));
  blas.a = f.text("a_type"), blas.b = f.text("b_type"), blas.d = f.text("d_type");
  blas.c = f.find("c_type").value_or("");
  blas.compute = f.text("compute_type");
  blas.beta_is_zero = number(f.find("beta").value_or("")) == 0.0;
  blas.scale_a = scale_word(f, "scaleA"), blas.scale_b = scale_word(f, "scaleB");
  blas.scale_alpha = f.is_set("scaleAlpha_vector");
  const Scale scale_d = scale_word(f, "scaleD");
  if (scale_d == Scale::vector) throw Untranslatable{"its scaleD is a vector, which is not served"};
  blas.scale_d = scale_d == Scale::tensor;
  blas.bias = f.is_set("bias_vector");
  if (blas.bias) blas.bias_type = f.find("bias_type").value_or("");
  blas.activation = activation_of_log(f.find("activation_type").value_or("none"));
  translate(blas, call);
  return true;
}

constexpr std::string_view kProfile = "- {function: ", kBench = "hipblaslt-bench ";

bool is_profile(std::string_view line) { return line.starts_with(kProfile); }

bool read_profile(std::string_view line, Call& call) {
  const Fields f = Fields::of_flow(line.substr(3));
  if (f.find("call_count")) call.calls = f.size("call_count");
  if (f.text("function") != "matmul")
    throw Untranslatable{"its function " + shown(f.text("function")) + " is not served"};
  return read_fields(f, call);
}

bool is_bench(std::string_view line) { return line.starts_with(kBench); }

bool read_bench(std::string_view line, Call& call) {
  return read_fields(Fields::of_flags(line.substr(kBench.size())), call);
}

} // namespace

const LogKind kHipblasltProfile = {"hipBLASLt profile", is_profile, read_profile};
const LogKind kHipblasltBench = {"hipBLASLt bench", is_bench, read_bench, "hipBLASLt profile"};

} // namespace deepgen
