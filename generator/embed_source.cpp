#include "generator/embed.h"

#include "base/error.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <map>
#include <tuple>

namespace deepgen {
namespace {

std::string symbol(const LibraryFunction& f) { return f.file.ns + "_" + f.file.name; }
std::string number(int64_t x) { return std::to_string(x); }
std::string quoted(const std::string& text) { return Json(text).dump(); }

/// The code of the library's kernels; identical code is embedded once.
class Images {
public:
  /// Returns the entry symbol of the kernel's code.
  std::string add(const Kernel& kernel, const std::string& preferred);
  const std::string& text() const { return text_; }

private:
  std::map<std::tuple<std::string, int64_t, int64_t>, std::string> symbols_;
  std::string text_;
};

/// Bytes [first, last) of the code as data lines of one string literal each.
std::string data_lines(const std::string& code, size_t first, size_t last) {
  std::string text;
  char buffer[40];
  auto byte = [&](size_t i) { return static_cast<unsigned char>(code[i]); };
  while (first < last) {
    if (last - first < 8) {
      std::snprintf(buffer, sizeof buffer, "    \".byte 0x%02x\\n\"\n", byte(first++));
      text += buffer;
      continue;
    }
    text += "    \".quad ";
    for (int column = 0; column < 4 && last - first >= 8; ++column, first += 8) {
      uint64_t word = 0;
      for (size_t i = 8; i-- > 0;)
        word = word << 8 | byte(first + i);
      std::snprintf(buffer, sizeof buffer, "%s0x%llx", column ? ", " : "",
                    static_cast<unsigned long long>(word));
      text += buffer;
    }
    text += "\\n\"\n";
  }
  return text;
}

std::string Images::add(const Kernel& k, const std::string& preferred) {
  auto [at, fresh] = symbols_.emplace(std::tuple(k.code, k.entry, k.align), preferred);
  if (!fresh)
    return at->second;
  auto directive = [](const std::string& line) { return "    \"" + line + "\\n\"\n"; };
  const std::string name = preferred;
  // Global but hidden, so that it survives link-time optimisation, which may move this asm to another unit.
  text_ += "\n__asm__(\n" + directive(".pushsection .text." + name + ",\\\"ax\\\",@progbits") +
           directive(".balign " + number(k.align)) + data_lines(k.code, 0, size_t(k.entry)) +
           directive(".globl " + name) + directive(".hidden " + name) +
           directive(".type " + name + ", @function") + directive(name + ":") +
           data_lines(k.code, size_t(k.entry), k.code.size()) + directive(".size " + name + ", . - " + name) +
           "    \".popsection\\n\");\n" + "extern \"C\" __attribute__((visibility(\"hidden\"))) void " +
           name + "(const uint64_t* args);\n";
  return name;
}

std::string argument(const std::string& name, const LibraryFunction& f) {
  static const std::array<const char*, DEEPGEN_ARG_COUNT> known = {DEEPGEN_ARG_NAMES};
  for (const char* candidate : known)
    if (name == candidate) {
      std::string text = "DEEPGEN_ARG_";
      for (unsigned char c : name)
        text += char(std::toupper(c));
      return text;
    }
  throw Error("a kernel asks for an unknown argument '" + name + "'", f.file.label(), "",
              "build the kernel and the library with the same version of DeepGen");
}

/// The table of one function's kernels, and the argument lists it points to.
std::string kernel_tables(const LibraryFunction& f, Images& images) {
  const std::string name = symbol(f);
  std::string lists, table = "const deepgen_kernel " + name + "_kernels[] = {\n";
  size_t index = 0;
  for (const Kernel* k : linked_kernels(f)) {
    const std::string id = name + "_" + number(int64_t(index++));
    lists += "const uint8_t " + id + "_args[] = {";
    for (size_t i = 0; i < k->args.size(); ++i)
      lists += (i ? ", " : "") + argument(k->args[i], f);
    lists += "};\n";
    table += "    {\"cpu\", " + quoted(k->choice.text()) + ", " + id + "_args, " + number(int64_t(k->args.size())) +
             ", " + number(k->workspace) + ", " + number(k->isa) + ", " + images.add(*k, "deepgen_" + id);
    for (int64_t x : {k->tiles_m, k->tiles_n, k->tiles_b, k->grain_m, k->grain_n})
      table += ", " + number(x);
    table += ", nullptr, 1, 1, 1, nullptr, nullptr, 0, nullptr, 0},\n";
  }
  return lists + table + "};\nconst deepgen_kernel* volatile " + name + "_selected = nullptr;\n";
}

int64_t epilogue_set(const Problem& p) {
  int64_t set = 0;
  for (EpilogueOp op : p.epilogue)
    set |= int64_t(1) << int(op);
  return set;
}

std::string function_row(const LibraryFunction& f) {
  const Problem& p = f.file.problem;
  const std::string name = symbol(f);
  std::string text = "    {" + quoted(name) + ", " + quoted(p.key()) + ",\n     ";
  for (int64_t x : {p.m, p.n, p.k, p.batch, p.a_rows(), p.a_columns(), p.b_rows(), p.b_columns(),
                    int64_t(p.a), int64_t(p.b), int64_t(p.d), int64_t(p.epilogue_type()), int64_t(p.scale_type()),
                    epilogue_set(p)})
    text += number(x) + ", ";
  return text + name + "_kernels, " + number(int64_t(linked_kernels(f).size())) + ", &" + name +
         "_selected, nullptr},\n";
}

std::string definitions(const LibraryFunction& f, size_t index) {
  const Problem& p = f.file.problem;
  const std::string name = symbol(f), row = "&functions[" + number(int64_t(index)) + "]";
  const std::string type = p.a == Type::f32 ? "float" : "double", in = "const " + type + "* ";
  const bool bias = p.has(EpilogueOp::bias);
  return "\ndeepgen_status " + name + "(" + in + "a, " + in + "b, " + (bias ? in + "bias, " : "") + type +
         "* d) {\n  deepgen_gemm_args args;\n  args.a = a, args.b = b, args.d = d" +
         (bias ? ", args.bias = bias" : "") + ";\n  return deepgen_run_gemm(" + row +
         ", &args);\n}\ndeepgen_status " + name +
         "_run(const deepgen_gemm_args* args) { return deepgen_run_gemm(" + row +
         ", args); }\nconst struct deepgen_function* " + name + "_function(void) { return " + row + "; }\n";
}

} // namespace

std::string embed_source(const Library& library) {
  Images images;
  std::string tables, rows, bodies;
  for (size_t i = 0; i < library.functions.size(); ++i) {
    tables += kernel_tables(library.functions[i], images) + "\n";
    rows += function_row(library.functions[i]);
    bodies += definitions(library.functions[i], i);
  }
  const std::string count = number(int64_t(library.functions.size()));
  return "// Kernels and tables of the library " + library.target +
         ". Generated by deepgen; edits are lost.\n"
         "#include <deepgen/kernel_abi.h>\n#include <deepgen/runtime.h>\n\n#include \"" +
         library.header_name +
         "\"\n\n#if !defined(__x86_64__)\n"
         "#error \"this library holds x86-64 code\"\n#endif\n" +
         images.text() + "\nnamespace {\n\n" + tables + "const deepgen_function functions[] = {\n" + rows +
         "};\n\n// Selects kernels before main(); a call from an earlier initializer does so itself.\n"
         "[[maybe_unused]] const int registered = deepgen_register(functions, " +
         count + ");\n\n} // namespace\n\nextern \"C\" {\n" + bodies + "\n} // extern \"C\"\n";
}

} // namespace deepgen
