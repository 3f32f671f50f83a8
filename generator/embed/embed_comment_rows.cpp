#include "base/problem/signature.h"
#include "generator/embed/embed_comment.h"
#include "generator/embed/embed_signature.h"

namespace deepgen {
namespace {

std::string meaning(RowsKind kind) {
  switch (kind) {
  case RowsKind::softmax:
    return "softmax(z) = exp(z - max z) / sum exp(z - max z)";
  case RowsKind::log_softmax:
    return "log_softmax(z) = z - max z - log(sum exp(z - max z))";
  case RowsKind::layer_norm:
    return "layer_norm(z) = (z - mean z) / sqrt(mean (z - mean z)^2 + epsilon)";
  case RowsKind::rms_norm:
    break;
  }
  return "rms_norm(z) = z / sqrt(mean z^2 + epsilon)";
}

/// What stands behind the type and sizes of an operand.
std::string meaning(const Rows& p, const std::string& operand) {
  if (operand == "residual_out") return "M x N: X + residual, rounded";
  if (operand == "d" && p.quantised()) return "M x N, quantised";
  return "M x N";
}

} // namespace

std::string formula(const Rows& p) {
  std::string text = to_string(p.kind) + (p.residual ? "(X + residual)" : "(X)");
  if (p.scale) text += " * scale";
  if (p.bias) text += " + bias";
  return "D = " + text + ", each row for itself";
}

std::string comment_lines(const Rows& p) {
  std::string text =
      "   M=" + number(p.m) + " N=" + number(p.n) + ". Row-major. Computed in f32, rounded where stored" +
      (c_type(p.x) == "void" || c_type(p.d) == "void" ? "; types without a name in C are void" : "") +
      ".\n     " + meaning(p.kind) + "\n";
  for (const Operand& x : signature(p)) {
    if (x.is_matrix())
      text += matrix_line(x.name, x.type, x.rows, x.columns, meaning(p, x.name));
    else if (x.shape == Operand::Shape::per_column)
      text += std::string("     ") + x.name + ": " + number(x.columns) + " values, one a column, " +
              to_string(x.type) + "\n";
  }
  if (p.quantised())
    text += "     row_scales: " + number(p.m) +
            " values of f32 that a call writes: row_scales[m] = max |y[m,:]| / " +
            (p.d == Type::i8 ? "127" : "448") + ", where y is what D\n" +
            "       would be in f32; D[m,n] = y[m,n] / row_scales[m], to nearest even\n";
  if (p.normalises())
    text += "     epsilon: finite, 0 or more; the field of deepgen_rows_args is 1e-5 unless set\n";
  text += "   D may be x" + std::string(p.residual ? " or the residual" : "") + ", if of one type";
  if (p.output_residual) text += "; residual_out may be that of them which D is not";
  return text + ". Otherwise matrices\n   must not overlap. Pointers are aligned to their elements (" +
         number(p.align()) + " bytes the smallest).\n";
}

} // namespace deepgen
