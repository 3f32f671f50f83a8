// cuBLASLt: the trace of CUBLASLT_LOG_LEVEL 5, or 2 and more, a line for each call. A date may stand in
// front.
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

namespace deepgen {
namespace {

constexpr std::string_view kLibrary = "[cublasLt][", kTrace = "][Trace][";

/// What stands between "Adesc=[" and "]"; empty when there is no such thing.
std::string_view described(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + name.size());
  const size_t end = rest.find(']');
  if (end == rest.npos) throw Untranslatable{"the line is cut off"};
  return rest.substr(0, end);
}

struct Matrix {
  int64_t rows = 0, columns = 0, batch = 1;
  std::string_view type;
};

Matrix matrix(std::string_view line, const char* name, const char* instead = nullptr) {
  std::string_view text = described(line, name);
  if (text.empty() && instead) text = described(line, instead);
  if (text.empty()) throw Untranslatable{std::string("the line has no ") + name + "]"};
  const Fields f = Fields::of_assignments(text);
  const std::string_view order = f.find("order").value_or("COL");
  if (order != "COL" && order != "ORDER_COL" && order != "CUBLASLT_ORDER_COL")
    throw Untranslatable{"its order of matrices " + shown(order) + " is not served"};
  Matrix m;
  m.rows = f.size("rows"), m.columns = f.size("cols"), m.type = f.text("type");
  if (f.find("batchCount")) m.batch = f.size("batchCount");
  return m;
}

void read_epilogue(std::string_view word, BlasCall& blas) {
  for (std::string_view prefix : {"CUBLASLT_", "EPILOGUE_"})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  if (word == "DEFAULT") return;
  if (word.ends_with("BIAS")) {
    blas.bias = true;
    word.remove_suffix(word.size() > 4 && word[word.size() - 5] == '_' ? 5 : 4);
  }
  if (word.empty()) return;
  if (word != "RELU" && word != "GELU")
    throw Untranslatable{"its epilogue " + shown(word) + " is not served"};
  blas.activation = activation_of_log(word);
}

BlasCall::Scale scale_of(const Fields& f, const std::string& letter) {
  const std::string_view mode = f.find(letter + "ScaleMode").value_or("");
  if (mode.find("VEC32") != mode.npos || mode.find("VEC16") != mode.npos || mode.find("BLK") != mode.npos ||
      mode.find("VEC128") != mode.npos)
    throw Untranslatable{"scales of blocks, " + shown(mode) + ", are not served"};
  if (mode.find("OUTER_VEC") != mode.npos) return BlasCall::Scale::vector;
  return f.find(letter + "ScalePointer") ? BlasCall::Scale::tensor : BlasCall::Scale::none;
}

void read_descriptor(const Fields& f, BlasCall& blas) {
  blas.transposed_a = is_transposed(f.find("transa").value_or("N"));
  blas.transposed_b = is_transposed(f.find("transb").value_or("N"));
  blas.compute = f.find("computeType").value_or("");
  read_epilogue(f.find("epilogue").value_or("DEFAULT"), blas);
  blas.bias_type = f.find("biasDataType").value_or("");
  blas.scale_a = scale_of(f, "a"), blas.scale_b = scale_of(f, "b");
  if (f.find("cScalePointer")) throw Untranslatable{"a scale of C is not served"};
  blas.scale_d = scale_of(f, "d") != BlasCall::Scale::none;
  const std::string_view pointers = f.find("pointerMode").value_or("");
  blas.scale_alpha = pointers.find("ALPHA_DEVICE_VECTOR") != pointers.npos;
}

/// "cublasLtMatmul", "cublasLtSSSMatmul"; not "cublasLtMatmulAlgoGetHeuristic", which computes nothing.
std::string_view function_of(std::string_view line) {
  const size_t library = line.find(kLibrary);
  const size_t trace = line.find(kTrace, library);
  if (library == line.npos || trace == line.npos) return {};
  const std::string_view rest = line.substr(trace + kTrace.size());
  return rest.substr(0, rest.find(']'));
}

/// Behind one date at most, so that no line is searched to its end.
bool is_trace(std::string_view line) {
  return line.starts_with('[') && line.substr(0, 64).find(kLibrary) != line.npos;
}

bool read_trace(std::string_view line, Call& call) {
  const std::string_view function = function_of(line);
  if (!function.starts_with("cublasLt") || !function.ends_with("Matmul")) return false;
  const Matrix a = matrix(line, " Adesc=["), b = matrix(line, " Bdesc=["),
               d = matrix(line, " Ddesc=[", " Cdesc=[");
  const Fields f = Fields::of_assignments(described(line, " computeDesc=["));
  BlasCall blas;
  const bool ta = is_transposed(f.find("transa").value_or("N")),
             tb = is_transposed(f.find("transb").value_or("N"));
  blas.m = ta ? a.columns : a.rows, blas.k = ta ? a.rows : a.columns, blas.n = tb ? b.rows : b.columns;
  blas.batch = d.batch;
  call.flops = 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch);
  if ((tb ? b.columns : b.rows) != blas.k || d.rows != blas.m || d.columns != blas.n)
    throw Untranslatable{"the sizes of its matrices do not go together"};
  for (int64_t batch : {a.batch, b.batch})
    if (batch != d.batch) throw Untranslatable{"its matrices have batches of different length"};
  blas.a = a.type, blas.b = b.type, blas.d = d.type;
  if (const size_t beta = line.rfind(" beta="); beta != line.npos) { // or "?", in device memory
    std::string_view rest = line.substr(beta + 6);
    blas.beta_is_zero = number(cut_first(rest, ' ')) == 0.0;
  }
  if (described(line, " Cdesc=[") != "") blas.c = matrix(line, " Cdesc=[").type;
  read_descriptor(f, blas);
  translate(blas, call);
  return true;
}

} // namespace

const LogKind kCublasltTrace = {"cuBLASLt trace", is_trace, read_trace};

} // namespace deepgen
