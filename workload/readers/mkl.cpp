// MKL: MKL_VERBOSE=1, a line for each call with its time. MKL writes a row-major call as the column-major one
// that it is.
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

constexpr std::string_view kMklPrefix = "MKL_VERBOSE ";

/// "60.00us CNR:OFF ...": seconds; 0 when it is not understood.
double seconds_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  std::string_view rest = trimmed(text);
  const std::string_view word = cut_first(rest, ' ');
  for (const Unit& unit : kUnits) {
    if (!word.ends_with(unit.name)) continue;
    const std::optional<double> value = number(word.substr(0, word.size() - unit.name.size()));
    return value && *value > 0 ? *value * unit.seconds : 0;
  }
  return 0;
}

/// Sets the types by the function's name; false for what is no GEMM.
bool read_name(std::string_view name, BlasCall& blas) {
  if (name.find("GEMM") == name.npos || name.find("GEMMT") != name.npos) return false;
  const auto all = [&](std::string_view type) { blas.a = blas.b = blas.d = type; };
  if (name == "SGEMM") return all("f32"), true;
  if (name == "DGEMM") return all("f64"), true;
  if (name == "HGEMM") return all("f16"), true;
  if (name == "GEMM_BF16BF16F32") return all("bf16"), blas.d = "f32", true;
  if (name == "GEMM_F16F16F32") return all("f16"), blas.d = "f32", true;
  throw Untranslatable{"its function " + shown(name) + " is not served"};
}

bool is_mkl(std::string_view line) { return line.starts_with(kMklPrefix); }

/// SGEMM(N,T,10,128,128,0x..,0x..,10,0x..,128,0x..,0x..,10): transa, transb, m, n, k, alpha, a, lda, b, ldb,
/// beta, c, ldc.
bool read_mkl(std::string_view line, Call& call) {
  std::string_view rest = line.substr(kMklPrefix.size());
  if (rest.find('(') == rest.npos) return false;
  const std::string_view name = cut_first(rest, '(');
  if (name.find("GEMM") == name.npos) return false;
  const size_t end = rest.find(')');
  if (end == rest.npos) throw Untranslatable{"the line is cut off"};
  call.seconds = seconds_of(rest.substr(end + 1));
  const std::vector<std::string_view> words = split(rest.substr(0, end), ',');
  BlasCall blas;
  const bool plain = words.size() == 13;
  if (plain) {
    blas.m = size_of_text("M", words[2]), blas.n = size_of_text("N", words[3]),
    blas.k = size_of_text("K", words[4]);
    call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k);
  }
  if (!read_name(name, blas)) return false;
  if (!plain)
    throw Untranslatable{"its function " + shown(name) + " has " + std::to_string(words.size()) +
                         " arguments, not 13"};
  blas.transposed_a = is_transposed(words[0]), blas.transposed_b = is_transposed(words[1]);
  translate(blas, call);
  return true;
}

} // namespace

const LogKind kMklVerbose = {"MKL verbose", is_mkl, read_mkl};

} // namespace deepgen
