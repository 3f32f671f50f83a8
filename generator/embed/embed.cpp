#include "base/kernel/device.h"
#include "base/problem/signature.h"
#include "base/text/error.h"
#include "base/text/identifier.h"
#include "base/text/text.h"
#include "generator/embed/embed_packed.h"
#include "generator/embed/embed_sizes.h"
#include "generator/embed/embed_text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

namespace deepgen {
namespace {

void check_identifier(const std::string& text, const std::string& what, const std::string& where) {
  const std::string why = why_no_identifier(text);
  if (!why.empty())
    throw Error(what + " '" + text + "' is not a usable C identifier", where, why,
                "pass another NAME or NAMESPACE");
}

void check_cpu_kernel(const Kernel& k, const std::string& where) {
  const bool power_of_two = k.align >= 1 && (k.align & (k.align - 1)) == 0;
  if (k.entry < 0 || size_t(k.entry) >= k.code.size() || !power_of_two)
    throw Error("a kernel's entry or alignment is out of range", where);
}

/// The generated tables have 32 bits for each of these.
void check_gpu_kernel(const Kernel& k, const std::string& where) {
  auto small = [](int64_t x) { return x >= 0 && x < int64_t(1) << 31; };
  if (k.launches.empty() || k.target.empty() || (k.code.empty() && k.ptx.empty()))
    throw Error("a GPU kernel lacks its launches, its target or its code", where, k.choice.text());
  bool good = small(k.align_a) && small(k.align_b) && small(k.align_d);
  for (const Launch& l : k.launches) {
    good = good && small(l.shared);
    for (const auto* triple : {&l.grid, &l.block, &l.cluster})
      for (int64_t x : *triple) good = good && small(x) && x > 0;
  }
  for (const TensorMap& m : k.maps)
    for (int64_t x : {m.box_columns, m.box_rows, m.swizzle, m.promotion}) good = good && small(x);
  if (!good) throw Error("a launch of a GPU kernel is out of range", where, k.choice.text());
}

void check_arch(const std::string& arch, const std::string& where) {
  if (arch != "cpu" && !is_gpu(arch))
    throw Error("arch '" + arch + "' cannot be embedded", where, "", "use arch cpu or a GPU's");
}

void check_kernel_file(const KernelFile& file, const LibraryFunction& f) {
  const std::string where = f.file.label() + " (" + file.arch + ", " + file.choice.text() + ")";
  if (file.status != "ok") throw Error("a kernel file holds no kernel: " + file.status, where, file.detail);
  if (file.problem != f.file.problem)
    throw Error("a kernel file is for another problem", where,
                file.problem.key() + " instead of " + f.file.problem.key(),
                "delete the build folder of this target and build again");
  if (!file.find("main")) throw Error("a kernel file lacks its main kernel", where);
  check_packed_layout(f, file);
  for (const Kernel& k : file.kernels)
    file.arch == "cpu" ? check_cpu_kernel(k, where) : check_gpu_kernel(k, where);
}

/// The runtime finds a kernel for every call: the last one of an arch takes any device and any operands of
/// the types.
void check_last_kernel(const LinkedKernel& last, const LibraryFunction& f) {
  const Kernel& k = *last.kernel;
  if (k.taken)
    throw Error("no kernel of " + last.file->arch + " takes what no other one does", f.file.label(),
                k.choice.text() + " is for some sizes alone",
                "delete the build folder of this target and build again");
  if (last.file->arch == "cpu") return;
  bool takes_all = k.device.empty() && !k.most_pitch;
  for (const Operand& x : signature(f.file.problem))
    takes_all = takes_all && (!x.in_memory() || k.align_of(x) <= size_of(x.type));
  if (!takes_all && !f.file.problem.batch_invariant()) // that refuses what would be added up in another order
    throw Error("no kernel of " + last.file->arch +
                    " takes operands that are aligned to their elements alone, with any leading dimensions",
                f.file.label() + ", " + k.choice.text(), "", "a defect of the template's fallbacks()");
}

/// The CPU comes first, then later archs before earlier ones, as their code and PTX are the better ones for
/// any device that can run both.
int64_t arch_rank(const std::string& arch) {
  const int64_t capability = compute_capability(arch);
  return arch == "cpu" ? 0 : 10000 - 2 * capability - (arch.back() == 'a' ? 1 : 0);
}

/// Adds the C names of a function, its macros among them: these are in capitals, and NAMEs may differ in case
/// alone.
void claim_names(const LibraryFunction& f, const std::string& where, std::set<std::string>& names) {
  std::vector<std::string> own;
  for (const char* suffix : {"", "_run", "_function", "_launch", "_prepare", "_workspace_size", "_sizes"})
    own.push_back(symbol(f) + suffix);
  for (const SizeConstant& constant : size_constants_of(f.file.problem))
    own.push_back(size_macro(f, constant));
  for (const std::string& name : own)
    if (!names.insert(name).second)
      throw Error("two functions of a library give the same C name", where, name, "pass another NAME");
}

/// It stands between the quotes of an #include.
void check_header_name(const Library& l) {
  const std::string& name = l.header_name;
  if (name.empty() || !why_no_name(name).empty() || name.find_first_of("\"\\<>?*") != std::string::npos)
    throw Error("the header's name cannot be included", visible(name),
                "it is empty, long, or has control characters or one of \"\\<>?*",
                "name the target otherwise");
}

} // namespace

std::vector<LinkedKernel> linked_kernels(const LibraryFunction& f) {
  std::vector<LinkedKernel> kernels;
  for (const KernelFile& file : f.kernels)
    for (const Kernel& k : file.kernels)
      if (k.role == "main" || k.role == "fallback")
        kernels.push_back({&file, &k, f.verified.count(k.sha256) > 0});
  auto rank = [](const LinkedKernel& k) {
    const bool cpu = k.file->arch == "cpu";
    // All of AMD's have one rank, as none runs code of another; each keeps its kernels together.
    // What is for some sizes comes before what takes any.
    return std::tuple(arch_rank(k.file->arch), std::string_view(k.file->arch), cpu ? -k.kernel->isa : 0,
                      !cpu && k.kernel->role == "fallback", k.kernel->device.empty(), !k.kernel->taken);
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const LinkedKernel& x, const LinkedKernel& y) { return rank(x) < rank(y); });
  return kernels;
}

bool runs_on_cpu(const LibraryFunction& f) {
  return std::any_of(f.kernels.begin(), f.kernels.end(), [](const KernelFile& k) { return k.arch == "cpu"; });
}

bool runs_on_gpus(const LibraryFunction& f) {
  return std::any_of(f.kernels.begin(), f.kernels.end(), [](const KernelFile& k) { return k.arch != "cpu"; });
}

LibraryFunction declared(ProblemFile file, const std::vector<std::string>& archs) {
  LibraryFunction f{std::move(file), {}};
  for (const std::string& arch : archs) {
    f.kernels.emplace_back();
    f.kernels.back().problem = f.file.problem;
    f.kernels.back().arch = arch;
  }
  return f;
}

void validate_names(const Library& library) {
  check_header_name(library);
  std::set<std::string> names;
  for (const LibraryFunction& f : library.functions) {
    const std::string where = library.target + ", function " + f.file.name;
    check_identifier(f.file.name, "the function name", where);
    check_identifier(f.file.ns, "the namespace", where);
    claim_names(f, where, names);
    if (f.kernels.empty())
      throw Error("a function has no kernel", where, "",
                  "pass --kernel after its --problem, or --arch for a header");
    for (const KernelFile& file : f.kernels) check_arch(file.arch, where);
  }
  if (library.functions.empty()) throw Error("a library needs at least one problem", library.target);
}

void validate(const Library& library) {
  validate_names(library);
  for (const LibraryFunction& f : library.functions) {
    for (const KernelFile& file : f.kernels) check_kernel_file(file, f);
    const std::vector<LinkedKernel> kernels = linked_kernels(f);
    for (size_t i = 0; i < kernels.size(); ++i)
      if (i + 1 == kernels.size() || kernels[i + 1].file->arch != kernels[i].file->arch)
        check_last_kernel(kernels[i], f);
  }
}

} // namespace deepgen
