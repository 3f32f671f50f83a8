#include "templates/gpu/attention/attention_block.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <tuple>

namespace deepgen {

namespace llvmd = mlir::LLVM;

AttentionBlock::AttentionBlock(GpuIr& builder, const Attention& problem, const AttentionTile& tiling,
                               const GpuIr::Arguments& args)
    : ir(builder), p(problem), t(tiling), arguments(args) {}

Value AttentionBlock::entry_of(Value table, Value index) const {
  return ir.load(ir.i32, ir.offset(table, ir.mul(ir.to_i64(index), 4)), 4);
}

namespace {

Value between(GpuIr& ir, Value x, Value most) { return ir.min(ir.max(x, ir.c(0)), most); }

} // namespace

Value AttentionBlock::is_passed(const char* table) const {
  return ir.not_equal(llvmd::PtrToIntOp::create(ir.b, ir.loc, ir.i64, arguments.at(table)), ir.constant(0));
}

/// {first, count} by a table of offsets, or {0, count} where it is null.
std::pair<Value, Value> AttentionBlock::span(const char* offsets, Value count) const {
  Value table = arguments.at(offsets);
  const Values both = ir.branch(
      is_passed(offsets), {ir.i32, ir.i32},
      [&] {
        Value first = entry_of(table, entry_);
        return Values{first, ir.sub(entry_of(table, ir.add(entry_, 1)), first)};
      },
      [&] { return Values{ir.c(0), count}; });
  return {both[0], both[1]};
}

void AttentionBlock::read_lengths() {
  queries_ = ir.to_i32(arguments.at("m")), keys_ = ir.to_i32(arguments.at("n"));
  first_query_ = first_key_ = ir.c(0);
  if (p.varlen) std::tie(first_query_, queries_) = span("query_offsets", queries_);
  if (p.varlen && !p.paged()) std::tie(first_key_, keys_) = span("key_offsets", keys_);
  if (!p.varlen && !p.paged()) return;
  Value used = arguments.at("keys_used");
  keys_ = ir.branch(
      is_passed("keys_used"), {ir.i32}, [&] { return Values{between(ir, entry_of(used, entry_), keys_)}; },
      [&] { return Values{keys_}; })[0];
}

/// Blocks of rows of the entry.
Value AttentionBlock::find_rows() {
  read_lengths();
  shift_ = p.mask == AttentionMask::causal_top_left ? ir.c(0) : ir.sub(keys_, queries_);
  all_ = ir.mul(queries_, t.group);
  return ir.divide(ir.add(all_, t.rows - 1), t.rows);
}

void AttentionBlock::take_rows(Value blocks, Value number) {
  // The last rows see most keys: they begin first.
  const bool causal = p.mask == AttentionMask::causal || p.mask == AttentionMask::causal_top_left;
  begin_ = ir.mul(causal ? ir.sub(ir.sub(blocks, ir.c(1)), number) : number, t.rows);
  Value end = ir.min(ir.add(begin_, t.rows), all_);
  first_ = bounds(ir.divide(begin_, t.group));
  last_ = bounds(ir.divide(ir.sub(end, ir.c(1)), t.group));
}

void AttentionBlock::enter(const std::function<void()>& body) {
  entry_ = ir.block_z();
  Value blocks = find_rows(), number = ir.block_x(), works = number;
  if (t.splits > 1) {
    split_ = ir.remainder(number, t.splits), number = ir.divide(number, t.splits);
    find_split();
    works = ir.both(ir.less(number, blocks), ir.less(split_, splits()));
  } else {
    works = ir.less(number, blocks);
  }
  ir.branch(works, [&] {
    take_rows(blocks, number);
    body();
  });
}

void AttentionBlock::find_split() {
  Value tokens = ir.mul(arguments.at("batch"), arguments.at("m"));
  is_split_ = ir.less(tokens, t.split_tokens + 1);
}
Value AttentionBlock::splits() const { return ir.select(is_split_, ir.c(t.splits), ir.c(1)); }

void AttentionBlock::enter_row(const std::function<void(Value token, Value head)>& body) {
  entry_ = ir.block_z();
  read_lengths();
  find_split();
  Value token = ir.block_x(), head = ir.block_y();
  ir.branch(ir.both(is_split_, ir.less(token, queries_)), [&] { body(token, head); });
}

AttentionBlock::Bounds AttentionBlock::seen_keys() const {
  Value from = ir.mul(ir.divide(first_.from, t.keys), t.keys);
  if (t.splits == 1) return {from, last_.to};
  // All splits have as many blocks of keys but the last ones, which may have less, or none.
  Value count = ir.max(ir.sub(last_.to, from), ir.c(0)), all = splits();
  Value blocks = ir.divide(ir.add(count, t.keys - 1), t.keys);
  Value each = ir.mul(ir.divide(ir.add(blocks, ir.sub(all, ir.c(1))), all), t.keys);
  Value own = ir.add(from, ir.mul(split_, each));
  return {own, ir.min(last_.to, ir.add(own, each))};
}

Value AttentionBlock::record(Value token, Value head) const {
  Value row = ir.add(ir.mul(ir.to_i64(entry_), p.heads), ir.to_i64(head));
  row = ir.add(ir.mul(row, arguments.at("m")), ir.to_i64(token));
  Value number = ir.mul(row, t.splits);
  if (split_) number = ir.add(number, ir.to_i64(split_));
  return ir.offset(arguments.at("workspace"), ir.mul(number, t.record));
}

Value AttentionBlock::locate(const Place& place) {
  entry_ = place.entry, head_ = place.head, split_ = place.split;
  Value blocks = find_rows();
  take_rows(blocks, place.number);
  return ir.less(place.number, blocks);
}

/// An end of the window as i32; negative: there is none.
Value AttentionBlock::side(const char* name) const {
  Value x = arguments.at(name), most = ir.constant(2 * most_tokens);
  return ir.to_i32(ir.min(ir.max(x, ir.constant(-1)), most));
}

AttentionBlock::Bounds AttentionBlock::bounds(Value token) const {
  if (p.mask == AttentionMask::none) return {ir.c(0), keys_};
  Value own = ir.wrapping_add(token, shift_);
  if (p.mask != AttentionMask::window) return {ir.c(0), between(ir, ir.wrapping_add(own, ir.c(1)), keys_)};
  Value left = side("window_left"), right = side("window_right");
  Value from = ir.select(ir.less(left, 0), ir.c(0), ir.max(ir.sub(own, left), ir.c(0)));
  Value end = between(ir, ir.wrapping_add(ir.wrapping_add(own, right), ir.c(1)), keys_);
  return {from, ir.select(ir.less(right, 0), keys_, end)};
}

AttentionBlock::Row AttentionBlock::row(Value in_block) const {
  Value packed = ir.add(begin_, in_block), number = head();
  if (!t.pack) return {packed, packed, number};
  return {packed, ir.divide(packed, t.group), ir.add(ir.mul(number, t.group), ir.remainder(packed, t.group))};
}

AttentionBlock::Row AttentionBlock::nearest_row(Value in_block) const {
  return row(ir.min(in_block, ir.sub(rows_left(), ir.c(1))));
}

Value AttentionBlock::bias_row(const Row& r) const {
  Value at = ir.mul(ir.to_i64(entry_), arguments.at("bias_batch"));
  at = ir.add(at, ir.mul(ir.to_i64(r.head), arguments.at("bias_head")));
  at = ir.add(at, ir.mul(ir.to_i64(r.token), arguments.at("bias_query")));
  return ir.offset(arguments.at("bias"), ir.mul(at, size_of(*p.bias)));
}

Value AttentionBlock::bias_aligned(int64_t bytes) const {
  Value strides = ir.bit_or(arguments.at("bias_query"), arguments.at("bias_head"));
  strides = ir.mul(ir.bit_or(strides, arguments.at("bias_batch")), size_of(*p.bias));
  Value base = llvmd::PtrToIntOp::create(ir.b, ir.loc, ir.i64, arguments.at("bias"));
  return ir.equal(ir.bit_and(ir.bit_or(strides, base), bytes - 1), ir.constant(0));
}

/// Of the entry, at a token of it.
Value AttentionBlock::start(const std::string& name, Type type, Value first) const {
  Value at = ir.add(ir.mul(ir.to_i64(entry_), arguments.at(name + "_batch")),
                    ir.mul(ir.to_i64(first), arguments.at(name + "_token")));
  return ir.offset(arguments.at(name), ir.mul(at, size_of(type)));
}

Value AttentionBlock::address(const std::string& name, Type type, Value token, Value head) const {
  Value at = ir.add(ir.mul(ir.to_i64(token), arguments.at(name + "_token")),
                    ir.mul(ir.to_i64(head), arguments.at(name + "_head")));
  return ir.offset(start(name, type, first_query_), ir.mul(at, size_of(type)));
}

Value AttentionBlock::key_head() const {
  Value number = head();
  return t.pack ? number : ir.divide(number, p.group());
}

Value AttentionBlock::keys_address(const std::string& name) const {
  Value of_keys = key_head();
  Value at = ir.mul(ir.to_i64(of_keys), arguments.at(name + "_head"));
  return ir.offset(start(name, p.kv, first_key_), ir.mul(at, size_of(p.kv)));
}

Value AttentionBlock::page_of(Value token) const {
  Value ids = ir.mul(ir.to_i64(entry_), arguments.at("page_table_stride"));
  Value table = ir.offset(arguments.at("page_table"), ir.mul(ids, 4));
  return entry_of(table, ir.divide(token, p.page_size));
}

AttentionBlock::Pages AttentionBlock::pages(const std::string& name) const {
  Value number = ir.block_y(), head = t.pack ? number : ir.divide(number, p.group());
  Value at = ir.mul(ir.to_i64(head), arguments.at(name + "_head"));
  Value ids = ir.mul(ir.to_i64(entry_), arguments.at("page_table_stride"));
  return {ir.offset(arguments.at(name), ir.mul(at, size_of(p.kv))), pitch(name, p.kv),
          ir.mul(arguments.at(name + "_batch"), size_of(p.kv)),
          ir.offset(arguments.at("page_table"), ir.mul(ids, 4))};
}

Value AttentionBlock::in_page(const Pages& pages, Value token) const {
  // A block of keys may begin before the window, whose pages there may be gone.
  if (p.mask == AttentionMask::window) token = ir.max(token, first_.from);
  Value known = ir.min(token, ir.sub(last_.to, ir.c(1)));
  Value id = entry_of(pages.table, ir.divide(known, p.page_size));
  Value within = ir.bit_and(known, p.page_size - 1);
  Value at = ir.add(ir.mul(ir.to_i64(id), pages.page), ir.mul(ir.to_i64(within), pages.pitch));
  return ir.offset(pages.base, at);
}

Value AttentionBlock::pitch(const std::string& name, Type type) const {
  return ir.mul(arguments.at(name + "_token"), size_of(type));
}

Values AttentionBlock::masked(Values scores, Value first, llvm::function_ref<void(Values&)> mask) const {
  Value hides = ir.less(first_.to, ir.add(first, t.keys));
  if (p.mask == AttentionMask::window) hides = ir.bit_or(hides, ir.less(first, last_.from));
  const llvm::SmallVector<mlir::Type> types(scores.size(), ir.f32);
  return ir.branch(
      hides, types,
      [&] {
        Values hidden = scores;
        mask(hidden);
        return hidden;
      },
      [&] { return scores; });
}

} // namespace deepgen
