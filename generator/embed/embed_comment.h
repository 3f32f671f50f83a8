// What a generated header says of a function: its formula, sizes, types and operands.
#pragma once

#include "base/problem/signature.h"
#include "generator/embed/embed_text.h"

namespace deepgen {

/// "D = gelu((alpha * A * B + beta * C) + bias)"
std::string formula(const Gemm&);
std::string formula(const Rows&);
std::string formula(const Attention&);
/// The lines of the comment behind the one with the formula.
std::string comment_lines(const Gemm&);
std::string comment_lines(const Rows&);
std::string comment_lines(const Attention&);

std::string formula(const Problem&);
/// The whole of it.
std::string comment(const LibraryFunction&);

/// "     B  f32, 2048 x 64 (N x K, transposed), leading dimension 64 unless given"
std::string matrix_line(const std::string& name, Type, int64_t rows, int64_t columns,
                        const std::string& meaning);
/// Of an operand whose sizes may follow from those of a call.
std::string matrix_line(const std::string& name, const Operand&, const Problem&, const std::string& meaning);

} // namespace deepgen
