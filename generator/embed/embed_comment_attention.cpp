#include "generator/embed/embed_comment.h"
#include "generator/embed/embed_signature.h"

namespace deepgen {
namespace {

std::string mask_text(const Attention& p) {
  switch (p.mask) {
  case AttentionMask::causal:
    return "Causal: the last query sees the last key";
  case AttentionMask::causal_top_left:
    return "Causal: the first query sees the first key";
  case AttentionMask::window:
    return "A window about each query, whose ends a call passes; the last query's own key is the last one";
  case AttentionMask::none:
    break;
  }
  return "Every query sees every key";
}

std::string operand_line(const std::string& name, const std::string& meaning) {
  return "     " + name + "  " + meaning + "\n";
}

std::string tokens_text(Type type, int64_t heads, int64_t dimension, int64_t page = 0) {
  return to_string(type) + (page ? ", [page, " + number(page) : ", [batch, token") + ", " + number(heads) +
         ", " + number(dimension) + "] unless strides are given";
}

} // namespace

std::string formula(const Attention& p) {
  return std::string("out = softmax(") + (p.softcap ? "softcap(" : "") + "scale * Q * K^T" +
         (p.softcap ? ")" : "") + (p.bias ? " + bias" : "") + ") * V, of each head";
}

std::string comment_lines(const Attention& p) {
  const bool nameless = c_type(p.q) == "void" || c_type(p.kv) == "void" || c_type(p.out) == "void";
  std::string text = "   " + number(p.heads) + " heads of Q, " + number(p.kv_heads) +
                     " of K and V. Computed in f32, rounded where stored" +
                     (nameless ? "; types without a name in C are void" : "") + ".\n   " + mask_text(p) +
                     ".\n   At most " + number(p.queries) + " queries and " + number(p.keys) +
                     " keys of a batch entry.\n";
  text += operand_line("q", tokens_text(p.q, p.heads, p.head_dim));
  text += operand_line("key", tokens_text(p.kv, p.kv_heads, p.head_dim, p.page_size));
  text += operand_line("value", tokens_text(p.kv, p.kv_heads, p.value_dim, p.page_size));
  text += operand_line("out", tokens_text(p.out, p.heads, p.value_dim));
  if (p.lse)
    text += operand_line("lse", "f32, [batch, " + number(p.heads) +
                                    ", token]: logarithms of the sums of exponentials");
  if (p.sink) text += operand_line("sink", "f32, " + number(p.heads) + " scores that no value goes with");
  if (p.bias)
    text += operand_line("bias", to_string(*p.bias) + ", [batch, " + number(p.heads) +
                                     ", most queries, most keys] unless strides are given; -inf hides a key");
  if (p.paged()) {
    text += operand_line("page_table", "int32, [batch, most keys / " + number(p.page_size) +
                                           "]: the pages of each entry's keys and values");
    text += operand_line("keys_used", "int32, keys of each entry that count, or null");
    if (p.varlen) text += operand_line("query_offsets", "int32, where entries begin, or null");
  } else if (p.varlen) {
    text += operand_line("query_offsets, key_offsets, keys_used", "int32, where entries begin, or null");
  }
  return text;
}

} // namespace deepgen
