#include "generator/embed.h"

#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace deepgen {
namespace {

/// Words of C and C++ that a name must not be, and names that belong to others. The list of
/// _deepgen_check_identifier() in cmake/DeepGen.cmake.
constexpr const char kReserved[] =
    " "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq std main ";

bool is_reserved(const std::string& word) {
  return std::string(kReserved).find(" " + word + " ") != std::string::npos;
}

/// Functions, types and macros of the runtime: `deepgen` and what begins with `deepgen_`, in any case.
bool is_of_the_runtime(const std::string& word) {
  std::string lower;
  for (unsigned char c : word + "_")
    lower += char(std::tolower(c));
  return lower.rfind("deepgen_", 0) == 0;
}

void check_identifier(const std::string& text, const std::string& what, const std::string& where) {
  const bool letters =
      !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; }) &&
      text.find("__") == std::string::npos;
  const char* why = !letters                  ? "letters, digits and single underscores only, a letter first"
                    : is_reserved(text)       ? "it is a reserved word"
                    : is_of_the_runtime(text) ? "it is a name that DeepGen's runtime keeps to itself"
                                              : nullptr;
  if (why)
    throw Error(what + " '" + text + "' is not a usable C identifier", where, why,
                "pass another NAME or NAMESPACE to deepgen_add_gemm()");
}

void check_kernel_file(const KernelFile& file, const LibraryFunction& f) {
  const std::string where = f.file.label() + " (" + file.arch + ", " + file.choice.text() + ")";
  if (file.status != "ok")
    throw Error("a kernel file holds no kernel: " + file.status, where, file.detail);
  if (file.problem != f.file.problem)
    throw Error("a kernel file is for another problem", where,
                file.problem.key() + " instead of " + f.file.problem.key(),
                "delete the build folder of this target and build again");
  if (file.arch != "cpu")
    throw Error("arch '" + file.arch + "' cannot be embedded", where, "", "use arch cpu");
  if (!file.find("main"))
    throw Error("a kernel file lacks its main kernel", where);
  for (const Kernel& k : file.kernels) {
    const bool power_of_two = k.align >= 1 && (k.align & (k.align - 1)) == 0;
    if (k.entry < 0 || size_t(k.entry) >= k.code.size() || !power_of_two)
      throw Error("a kernel's entry or alignment is out of range", where);
  }
}

} // namespace

std::vector<const Kernel*> linked_kernels(const LibraryFunction& f) {
  std::vector<const Kernel*> kernels;
  for (const KernelFile& file : f.kernels)
    for (const Kernel& k : file.kernels)
      if (k.role == "main" || k.role == "fallback")
        kernels.push_back(&k);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const Kernel* x, const Kernel* y) { return x->isa > y->isa; });
  return kernels;
}

void validate(const Library& library) {
  std::set<std::string> names;
  for (const LibraryFunction& f : library.functions) {
    const std::string where = library.target + ", function " + f.file.name;
    check_identifier(f.file.name, "the function name", where);
    check_identifier(f.file.ns, "the namespace", where);
    for (const char* suffix : {"", "_run", "_function"})
      if (!names.insert(f.file.ns + "_" + f.file.name + suffix).second)
        throw Error("two functions of a library give the same C name", where,
                    f.file.ns + "_" + f.file.name + suffix, "pass another NAME to deepgen_add_gemm()");
    if (f.kernels.empty())
      throw Error("a function has no kernel", where, "", "pass --kernel after its --problem");
    for (const KernelFile& file : f.kernels)
      check_kernel_file(file, f);
  }
  if (library.functions.empty())
    throw Error("a library needs at least one problem", library.target);
}

} // namespace deepgen
