#include "generator/embed/embed_comment.h"

#include "base/problem/packed_b.h"
#include "generator/embed/embed_ranges.h"
#include "generator/embed/embed_signature.h"

namespace deepgen {

namespace {

std::string b_meaning(const Gemm& p) {
  if (p.gate) return p.b_transposed() ? "2 N x K, transposed: Bg, then Bu" : "K x 2 N: Bg, then Bu";
  return p.b_transposed() ? "N x K, transposed" : "K x N";
}

std::string operand_lines(const Gemm& p) {
  std::string text;
  const std::vector<Operand> operands = signature(p);
  for (auto x = operands.begin() + 4; x != operands.end(); ++x) { // behind a, b, c, d
    const std::string type = to_string(x->type);
    if (x->role != Operand::Role::in) continue;
    if (x->is_matrix())
      text += matrix_line(x->name, *x, p, "M x N");
    else if (x->shape == Operand::Shape::value)
      text += std::string("     ") + x->name + ": one " + type + " value\n";
    else
      text += std::string("     ") + x->name + ": " + size_expression(x->columns, x->columns_by, p) +
              " values, one a " + (x->shape == Operand::Shape::per_column ? "column" : "row") + ", " + type +
              (p.groups && x->shape == Operand::Shape::per_column ? ", for each group, one behind the other\n"
                                                                  : ", the same for every batch entry\n");
  }
  for (int i = 0; i < epilogue_op_count; ++i)
    if (const EpilogueOp op = EpilogueOp(i); *epilogue_steps[i].function && (p.has(op) || p.gate == op))
      text += std::string("     ") + epilogue_steps[i].function + "\n";
  return text;
}

} // namespace

std::string formula(const Gemm& p) {
  std::string text = "alpha * A * B";
  if (p.gate) text = to_string(*p.gate) + "(alpha * A * Bg) * (alpha * A * Bu)";
  text += " + beta * C";
  for (EpilogueOp op : p.epilogue) {
    std::string operand;
    for (const Operand& x : operands_of(op, p))
      if (x.in_memory()) operand = x.name;
    if (op == EpilogueOp::bias || op == EpilogueOp::bias_row || op == EpilogueOp::residual)
      text = "(" + text + ") + " + operand;
    else if (op == EpilogueOp::multiply || to_string(op).starts_with("scale_"))
      text = "(" + text + ") * " + operand;
    else
      text = to_string(op) + "(" + text + (operand.empty() ? "" : ", " + operand) + ")";
  }
  return "D = " + text;
}

namespace {

/// "512", or "1..8192".
std::string size_text(const Gemm& p, Size size) {
  const auto& least = p.least[size_t(size)];
  return (least ? number(*least) + ".." : "") + number(p.sizes()[size]);
}

std::string packed_lines(const Gemm& p) {
  if (!p.packed_b) return "";
  return "     B is packed once by deepgen_pack_b() into memory of " + number(packed_layout(p).bytes) +
         " bytes, aligned to 64, which calls then take;\n       anything else is DEEPGEN_ERROR_PACKED, or "
         "deepgen_check_packed_b() finds it. The layout is " +
         packed_layout_text(p) + "\n";
}

std::string range_lines(const Gemm& p) {
  if (!p.ranged()) return "";
  return "   Each call passes the sizes that are ranges, in the range or 0; another one is "
         "DEEPGEN_ERROR_SIZE, and "
         "deepgen_size_ranges()\n   tells the ranges. Without elements of D nothing is written; with K 0, D "
         "is the "
         "epilogue of beta * C.\n";
}

std::string invariance_lines(const Gemm& p) {
  if (!p.batch_invariant) return "";
  return "   The bits of a row of D depend neither on M, nor on the row's place, nor on other rows. On a "
         "GPU, "
         "operands that are\n   less aligned than dense ones are DEEPGEN_ERROR_ALIGNMENT.\n";
}

std::string thread_lines(const Gemm& p) {
  if (p.threads == 1) return "";
  return "   Tuned for " + number(p.threads) +
         " threads: of its calls, that is; deepgen_set_num_threads() says how many a call takes.\n";
}

} // namespace

std::string comment_lines(const Gemm& p) {
  const std::vector<Operand> operands = signature(p);
  std::string text =
      "   M=" + size_text(p, Size::m) + " N=" + size_text(p, Size::n) + " K=" + size_text(p, Size::k) +
      ", batch " + size_text(p, Size::batch) + ". Row-major. Sums in " + to_string(p.accumulate) + "; " +
      (c_type(p.a) == "void" || c_type(p.d) == "void" ? "types without a name in C are void;" : "") +
      " alpha and beta are rounded to " + to_string(p.scale_type()) + ".\n";
  text += range_lines(p) + invariance_lines(p) + thread_lines(p);
  text += matrix_line("A", operands[0], p, p.a_transposed() ? "K x M, transposed" : "M x K");
  text += matrix_line("B", operands[1], p, b_meaning(p));
  text += packed_lines(p);
  if (p.groups)
    text += "     offsets: " + number(p.groups + 1) +
            " values of int32 in device memory. Group g has rows offsets[g] to " +
            "offsets[g + 1] of A and D, and matrix g of " + number(p.groups) + " in B;\n" +
            "       from 0 or more to M or less, ascending, which is not checked. Other rows of D are left "
            "as they are\n";
  text += matrix_line("D", operands[3], p, "M x N; C alike");
  text += operand_lines(p);
  text += "   Pointers are aligned to their elements (" + number(p.align) +
          " bytes the smallest); D must overlap neither A, B nor vectors,\n   which is not checked.\n";
  if (p.batch > 1) text += "   Batch entries lie rows x leading dimension apart unless strides are given.\n";
  return text;
}

} // namespace deepgen
