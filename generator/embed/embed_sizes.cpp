#include "generator/embed/embed_sizes.h"

#include "base/problem/packed_b.h"
#include "generator/embed/embed_ranges.h"
#include "generator/embed/embed_signature.h"
#include "generator/embed/embed_text.h"

#include <cctype>

namespace deepgen {
namespace {

std::vector<SizeConstant> sizes(const Gemm& p) {
  std::vector<SizeConstant> list;
  for (size_t i = 0; i < size_count; ++i) {
    const std::string name = size_names[i];
    if (p.least[i]) list.push_back({"least_" + name, *p.least[i], false});
    list.push_back({(p.least[i] ? "most_" : "") + name, p.sizes()[Size(i)], false});
  }
  if (p.groups) list.push_back({"groups", p.groups, false});
  return list;
}
std::vector<SizeConstant> sizes(const Rows& p) { return {{"m", p.m, false}, {"n", p.n, false}}; }
std::vector<SizeConstant> sizes(const Attention& p) {
  std::vector<SizeConstant> list = {{"heads", p.heads, false},
                                    {"kv_heads", p.kv_heads, false},
                                    {"head_dim", p.head_dim, false},
                                    {"value_dim", p.value_dim, false},
                                    {"most_queries", p.queries, false},
                                    {"most_keys", p.keys, false},
                                    {"most_batch", most_attention_batch, false}};
  if (p.paged()) list.push_back({"page_size", p.page_size, false});
  return list;
}

} // namespace

std::vector<SizeConstant> size_constants_of(const Problem& p) {
  std::vector<SizeConstant> list = std::visit([](const auto& x) { return sizes(x); }, p.which());
  std::vector<SizeConstant> bytes;
  for (const Operand& x : signature(p)) {
    if (!x.in_memory() || p.op() == "attention") continue; // whose operands are as large as a call's batch
    if (x.is_matrix() && !x.columns_by) list.push_back({x.leading_dimension(), x.columns, false});
    // Operands that no address space holds have no constant: nobody can call the function.
    int64_t product = size_of(x.type);
    bool fits = true;
    for (int64_t factor : {x.entries, x.rows, x.columns})
      fits = fits && !__builtin_mul_overflow(product, factor, &product);
    if (fits) bytes.push_back({std::string("bytes_") + x.name, product, true});
  }
  if (p.op() == "gemm" && p.gemm().packed_b)
    bytes.push_back({"bytes_packed_b", packed_layout(p.gemm()).bytes, true});
  list.insert(list.end(), bytes.begin(), bytes.end());
  return list;
}

std::string size_macro(const LibraryFunction& f, const SizeConstant& constant) {
  std::string text;
  for (unsigned char c : symbol(f) + "_" + constant.name) text += char(std::toupper(c));
  return text;
}

std::string size_macros(const LibraryFunction& f) {
  std::string text =
      "/* For _Static_assert. Bytes are those of dense matrices, all batch entries and groups included" +
      std::string(ranges_of(f.file.problem).empty() ? "" : ", of the largest call") + ". */\n";
  for (const SizeConstant& c : size_constants_of(f.file.problem))
    text += "#define " + size_macro(f, c) + " " + number(c.value) + "\n";
  return text;
}

std::string size_constants(const LibraryFunction& f) {
  std::string text = "/// For static_assert: what " + f.file.name + "() was built for.\nstruct " +
                     f.file.name + "_sizes {\n";
  for (const SizeConstant& c : size_constants_of(f.file.problem))
    text += std::string("  static constexpr ") + (c.is_bytes ? "size_t " : "int64_t ") + c.name + " = " +
            number(c.value) + ";\n";
  return text + "};\n\n";
}

} // namespace deepgen
