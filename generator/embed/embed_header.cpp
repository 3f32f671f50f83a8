#include "generator/embed/embed_comment.h"
#include "generator/embed/embed_ranges.h"
#include "generator/embed/embed_signature.h"
#include "generator/embed/embed_sizes.h"
#include "generator/embed/embed_text.h"

#include <cctype>

namespace deepgen {
namespace {

std::string guard(const std::string& target) {
  std::string text = "DEEPGEN_GENERATED_";
  for (unsigned char c : target) text += std::isalnum(c) ? char(std::toupper(c)) : '_';
  return text + "_H";
}

/// What the short form leaves at its default, and what the struct of arguments has beside its parameters.
std::string plain_call(const LibraryFunction& f) {
  return f.file.problem.op() == "gemm" ? "alpha 1, beta 0, dense" : "dense";
}
std::string rest_of_a_call(const LibraryFunction& f) {
  const std::string op = f.file.problem.op();
  return op == "gemm"        ? "alpha, beta, C, leading dimensions, strides and workspace"
         : op == "attention" ? "strides, scale, what is optional, and workspace"
                             : "leading dimensions and workspace";
}

/// No batch: sized views say all of a call.
bool has_one_entry(const LibraryFunction& f) {
  for (const Operand& x : signature(f.file.problem))
    if (x.role == Operand::Role::out && x.entries > 1) return false;
  return true;
}

std::string c_declarations(const LibraryFunction& f) {
  const std::string name = symbol(f);
  std::string text = comment(f) + size_macros(f);
  if (runs_on_cpu(f))
    text += "deepgen_status " + name + "(" + declared(function_parameters(f.file.problem)) + "); /* " +
            plain_call(f) + " */\ndeepgen_status " + name + "_run(const " + args_type(f.file.problem) +
            "* args);\n";
  if (runs_on_gpus(f))
    text +=
        "/* On a stream of the current device; all pointers are device pointers. _prepare() loads the code, "
        "which the\n"
        "   first launch does otherwise; _workspace_size() is what a launch needs on the current device. */\n"
        "deepgen_status " +
        name + "_launch(const " + args_type(f.file.problem) +
        "* args, deepgen_stream stream);\n"
        "deepgen_status " +
        name + "_prepare(void);\nsize_t " + name + "_workspace_size(void);\n";
  return text + "const struct deepgen_function* " + name + "_function(void);\n";
}

/// Which view has a size: "d.rows". Empty: none has.
std::string view_of(const std::string& size, const std::vector<FunctionParameter>& parameters) {
  for (const FunctionParameter& p : parameters) {
    if (p.rows == size) return p.name + ".rows";
    if (p.columns == size) return p.name + ".columns";
  }
  return "";
}

/// Sizes that have a range, from the views.
std::string sizes_of_views(const LibraryFunction& f) {
  std::string text;
  for (const RangeOfSize& size : ranges_of(f.file.problem))
    text += "  const int64_t " + size.name + " = " + view_of(size.name, function_parameters(f.file.problem)) +
            ";\n";
  return text;
}

/// Overload with sized views, for batch 1: sizes that differ from the tuned ones are an error, not a crash.
std::string matrix_overload(const LibraryFunction& f) {
  std::string views, checks, fields;
  for (const FunctionParameter& p : function_parameters(f.file.problem)) {
    if (p.type == "int64_t") { // a size, which the views have
      fields += "  args." + p.name + " = " + p.name + ";\n";
      continue;
    }
    views += (views.empty() ? "" : ", ");
    if (!p.is_matrix) {
      views += p.type + " " + p.name;
      fields += "  args." + p.name + " = " + p.name + ";\n";
      continue;
    }
    views += "deepgen::matrix<" + p.type.substr(0, p.type.size() - 1) + "> " + p.name;
    checks += (checks.empty() ? "" : " ||\n      ") + p.name + ".rows != " + p.rows + " || " + p.name +
              ".columns != " + p.columns;
    fields += "  args." + p.name + " = " + p.name + ".data; args." + p.leading_dimension + " = " + p.name +
              ".leading_dimension;\n";
  }
  return "/// The same with sized views, which may have gaps between rows; DEEPGEN_ERROR_SIZE when a size "
         "differs.\n"
         "inline deepgen_status " +
         f.file.name + "(" + views + ") {\n" + sizes_of_views(f) + "  if (" + checks +
         ")\n    return DEEPGEN_ERROR_SIZE;\n  " + args_type(f.file.problem) + " args;\n" + fields +
         "  return ::" + symbol(f) + "_run(&args);\n}\n";
}

std::string cpu_overloads(const LibraryFunction& f) {
  const std::vector<FunctionParameter> parameters = function_parameters(f.file.problem);
  std::string text = "inline deepgen_status " + f.file.name + "(" + declared(parameters) +
                     ") {\n  return ::" + symbol(f) + "(" + passed(parameters) + ");\n}\n" +
                     "/// The same with " + rest_of_a_call(f) + ".\n" + "inline deepgen_status " +
                     f.file.name + "(const " + args_type(f.file.problem) + "& args) { return ::" + symbol(f) +
                     "_run(&args); }\n";
  return has_one_entry(f) ? text + matrix_overload(f) : text;
}

std::string gpu_overloads(const LibraryFunction& f) {
  const std::string name = symbol(f);
  const std::vector<FunctionParameter> parameters = function_parameters(f.file.problem);
  return "/// On the stream of a GPU. The workspace, of " + f.file.name +
         "_workspace_size() bytes, may be left out when that is 0.\n"
         "inline deepgen_status " +
         f.file.name + "(" + declared(parameters) +
         ", deepgen_stream stream,\n    void* workspace = nullptr, size_t workspace_bytes = 0) {\n"
         "  " +
         args_type(f.file.problem) + " args;\n  " + assigned(parameters) +
         ";\n  args.workspace = workspace; args.workspace_bytes = workspace_bytes;\n  return ::" + name +
         "_launch(&args, stream);\n}\ninline deepgen_status " + f.file.name + "(const " +
         args_type(f.file.problem) + "& args, deepgen_stream stream) { return ::" + name +
         "_launch(&args, stream); }\ninline deepgen_status " + f.file.name + "_prepare() { return ::" + name +
         "_prepare(); }\ninline size_t " + f.file.name + "_workspace_size() { return ::" + name +
         "_workspace_size(); }\n";
}

std::string cpp_functions(const LibraryFunction& f) {
  return "namespace " + f.file.ns + " {\n\n" + size_constants(f) + "/// " + formula(f.file.problem) +
         "; see " + symbol(f) + " above.\n" + (runs_on_cpu(f) ? cpu_overloads(f) : "") +
         (runs_on_gpus(f) ? gpu_overloads(f) : "") + "\n} // namespace " + f.file.ns + "\n";
}

} // namespace

std::string embed_header(const Library& library) {
  const std::string name = guard(library.target);
  std::string text = "/* Tuned functions of the library " + in_comment(library.target) +
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
