// rocBLAS: the bench lines of ROCBLAS_LAYER 2, one for each call, and the profile of layer 4, a line for each
// different call and how often it came.
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

constexpr std::string_view kRocblasBenchLine = "rocblas-bench ",
                           kRocblasProfileLine = "- { rocblas_function: ";

/// The type in the name of a function: "sgemm" has 's'.
std::string_view type_of_letter(char letter) {
  switch (letter) {
  case 's':
    return "f32_r";
  case 'd':
    return "f64_r";
  case 'h':
    return "f16_r";
  case 'c':
    return "f32_c";
  case 'z':
    return "f64_c";
  default:
    return {};
  }
}

/// "rocblas_sgemm_strided_batched_64", "gemm_ex". Returns false for what is no GEMM; sets all types where the
/// name, or -r, has one.
bool read_name(std::string_view name, const Fields& f, BlasCall& blas) {
  if (name.starts_with("rocblas_")) name.remove_prefix(8);
  if (name.ends_with("_64")) name.remove_suffix(3);
  std::string_view type = f.find("r", "precision").value_or("");
  if (!name.empty() && name.substr(1).starts_with("gemm")) {
    type = type_of_letter(name[0]);
    name.remove_prefix(1);
  }
  if (!name.starts_with("gemm") || name.starts_with("gemmt")) return false;
  if (type.size() == 1) type = type_of_letter(type[0]);
  if (!type.empty()) blas.a = blas.b = blas.c = blas.d = blas.compute = type;
  if (name == "gemm_batched" || name == "gemm_batched_ex" || name == "gemm_batched_ex3")
    throw Untranslatable{"a batch of pointers is not served"};
  for (std::string_view known :
       {"gemm", "gemm_ex", "gemm_ex2", "gemm_ex3", "gemm_ext2", "gemm_strided_batched",
        "gemm_strided_batched_ex", "gemm_strided_batched_ex3"})
    if (name == known) return true;
  throw Untranslatable{"its function " + shown(name) + " is not served"};
}

bool read_fields(std::string_view name, const Fields& f, Call& call) {
  BlasCall blas;
  if (f.find("M", "m")) { // before anything is refused, so that what is lost can be weighed
    blas.m = f.size("M", "m"), blas.n = f.size("N", "n"), blas.k = f.size("K", "k");
    if (f.find("batch_count")) blas.batch = f.size("batch_count");
    call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch);
  }
  if (!read_name(name, f, blas)) return false;
  blas.m = f.size("M", "m"), blas.n = f.size("N", "n"), blas.k = f.size("K", "k");
  blas.transposed_a = is_transposed(f.text("transA", "transposeA"));
  blas.transposed_b = is_transposed(f.text("transB", "transposeB"));
  if (f.find("a_type") || blas.a.empty()) {
    blas.a = f.text("a_type"), blas.b = f.text("b_type"), blas.c = f.find("c_type").value_or("");
    blas.d = f.text("d_type", "c_type");
    blas.compute = f.find("compute_type", "composite_compute_type").value_or("");
  }
  const std::string_view mode = f.find("math_mode").value_or("");
  if (mode == "1" || mode.find("xf32") != mode.npos) blas.compute = "xf32_r";
  blas.beta_is_zero = number(f.find("beta").value_or("")) == 0.0;
  translate(blas, call);
  return true;
}

bool is_rocblas_bench(std::string_view line) {
  return line.starts_with(kRocblasBenchLine) || line.starts_with("./rocblas-bench ");
}

bool read_rocblas_bench(std::string_view line, Call& call) {
  const Fields f = Fields::of_flags(line.substr(line.find(' ')));
  return read_fields(f.text("f", "function"), f, call);
}

bool is_rocblas_profile(std::string_view line) { return line.starts_with(kRocblasProfileLine); }

bool read_rocblas_profile(std::string_view line, Call& call) {
  const Fields f = Fields::of_flow(line.substr(3));
  if (f.find("call_count")) call.calls = f.size("call_count");
  return read_fields(f.text("rocblas_function"), f, call);
}

} // namespace

const LogKind kRocblasProfile = {"rocBLAS profile", is_rocblas_profile, read_rocblas_profile};
const LogKind kRocblasBench = {"rocBLAS bench", is_rocblas_bench, read_rocblas_bench, "rocBLAS profile"};

} // namespace deepgen
