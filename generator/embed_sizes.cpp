#include "generator/embed_sizes.h"

#include "generator/embed_signature.h"
#include "generator/embed_text.h"

#include <cctype>

namespace deepgen {
namespace {

/// Values of an operand of the epilogue that are not a matrix.
int64_t vector_length(const SignatureOperand& operand, const Problem& p) {
  if (operand.shape == SignatureOperand::one_value) return 1;
  if (operand.shape == SignatureOperand::per_row) return p.m;
  return p.n * (p.groups ? p.groups : 1);
}

} // namespace

std::vector<SizeConstant> size_constants_of(const Problem& p) {
  std::vector<SizeConstant> list = {
      {"m", p.m, false}, {"n", p.n, false}, {"k", p.k, false}, {"batch", p.batch, false}};
  if (p.groups) list.push_back({"groups", p.groups, false});
  std::vector<SizeConstant> bytes;
  // Operands that no address space holds have no constant: nobody can call the function.
  auto add_bytes = [&](const std::string& name, Type type, std::initializer_list<int64_t> factors) {
    int64_t product = size_of(type);
    bool fits = true;
    for (int64_t x : factors) fits = fits && !__builtin_mul_overflow(product, x, &product);
    if (fits) bytes.push_back({"bytes_" + name, product, true});
  };
  auto add_matrix = [&](const std::string& name, const std::string& ld, Type type, int64_t count,
                        int64_t rows, int64_t columns) {
    list.push_back({ld, columns, false});
    add_bytes(name, type, {count, rows, columns});
  };
  add_matrix("a", "lda", p.a, p.batch, p.a_rows(), p.a_columns());
  add_matrix("b", "ldb", p.b, p.b_matrices(), p.b_rows(), p.b_columns());
  add_matrix("c", "ldc", p.d, p.batch, p.m, p.n);
  add_matrix("d", "ldd", p.d, p.batch, p.m, p.n);
  for (const SignatureOperand& operand : epilogue_operands(p)) {
    const Type type = type_of(operand, p);
    const std::string name = operand.name;
    if (operand.shape == SignatureOperand::matrix)
      add_matrix(name, "ld_" + name, type, p.batch, p.m, p.n);
    else
      add_bytes(name, type, {vector_length(operand, p)});
  }
  if (p.groups) add_bytes("offsets", Type::i32, {p.groups + 1});
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
      "/* For _Static_assert. Bytes are those of dense matrices, all batch entries and groups included. */\n";
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
