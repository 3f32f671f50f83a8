#include "generator/embed/embed_packed.h"

#include "base/problem/packed_b.h"
#include "base/text/error.h"
#include "generator/embed/embed_text.h"
#include "generator/embed/embed_vendor.h"
#include "generator/embed/operand_table.h"

namespace deepgen {
namespace {

std::string layout_of(const LibraryFunction& f) {
  const Gemm* p = std::get_if<Gemm>(&f.file.problem.which());
  return p ? packed_layout_text(*p) : "";
}

std::string literal(const std::string& layout) { return "0x" + layout + "u"; }

} // namespace

bool takes_packed_b(const LibraryFunction& f) { return !layout_of(f).empty(); }

std::string packed_table(const LibraryFunction& f) {
  if (!takes_packed_b(f)) return "";
  const Gemm& p = f.file.problem.gemm();
  return "const deepgen_packed_b " + symbol(f) + "_packed_b = {" + literal(layout_of(f)) + ", " +
         number(p.n) + ", " + number(p.k) + ", " + number(p.batch) + ", " + number(int64_t(p.b)) + ", " +
         number(p.b_transposed()) + ", " + number(p.gate.has_value()) + "};\n";
}

std::string packed_field(const LinkedKernel& linked, const LibraryFunction& f) {
  if (!takes_packed_b(f)) return "";
  return (call_beside(linked, f) ? "" : ", nullptr") +
         (", 0u, " + literal(layout_of(f))); // sum_order is of GPUs
}

std::string cut_field(const LinkedKernel& linked, const LibraryFunction& f) {
  const int64_t cut = linked.kernel->cut;
  if (!cut) return "";
  if (takes_packed_b(f)) return ", " + number(cut) + "u";
  return (call_beside(linked, f) ? "" : ", nullptr") + (", 0u, 0u, " + number(cut) + "u");
}

void check_packed_layout(const LibraryFunction& f, const KernelFile& file) {
  for (const Kernel& k : file.kernels)
    if (k.role != "awkward" && k.packed_b != layout_of(f))
      throw Error("a kernel reads B in another layout than its function packs", f.file.label(),
                  "the kernel's is " + (k.packed_b.empty() ? "that of a plain matrix" : k.packed_b),
                  "build the kernel and the library with the same version of DeepGen");
}

} // namespace deepgen
