#include "generator/embed_signature.h"
#include "generator/embed_sizes.h"
#include "generator/embed_text.h"

#include <cctype>

namespace deepgen {
namespace {

std::string guard(const std::string& target) {
  std::string text = "DEEPGEN_GENERATED_";
  for (unsigned char c : target) text += std::isalnum(c) ? char(std::toupper(c)) : '_';
  return text + "_H";
}

std::string formula(const Gemm& p) {
  std::string text = "alpha * A * B";
  if (p.gate) text = to_string(*p.gate) + "(alpha * A * Bg) * (alpha * A * Bu)";
  text += " + beta * C";
  for (EpilogueOp op : p.epilogue) {
    const std::string name = op == EpilogueOp::multiply ? "multiplier" : to_string(op);
    if (op == EpilogueOp::bias || op == EpilogueOp::bias_row || op == EpilogueOp::residual)
      text = "(" + text + ") + " + name;
    else if (op == EpilogueOp::multiply || op >= EpilogueOp::scale_a)
      text = "(" + text + ") * " + name;
    else
      text = name + "(" + text + ")";
  }
  return "D = " + text;
}

std::string matrix_line(const std::string& name, Type type, int64_t rows, int64_t columns,
                        const std::string& meaning) {
  return "     " + name + "  " + to_string(type) + ", " + number(rows) + " x " + number(columns) + " (" +
         meaning + "), leading dimension " + number(columns) + " unless given\n";
}

std::string b_meaning(const Gemm& p) {
  if (p.gate) return p.b_transposed() ? "2 N x K, transposed: Bg, then Bu" : "K x 2 N: Bg, then Bu";
  return p.b_transposed() ? "N x K, transposed" : "K x N";
}

std::string operand_lines(const Gemm& p) {
  std::string text;
  const std::vector<Operand> operands = signature(p);
  for (auto x = operands.begin() + 4; x != operands.end(); ++x) { // behind a, b, c, d
    const std::string type = to_string(x->type);
    if (x->role != Operand::Role::in) continue;
    if (x->is_matrix())
      text += matrix_line(x->name, x->type, x->rows, x->columns, "M x N");
    else if (x->shape == Operand::Shape::value)
      text += std::string("     ") + x->name + ": one " + type + " value\n";
    else
      text += std::string("     ") + x->name + ": " + number(x->columns) + " values, one a " +
              (x->shape == Operand::Shape::per_column ? "column" : "row") + ", " + type +
              (p.groups && x->shape == Operand::Shape::per_column ? ", for each group, one behind the other\n"
                                                                  : ", the same for every batch entry\n");
  }
  for (auto [op, meaning] :
       {std::pair{EpilogueOp::gelu, "gelu(x) = x/2 * (1 + erf(x / sqrt 2))"},
        {EpilogueOp::gelu_tanh, "gelu_tanh(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))"},
        {EpilogueOp::silu, "silu(x) = x / (1 + exp(-x))"},
        {EpilogueOp::sigmoid, "sigmoid(x) = 1 / (1 + exp(-x))"},
        {EpilogueOp::clamp, "clamp(x) = min(max(x, clamp_low), clamp_high)"}})
    if (p.has(op) || p.gate == op) text += std::string("     ") + meaning + "\n";
  return text;
}

std::string comment(const LibraryFunction& f) {
  const Gemm& p = f.file.problem.gemm();
  std::string text = "/* " + symbol(f) + ": " + formula(p) + "\n";
  text += "   M=" + number(p.m) + " N=" + number(p.n) + " K=" + number(p.k) + ", batch " + number(p.batch) +
          ". Row-major. Sums in " + to_string(p.accumulate) + "; " +
          (c_type(p.a) == "void" || c_type(p.d) == "void" ? "types without a name in C are void;" : "") +
          " alpha and beta are rounded to " + to_string(p.scale_type()) + ".\n";
  text += matrix_line("A", p.a, p.a_rows(), p.a_columns(), p.a_transposed() ? "K x M, transposed" : "M x K");
  text += matrix_line("B", p.b, p.b_rows(), p.b_columns(), b_meaning(p));
  if (p.groups)
    text += "     offsets: " + number(p.groups + 1) +
            " values of int32 in device memory. Group g has rows offsets[g] to " +
            "offsets[g + 1] of A and D, and matrix g of " + number(p.groups) + " in B;\n" +
            "       from 0 or more to M or less, ascending, which is not checked. Other rows of D are left "
            "as they are\n";
  text += matrix_line("D", p.d, p.m, p.n, "M x N; C alike");
  text += operand_lines(p);
  text += "   Pointers are aligned to their elements (" + number(p.align) +
          " bytes the smallest); D must overlap neither A, B nor vectors,\n   which is not checked.\n";
  if (p.batch > 1) text += "   Batch entries lie rows x leading dimension apart unless strides are given.\n";
  return text + "*/\n";
}

std::string c_declarations(const LibraryFunction& f) {
  const std::string name = symbol(f);
  std::string text = comment(f) + size_macros(f);
  if (runs_on_cpu(f))
    text += "deepgen_status " + name + "(" + declared(function_parameters(f.file.problem.gemm())) +
            "); /* alpha 1, beta 0, dense */\ndeepgen_status " + name +
            "_run(const deepgen_gemm_args* args);\n";
  if (runs_on_gpus(f))
    text +=
        "/* On a stream of the current device; all pointers are device pointers. _prepare() loads the code, "
        "which the\n"
        "   first launch does otherwise; _workspace_size() is what a launch needs on the current device. */\n"
        "deepgen_status " +
        name +
        "_launch(const deepgen_gemm_args* args, deepgen_stream stream);\n"
        "deepgen_status " +
        name + "_prepare(void);\nsize_t " + name + "_workspace_size(void);\n";
  return text + "const struct deepgen_function* " + name + "_function(void);\n";
}

/// Overload with sized views, for batch 1: sizes that differ from the tuned ones are an error, not a crash.
std::string matrix_overload(const LibraryFunction& f) {
  std::string views, checks, fields;
  for (const FunctionParameter& p : function_parameters(f.file.problem.gemm())) {
    views += (views.empty() ? "" : ", ");
    if (!p.is_matrix) {
      views += p.type + " " + p.name;
      fields += "  args." + p.name + " = " + p.name + ";\n";
      continue;
    }
    views += "deepgen::matrix<" + p.type.substr(0, p.type.size() - 1) + "> " + p.name;
    checks += (checks.empty() ? "" : " ||\n      ") + p.name + ".rows != " + number(p.rows) + " || " +
              p.name + ".columns != " + number(p.columns);
    fields += "  args." + p.name + " = " + p.name + ".data; args." + p.leading_dimension + " = " + p.name +
              ".leading_dimension;\n";
  }
  return "/// The same with sized views, which may have gaps between rows; DEEPGEN_ERROR_SIZE when a size "
         "differs.\n"
         "inline deepgen_status " +
         f.file.name + "(" + views + ") {\n  if (" + checks +
         ")\n    return DEEPGEN_ERROR_SIZE;\n  deepgen_gemm_args args;\n" + fields +
         "  return ::" + symbol(f) + "_run(&args);\n}\n";
}

std::string cpu_overloads(const LibraryFunction& f) {
  const std::vector<FunctionParameter> parameters = function_parameters(f.file.problem.gemm());
  std::string text = "inline deepgen_status " + f.file.name + "(" + declared(parameters) +
                     ") {\n  return ::" + symbol(f) + "(" + passed(parameters) + ");\n}\n" +
                     "/// The same with alpha, beta, C, leading dimensions, strides and workspace.\n" +
                     "inline deepgen_status " + f.file.name +
                     "(const deepgen_gemm_args& args) { return ::" + symbol(f) + "_run(&args); }\n";
  return f.file.problem.gemm().batch == 1 ? text + matrix_overload(f) : text;
}

std::string gpu_overloads(const LibraryFunction& f) {
  const std::string name = symbol(f);
  const std::vector<FunctionParameter> parameters = function_parameters(f.file.problem.gemm());
  return "/// On the stream of a GPU. The workspace, of " + f.file.name +
         "_workspace_size() bytes, may be left out when that is 0.\n"
         "inline deepgen_status " +
         f.file.name + "(" + declared(parameters) +
         ", deepgen_stream stream,\n    void* workspace = nullptr, size_t workspace_bytes = 0) {\n"
         "  deepgen_gemm_args args;\n  " +
         assigned(parameters) +
         ";\n  args.workspace = workspace; args.workspace_bytes = workspace_bytes;\n  return ::" + name +
         "_launch(&args, stream);\n}\ninline deepgen_status " + f.file.name +
         "(const deepgen_gemm_args& args, deepgen_stream stream) { return ::" + name +
         "_launch(&args, stream); }\ninline deepgen_status " + f.file.name + "_prepare() { return ::" + name +
         "_prepare(); }\ninline size_t " + f.file.name + "_workspace_size() { return ::" + name +
         "_workspace_size(); }\n";
}

std::string cpp_functions(const LibraryFunction& f) {
  return "namespace " + f.file.ns + " {\n\n" + size_constants(f) + "/// " + formula(f.file.problem.gemm()) +
         "; see " + symbol(f) + " above.\n" + (runs_on_cpu(f) ? cpu_overloads(f) : "") +
         (runs_on_gpus(f) ? gpu_overloads(f) : "") + "\n} // namespace " + f.file.ns + "\n";
}

} // namespace

std::string embed_header(const Library& library) {
  const std::string name = guard(library.target);
  std::string text = "/* Tuned GEMM functions of the library " + in_comment(library.target) +
                     ". Generated by deepgen; edits are lost. Every call returns a\n"
                     "   status that deepgen_status_string() explains; none allocates, throws or aborts. */\n"
                     "#ifndef " +
                     name + "\n#define " + name +
                     "\n\n#include <deepgen/runtime.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const LibraryFunction& f : library.functions) text += "\n" + c_declarations(f);
  text += "\n#ifdef __cplusplus\n} /* extern \"C\" */\n";
  for (const LibraryFunction& f : library.functions) text += "\n" + cpp_functions(f);
  return text + "\n#endif\n#endif\n";
}

} // namespace deepgen
