#include "generator/embed/embed_comment.h"

namespace deepgen {

std::string matrix_line(const std::string& name, Type type, int64_t rows, int64_t columns,
                        const std::string& meaning) {
  return "     " + name + "  " + to_string(type) + ", " + number(rows) + " x " + number(columns) + " (" +
         meaning + "), leading dimension " + number(columns) + " unless given\n";
}

std::string formula(const Problem& p) {
  return std::visit([](const auto& x) { return formula(x); }, p.which());
}

std::string comment(const LibraryFunction& f) {
  return "/* " + symbol(f) + ": " + formula(f.file.problem) + "\n" +
         std::visit([](const auto& x) { return comment_lines(x); }, f.file.problem.which()) + "*/\n";
}

} // namespace deepgen
