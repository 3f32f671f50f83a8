#include "generator/embed/embed_comment.h"

#include "generator/embed/embed_ranges.h"

namespace deepgen {

namespace {
std::string line_of(const std::string& name, Type type, const std::string& rows, const std::string& columns,
                    const std::string& meaning) {
  return "     " + name + "  " + to_string(type) + ", " + rows + " x " + columns + " (" + meaning +
         "), leading dimension " + columns + " unless given\n";
}
} // namespace

std::string matrix_line(const std::string& name, Type type, int64_t rows, int64_t columns,
                        const std::string& meaning) {
  return line_of(name, type, number(rows), number(columns), meaning);
}

std::string matrix_line(const std::string& name, const Operand& x, const Problem& p,
                        const std::string& meaning) {
  return line_of(name, x.type, size_expression(x.rows, x.rows_by, p),
                 size_expression(x.columns, x.columns_by, p), meaning);
}

std::string formula(const Problem& p) {
  return std::visit([](const auto& x) { return formula(x); }, p.which());
}

std::string comment(const LibraryFunction& f) {
  return "/* " + symbol(f) + ": " + formula(f.file.problem) + "\n" +
         std::visit([](const auto& x) { return comment_lines(x); }, f.file.problem.which()) + "*/\n";
}

} // namespace deepgen
