#include "generator/embed.h"

#include "base/error.h"

#include <cctype>

namespace deepgen {
namespace {

std::string c_type(Type t) { return t == Type::f32 ? "float" : "double"; }
std::string symbol(const LibraryFunction& f) { return f.file.ns + "_" + f.file.name; }
std::string number(int64_t x) { return std::to_string(x); }

std::string guard(const std::string& target) {
  std::string text = "DEEPGEN_GENERATED_";
  for (unsigned char c : target)
    text += std::isalnum(c) ? char(std::toupper(c)) : '_';
  return text + "_H";
}

std::string formula(const Problem& p) {
  std::string text = "alpha * A * B + beta * C";
  for (EpilogueOp op : p.epilogue)
    text = op == EpilogueOp::bias ? "(" + text + ") + bias" : to_string(op) + "(" + text + ")";
  return "D = " + text;
}

std::string matrix_line(const std::string& name, int64_t rows, int64_t columns, const std::string& meaning) {
  return "     " + name + "  " + number(rows) + " x " + number(columns) + " (" + meaning +
         "), leading dimension " + number(columns) + " unless given\n";
}

std::string levels(const LibraryFunction& f) {
  std::string text;
  for (const Kernel* k : linked_kernels(f))
    text += "     x86-64-v" + number(k->isa) + ": " + k->choice.text() + "\n";
  return text;
}

/// What the chosen config rests on, for each kernel file.
std::string origins(const LibraryFunction& f) {
  std::string text;
  for (const KernelFile& file : f.kernels) {
    const std::string why = file.origin == "lock"     ? "from the lock"
                            : file.origin == "search" ? "found by this build's search"
                                                      : "the default: not tuned";
    text += (text.empty() ? "" : ", ") + file.arch + ": " + why;
  }
  return text;
}

std::string comment(const LibraryFunction& f) {
  const Problem& p = f.file.problem;
  std::string text = "/* " + symbol(f) + ": " + formula(p) + "\n";
  text += "   M=" + number(p.m) + " N=" + number(p.n) + " K=" + number(p.k) + ", batch " + number(p.batch) +
          ". Row-major. A, B, D: " + to_string(p.d) + "; sums in " + to_string(p.accumulate) + ".\n";
  text += matrix_line("A", p.a_rows(), p.a_columns(), p.a_transposed() ? "K x M, transposed" : "M x K");
  text += matrix_line("B", p.b_rows(), p.b_columns(), p.b_transposed() ? "N x K, transposed" : "K x N");
  text += matrix_line("D", p.m, p.n, "M x N; C alike");
  if (p.has(EpilogueOp::bias))
    text += "     bias: " + number(p.n) + " values, one a column, the same for every batch\n";
  if (p.has(EpilogueOp::gelu))
    text += "     gelu(x) = x/2 * (1 + erf(x / sqrt 2))\n";
  if (p.has(EpilogueOp::silu))
    text += "     silu(x) = x / (1 + exp(-x))\n";
  text += "   Pointers are aligned to " + number(p.align) + " bytes; D must overlap neither A, B nor bias,\n"
          "   which is not checked.\n";
  if (p.batch > 1)
    text += "   Batch entries lie rows x leading dimension apart unless strides are given.\n";
  text += "   Kernels, best first, the first one that the CPU can run is used (" + origins(f) + "):\n" +
          levels(f);
  return text + "*/\n";
}

/// "const float* a, const float* b, const float* bias, float* d"
std::string pointer_parameters(const Problem& p) {
  const std::string in = "const " + c_type(p.a) + "* ";
  return in + "a, " + in + "b, " + (p.has(EpilogueOp::bias) ? in + "bias, " : "") + c_type(p.d) + "* d";
}

std::string pointer_arguments(const Problem& p) {
  return p.has(EpilogueOp::bias) ? "a, b, bias, d" : "a, b, d";
}

std::string c_declarations(const LibraryFunction& f) {
  const std::string name = symbol(f);
  return comment(f) + "deepgen_status " + name + "(" + pointer_parameters(f.file.problem) +
         "); /* alpha 1, beta 0, dense */\ndeepgen_status " + name +
         "_run(const deepgen_gemm_args* args);\nconst struct deepgen_function* " + name +
         "_function(void);\n";
}

/// Overload with sized views, for batch 1: sizes that differ from the tuned ones are an error, not a crash.
std::string matrix_overload(const LibraryFunction& f) {
  const Problem& p = f.file.problem;
  const std::string in = "deepgen::matrix<const " + c_type(p.a) + "> ";
  const bool bias = p.has(EpilogueOp::bias);
  auto differs = [](const std::string& m, int64_t rows, int64_t columns) {
    return m + ".rows != " + number(rows) + " || " + m + ".columns != " + number(columns);
  };
  return "/// The same with sized views, which may have gaps between rows; DEEPGEN_ERROR_SIZE when a size "
         "differs.\n"
         "inline deepgen_status " +
         f.file.name + "(" + in + "a, " + in + "b, " + (bias ? "const " + c_type(p.d) + "* bias, " : "") +
         "deepgen::matrix<" + c_type(p.d) + "> d) {\n  if (" + differs("a", p.a_rows(), p.a_columns()) +
         " ||\n      " + differs("b", p.b_rows(), p.b_columns()) + " ||\n      " + differs("d", p.m, p.n) +
         ")\n    return DEEPGEN_ERROR_SIZE;\n  deepgen_gemm_args args;\n"
         "  args.a = a.data, args.b = b.data, args.d = d.data" +
         (bias ? ", args.bias = bias" : "") +
         ";\n  args.lda = a.leading_dimension, args.ldb = b.leading_dimension, args.ldd = "
         "d.leading_dimension;\n"
         "  return ::" +
         symbol(f) + "_run(&args);\n}\n";
}

std::string cpp_functions(const LibraryFunction& f) {
  const Problem& p = f.file.problem;
  std::string text = "namespace " + f.file.ns + " {\n\n/// " + formula(p) + "; see " + symbol(f) +
                     " above.\n" + "inline deepgen_status " + f.file.name + "(" + pointer_parameters(p) +
                     ") {\n  return ::" + symbol(f) + "(" + pointer_arguments(p) + ");\n}\n" +
                     "/// The same with alpha, beta, C, leading dimensions, strides and workspace.\n" +
                     "inline deepgen_status " + f.file.name +
                     "(const deepgen_gemm_args& args) { return ::" + symbol(f) + "_run(&args); }\n";
  if (p.batch == 1)
    text += matrix_overload(f);
  return text + "\n} // namespace " + f.file.ns + "\n";
}

} // namespace

std::string embed_header(const Library& library) {
  const std::string name = guard(library.target);
  std::string text = "/* Tuned GEMM functions of the library " + library.target +
                     ". Generated by deepgen; edits are lost. Every call returns a\n"
                     "   status that deepgen_status_string() explains; none allocates, throws or aborts. */\n"
                     "#ifndef " +
                     name + "\n#define " + name +
                     "\n\n#include <deepgen/runtime.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const LibraryFunction& f : library.functions)
    text += "\n" + c_declarations(f);
  text += "\n#ifdef __cplusplus\n} /* extern \"C\" */\n";
  for (const LibraryFunction& f : library.functions)
    text += "\n" + cpp_functions(f);
  return text + "\n#endif\n#endif\n";
}

} // namespace deepgen
