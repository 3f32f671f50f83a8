#include "base/text/error.h"
#include "generator/mlir_in/source.h"

namespace deepgen::tensors {
namespace {

struct Spelling {
  const char *old, *now;
};

/// What modules of earlier years have, and how MLIR 22 says it.
constexpr Spelling kSpellings[] = {
    {"linalg.matmul_transpose_a",
     "linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, "
     "affine_map<(m, n, k) -> (m, n)>] ins(...) outs(...)"},
    {"linalg.matmul_transpose_b",
     "linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
     "affine_map<(m, n, k) -> (m, n)>] ins(...) outs(...)"},
    {"linalg.batch_matmul_transpose_a", "linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, "
                                        "k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>, "
                                        "affine_map<(b, m, n, k) -> (b, m, n)>] ins(...) outs(...)"},
    {"linalg.batch_matmul_transpose_b", "linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, "
                                        "m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, "
                                        "affine_map<(b, m, n, k) -> (b, m, n)>] ins(...) outs(...)"},
    {"linalg.matmul_unsigned", "linalg.matmul, for signed integers: there are no unsigned types"},
    {"linalg.elemwise_binary",
     "linalg.add, linalg.mul, ..., or linalg.elementwise kind=#linalg.elementwise_kind<add>"},
    {"linalg.elemwise_unary",
     "linalg.exp, linalg.tanh, ..., or linalg.elementwise kind=#linalg.elementwise_kind<exp>"},
    {"linalg.init_tensor", "tensor.empty() : tensor<4x8xf32>"},
    {"arith.maxf", "arith.maximumf"},
    {"arith.minf", "arith.minimumf"},
    {"bufferization.to_memref", "bufferization.to_buffer"},
    {"memref.buffer_cast", "bufferization.to_buffer"},
    {"builtin.func", "func.func"},
    {"std.return", "func.return"},
};

char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '>'; }

/// Behind a string or a comment that begins at `at`; `at` when none does.
size_t behind_text(const std::string& text, size_t at) {
  if (text[at] == '/' && text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text[at] != '"') return at;
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

} // namespace

std::string remedy_for(const std::string& why) {
  for (const Spelling& s : kSpellings)
    if (why.find("'" + std::string(s.old) + "'") != std::string::npos)
      return "this version of MLIR has another spelling: " + std::string(s.now);
  if (why.find("unregistered dialect") != std::string::npos || why.find("is unknown") != std::string::npos ||
      why.find("not found for custom op") != std::string::npos)
    return "linalg on tensors, with arith, math, tensor, memref, scf, affine and func beside it: lower "
           "others to it first";
  return "a module that mlir-opt of LLVM 22 reads";
}

void check_nesting(const std::string& text, const std::string& file) {
  constexpr size_t most = 200;
  std::string open;
  int64_t line = 1;
  // Signs and names in a row are read by recursion, too.
  size_t run = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (const size_t next = behind_text(text, i); next != i) {
      i = next - 1;
      continue;
    }
    const char c = text[i];
    line += c == '\n';
    run = c == '-' || c == '!' ? run + 1 : c == ' ' || c == '\n' || c == '\t' ? run : 0;
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      open += closing(c);
    } else if (!open.empty() && c == open.back() && !(c == '>' && i > 0 && text[i - 1] == '-')) {
      open.pop_back();
    } else if (c == ')' || c == ']' || c == '}') { // what was no bracket, as in "a < b)"
      while (!open.empty() && open.back() == '>') open.pop_back();
      if (!open.empty() && open.back() == c) open.pop_back();
    }
    if (open.size() > most || run > most)
      throw Error("brackets or signs are nested more than " + std::to_string(most) + " deep",
                  file + ":" + std::to_string(line), "", "a module that people or compilers write");
  }
}

} // namespace deepgen::tensors
