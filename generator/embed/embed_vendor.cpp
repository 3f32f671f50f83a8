#include "generator/embed/embed_vendor.h"

#include "base/kernel/device.h"
#include "base/problem/lt_fusion.h"
#include "base/text/error.h"
#include "generator/embed/embed_text.h"

#include <cstdio>

namespace deepgen {
namespace {

/// What the library does itself of the epilogue.
std::string fused_flags(const Gemm& p) {
  const LtFusion fusion = fuse_lt(p);
  std::string text;
  const auto add = [&](bool has, const char* flag) {
    if (has) text += std::string(" | DEEPGEN_VENDOR_") + flag;
  };
  add(fusion.scales && p.has(EpilogueOp::scale_a), "SCALE_A");
  add(fusion.scales && p.has(EpilogueOp::scale_b), "SCALE_B");
  add(fusion.bias, "BIAS"), add(fusion.residual, "RESIDUAL");
  add(fusion.activation == LtFusion::relu, "RELU");
  add(fusion.activation == LtFusion::gelu_tanh, "GELU_TANH");
  return text;
}

std::string flags_of(const Gemm& p, bool cpu) {
  return std::string(p.a_transposed() ? "DEEPGEN_VENDOR_A_TRANSPOSED" : "0u") +
         (p.b_transposed() ? " | DEEPGEN_VENDOR_B_TRANSPOSED" : "") + (cpu ? "" : fused_flags(p));
}

const char* enumerator_of(const std::string& arch) {
  return arch == "cpu"  ? "DEEPGEN_LIBRARY_OPENBLAS"
         : is_amd(arch) ? "DEEPGEN_LIBRARY_HIPBLASLT"
                        : "DEEPGEN_LIBRARY_CUBLASLT";
}

std::string words_of(const VendorCall& call, bool cpu) {
  if (cpu) return "{}";
  std::string text;
  char word[32];
  for (const uint64_t x : algorithm_words(call.algorithm)) {
    std::snprintf(word, sizeof word, "%s0x%llxu", text.empty() ? "{" : ", ",
                  static_cast<unsigned long long>(x));
    text += word;
  }
  return text + "}";
}

} // namespace

const VendorCall* call_beside(const LinkedKernel& linked, const LibraryFunction& f) {
  if (linked.kernel->role != "main") return nullptr;
  for (const LinkedCall& x : f.calls)
    if (x.arch == linked.file->arch && x.device == linked.kernel->device) return &x.call;
  return nullptr;
}

std::string vendor_table(const LinkedKernel& linked, const LibraryFunction& f, const std::string& id) {
  const VendorCall* call = call_beside(linked, f);
  if (!call) return "";
  if (const std::string why = why_unusable(*call, f.file.problem, linked.file->arch); !why.empty())
    throw Error("a vendor's library cannot be called in place of a kernel", f.file.label(), why,
                "run `ninja tune`");
  const bool cpu = linked.file->arch == "cpu";
  const Gemm& p = f.file.problem.gemm();
  std::string text, steps = "nullptr", state = "nullptr";
  if (cpu) {
    state = "&" + id + "_state";
    text += "uint32_t volatile " + id + "_state = 0;\n";
  }
  if (cpu && !p.epilogue.empty()) {
    steps = id + "_steps";
    text += "const uint8_t " + steps + "[] = {";
    for (const EpilogueOp op : p.epilogue) text += number(int64_t(op)) + ", ";
    text += "};\n";
  }
  return text + "const deepgen_vendor_call " + id + "_vendor = {" + c_literal(call->config(p)) + ", " +
         c_literal(call->version) + ", " + c_literal(call->device) + ",\n    " +
         enumerator_of(linked.file->arch) + ", " + flags_of(p, cpu) + ", " + words_of(*call, cpu) + ", " +
         number(call->workspace) + ", " + steps + ", " + number(cpu ? int64_t(p.epilogue.size()) : 0) + ", " +
         state + "};\n";
}

std::string vendor_field(const LinkedKernel& linked, const LibraryFunction& f, const std::string& id) {
  return call_beside(linked, f) ? ", &" + id + "_vendor" : "";
}

} // namespace deepgen
