#include "base/kernel/cpu_isa.h"
#include "base/kernel/vouched.h"
#include "base/text/error.h"
#include "generator/embed/embed_code.h"
#include "generator/embed/embed_packed.h"
#include "generator/embed/embed_ranges.h"
#include "generator/embed/embed_signature.h"
#include "generator/embed/embed_text.h"
#include "generator/embed/embed_vendor.h"
#include "generator/embed/operand_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace deepgen {
namespace {

/// Where the config runs, and on what it was chosen.
std::string kernel_line(const LinkedKernel& k) {
  const bool cpu = k.file->arch == "cpu";
  const std::string where = cpu ? isa_text(k.kernel->isa) : k.file->arch;
  return "     " +
         in_comment(where + (k.kernel->device.empty() ? "" : ", " + k.kernel->device) + ": " +
                    k.kernel->choice.text() + taken_text(*k.kernel)) +
         "\n";
}

/// What the chosen config rests on, for each kernel file.
std::string origins(const LibraryFunction& f) {
  std::string text;
  for (const KernelFile& file : f.kernels) {
    const std::string why = file.origin == "lock"       ? "from the lock"
                            : file.origin == kOtherCode ? "the lock's config, other code than it names"
                            : file.origin == "search"   ? "found by this build's search"
                                                        : "the default: not tuned";
    text += (text.empty() ? "" : ", ") + file.arch + ": " + why;
  }
  return in_comment(text);
}

/// In the source, not in the header: whoever includes that does not wait for a search.
std::string kernels_comment(const LibraryFunction& f) {
  std::string text = "/* Kernels of " + symbol(f) +
                     ", best first; the first one that the device and the operands allow is used (" +
                     origins(f) + "):\n";
  for (const LinkedKernel& k : linked_kernels(f)) {
    text += kernel_line(k);
    if (const VendorCall* call = call_beside(k, f))
      text += "     " +
              in_comment("  " + call->config(f.file.problem) + " runs instead, on " + call->device +
                         ", where that version is installed") +
              "\n";
  }
  return text + "*/\n";
}

std::string argument(const std::string& name, const LibraryFunction& f) {
  static const std::array<const char*, DEEPGEN_ARG_COUNT> known = {DEEPGEN_ARG_NAMES};
  for (const char* candidate : known)
    if (name == candidate) {
      std::string text = "DEEPGEN_ARG_";
      for (unsigned char c : name) text += char(std::toupper(c));
      return text;
    }
  throw Error("a kernel asks for an unknown argument '" + name + "'", f.file.label(), "",
              "build the kernel and the library with the same version of DeepGen");
}

/// Of more digits than a double has.
std::string c_double(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return std::string(text) +
         (std::string_view(text).find_first_of(".e") == std::string_view::npos ? ".0" : "");
}

std::string launch_table(const Kernel& k, const std::string& id) {
  auto triple = [](const std::array<int64_t, 3>& x) {
    return "{" + number(x[0]) + "u, " + number(x[1]) + "u, " + number(x[2]) + "u}";
  };
  std::string text = grid_rule_tables(k, id) + "const deepgen_launch " + id + "_launches[] = {\n";
  for (const Launch& l : k.launches)
    text += "    {" + c_literal(l.entry) + ", " + triple(l.grid) + ", " + triple(l.block) + ", " +
            triple(l.cluster) + ", " + number(l.shared) + "u, " +
            (l.persistent ? "DEEPGEN_LAUNCH_PERSISTENT" : "0u") + " | " +
            (l.dependent ? "DEEPGEN_LAUNCH_DEPENDENT" : "0u") + ", " + grid_rules_name(l, id) + "},\n";
  return text + "};\n";
}

/// deepgen_tensor_map's fields from packed_offset on: what follows from a size is told as a multiple of it.
std::string packed_fields(const PackedOperand& x, std::optional<Size> rest_of, const Kernel& k) {
  const auto multiple = [&](int64_t of_largest, std::optional<Size> by) {
    return number(by ? of_largest / k.problem.gemm().sizes()[*by] : of_largest);
  };
  const auto size = [](std::optional<Size> by) { return number(by ? 1 + int64_t(*by) : 0); };
  const std::string shape = number(x.offset) + ", " + multiple(x.rows, x.rows_by) + ", " +
                            multiple(x.columns, x.columns_by) + ", " + number(x.ld);
  return shape + (x.rows_by || x.columns_by || rest_of ? ", " + size(x.rows_by) + ", " + size(x.columns_by) +
                                                             (rest_of ? ", " + size(rest_of) : "")
                                                       : "");
}

std::string map_table(const Kernel& k, const std::string& id, const LibraryFunction& f) {
  if (k.maps.empty()) return "";
  std::string text = "const deepgen_tensor_map " + id + "_maps[] = {\n";
  for (const TensorMap& m : k.maps)
    text += "    {" + argument(m.operand, f) + ", " + number(m.box_columns) + "u, " + number(m.box_rows) +
            "u, " + number(m.swizzle) + "u, " + number(m.promotion) + "u, " +
            packed_fields(m.packed, m.rest_of, k) + "},\n";
  return text + "};\n";
}

std::string requirement_table(const Kernel& k, const std::string& id, const LibraryFunction& f) {
  std::string text = "const deepgen_requirement " + id + "_requirements[] = {";
  for (const Operand& x : signature(f.file.problem))
    text += "{" + number(x.in_memory() ? k.align_of(x) : 1) + "u, " + number(k.most_pitch_of(x.name)) + "}, ";
  return text + "};\n";
}

/// Behind the field of a vendor's call, which such a function has not.
std::string order_field(const Kernel& k, const LibraryFunction& f) {
  if (k.sum_order.empty()) return "";
  std::vector<std::string> orders;
  for (const LinkedKernel& linked : linked_kernels(f))
    if (std::find(orders.begin(), orders.end(), linked.kernel->sum_order) == orders.end())
      orders.push_back(linked.kernel->sum_order);
  const auto place = std::find(orders.begin(), orders.end(), k.sum_order) - orders.begin();
  return ", nullptr, " + number(int64_t(place) + 1) + "u";
}

/// The fields of deepgen_kernel in order: those of every kernel, of the CPU's, of GPUs'.
std::string kernel_row(const LinkedKernel& linked, const LibraryFunction& f, const std::string& id,
                       EmbeddedCode& code) {
  const Kernel& k = *linked.kernel;
  const bool silent = linked.file->arch != "cpu" &&
                      k.role == "fallback"; // or hosts with and without the GPU write other bytes
  const bool verified = linked.verified || vouched_for(*linked.file, k) || silent;
  std::string row = "    {" + c_literal(linked.file->arch) + ", " +
                    c_literal(k.choice.text() + (verified ? "" : " (not verified)")) + ", " + id + "_args, " +
                    number(int64_t(k.args.size())) + ", " + number(k.workspace) + ", ";
  if (linked.file->arch == "cpu") {
    row += number(k.isa) + ", " + code.add_image(k, "deepgen_" + id);
    for (int64_t x : {k.tiles_m, k.tiles_n, k.tiles_b, k.grain_m, k.grain_n}) row += ", " + number(x);
    return row + ", nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0" + size_fields(k, id) +
           vendor_field(linked, f, id) + packed_field(linked, f) + cut_field(linked, f) + "},\n";
  }
  row += "0, nullptr, 1, 1, 1, 1, 1, " + (k.device.empty() ? "nullptr" : c_literal(k.device)) + ", " + id +
         "_requirements";
  return row + ", &" + code.add_gpu_code(k, "deepgen_" + id) + ", " + id + "_launches, " +
         number(int64_t(k.launches.size())) + ", " + (k.maps.empty() ? "nullptr" : id + "_maps") + ", " +
         number(int64_t(k.maps.size())) + size_fields(k, id) + vendor_field(linked, f, id) +
         order_field(k, f) + "},\n";
}

/// The table of one function's kernels, and the lists that it points to.
std::string kernel_tables(const LibraryFunction& f, EmbeddedCode& code) {
  const std::string name = symbol(f);
  std::string lists, table = "const deepgen_kernel " + name + "_kernels[] = {\n";
  size_t index = 0;
  for (const LinkedKernel& linked : linked_kernels(f)) {
    const Kernel& k = *linked.kernel;
    const std::string id = name + "_" + number(int64_t(index++));
    lists += "const uint8_t " + id + "_args[] = {";
    for (size_t i = 0; i < k.args.size(); ++i) lists += (i ? ", " : "") + argument(k.args[i], f);
    lists += "};\n";
    lists += size_tables(k, id);
    if (linked.file->arch != "cpu")
      lists += launch_table(k, id) + map_table(k, id, f) + requirement_table(k, id, f);
    lists += vendor_table(linked, f, id);
    table += kernel_row(linked, f, id, code);
  }
  return lists + table + "};\nconst deepgen_kernel* volatile " + name +
         "_selected = nullptr;\nvoid* volatile " + name + "_devices = nullptr;\n";
}

/// What the runtime checks of the operands, by deepgen_operand's fields in order.
std::string operand_rows(const LibraryFunction& f) {
  std::string text = "const deepgen_operand " + symbol(f) + "_operands[] = {\n";
  const std::vector<Operand> names = signature(f.file.problem);
  const std::vector<deepgen_operand> table = operand_table(f.file.problem);
  for (size_t i = 0; i < table.size(); ++i) {
    const deepgen_operand& x = table[i];
    text += "    {";
    for (int64_t value :
         {int64_t(x.slot), int64_t(x.ld), int64_t(x.stride), int64_t(x.type), int64_t(x.flags),
          int64_t(x.field), int64_t(x.ld_field), int64_t(x.stride_field), int64_t(x.rows_by),
          int64_t(x.columns_by), int64_t(x.entries_by), x.rows, x.columns})
      text += number(value) + ", ";
    text += number(x.entries) + "}, // " + names[i].name + "\n";
  }
  return text + "};\n";
}

/// Of the largest call: the runtime scales it by a call's sizes.
double work_of_largest(const Problem& p) {
  const Attention* attention = std::get_if<Attention>(&p.which());
  return attention ? attention->most_work() : p.work();
}

std::string function_row(const LibraryFunction& f) {
  const Problem& p = f.file.problem;
  const std::string name = symbol(f);
  return "    {DEEPGEN_LAYOUT, " + c_literal(name) + ", " + c_literal(p.key()) + ",\n     " +
         number(op_of(p)) + ", " + number(int64_t(signature(p).size())) + ", " + name + "_operands, " +
         c_double(work_of_largest(p)) + ", " + function_sizes(p) + ", " + name + "_kernels, " +
         number(int64_t(linked_kernels(f).size())) + ", &" + name + "_selected, &" + name + "_devices" +
         (takes_packed_b(f) ? ", &" + name + "_packed_b" : "") + "},\n";
}

std::string definitions(const LibraryFunction& f, size_t index) {
  const std::vector<FunctionParameter> parameters = function_parameters(f.file.problem);
  const std::string name = symbol(f), row = "&functions[" + number(int64_t(index)) + "]";
  const std::string op = f.file.problem.op(), args = args_type(f.file.problem);
  std::string text;
  if (runs_on_cpu(f))
    text += "\ndeepgen_status " + name + "(" + declared(parameters) + ") {\n  " + args + " args;\n  " +
            assigned(parameters) + ";\n  return deepgen_run_" + op + "(" + row +
            ", &args);\n}\ndeepgen_status " + name + "_run(const " + args + "* args) { return deepgen_run_" +
            op + "(" + row + ", args); }";
  if (runs_on_gpus(f))
    text += "\ndeepgen_status " + name + "_launch(const " + args + "* args, deepgen_stream stream) {\n" +
            "  return deepgen_launch_" + op + "(" + row + ", args, stream);\n}\ndeepgen_status " + name +
            "_prepare(void) { return deepgen_prepare(" + row + "); }\nsize_t " + name +
            "_workspace_size(void) { return deepgen_launch_workspace_size(" + row + "); }";
  return text + "\nconst struct deepgen_function* " + name + "_function(void) { return " + row + "; }\n";
}

/// What a library with kernels for the CPU needs beside its tables.
std::string cpu_guard() {
  return "\n#if !defined(__x86_64__)\n#error \"this library holds x86-64 code\"\n#endif\n";
}

std::string registration(size_t functions, bool cpu) {
  const std::string all = "(functions, " + number(int64_t(functions)) + ")";
  const std::string unload =
      "\n__attribute__((destructor)) void unregister() { deepgen_unregister" + all + "; }\n";
  if (!cpu) return unload;
  return "\n// Selects kernels before main(); a call from an earlier initializer does so itself.\n"
         "[[maybe_unused]] const int registered = deepgen_register" +
         all + ";\n" + unload;
}

} // namespace

std::string embed_source(const Library& library) {
  EmbeddedCode code;
  std::string tables, rows, bodies;
  bool cpu = false;
  for (size_t i = 0; i < library.functions.size(); ++i) {
    tables += kernels_comment(library.functions[i]) + operand_rows(library.functions[i]) +
              kernel_tables(library.functions[i], code) + packed_table(library.functions[i]) + "\n";
    rows += function_row(library.functions[i]);
    bodies += definitions(library.functions[i], i);
    cpu = cpu || runs_on_cpu(library.functions[i]);
  }
  return "// Kernels and tables of the library " + in_comment(library.target) +
         ". Generated by deepgen; edits are lost.\n"
         "#include <deepgen/kernel_abi.h>\n#include <deepgen/runtime.h>\n\n#include \"" +
         library.header_name + "\"\n" + (cpu ? cpu_guard() : "") + code.sections() + "\nnamespace {\n\n" +
         code.tables() + "\n" + tables + "const deepgen_function functions[] = {\n" + rows + "};\n" +
         registration(library.functions.size(), cpu) + "\n} // namespace\n\nextern \"C\" {\n" + bodies +
         "\n} // extern \"C\"\n";
}

} // namespace deepgen
