#include "templates/gpu/rows/gpu_rows_source.h"

#include "templates/core/sizes.h"

namespace deepgen {
namespace {

/// An access in registers: words of 32 bits, or one of 16 or 8.
mlir::Type access_type(GpuIr& ir, int64_t bytes) {
  return bytes >= 4 ? ir.lanes(bytes / 4, ir.i32) : bytes == 2 ? ir.i16 : ir.i8;
}

} // namespace

GpuRowsSource::GpuRowsSource(GpuIr& builder, const Rows& problem, const GpuRowsTiling& tiling,
                             const GpuIr::Arguments& arguments, const GpuRow& row)
    : ir(builder), p(problem), t(tiling), args(arguments), row_(row) {}

Value GpuRowsSource::address(const std::string& operand, Type type, Value column) {
  Value bytes = ir.to_i64(ir.mul(column, size_of(type)));
  const auto ld = args.find(operand.size() == 1 ? "ld" + operand : "ld_" + operand);
  if (ld != args.end()) bytes = ir.add(ir.mul(ir.mul(row_.number, ld->second), size_of(type)), bytes);
  return ir.offset(args.at(operand), bytes);
}

Value GpuRowsSource::load(Value from, CachePolicy cache) {
  return ir.load_global(access_type(ir, t.vec), from, t.vec, cache);
}

/// Elements of X's type, in f32.
Value GpuRowsSource::widened(Value raw) {
  return ir.decode(p.x, ir.bitcast(ir.lanes(t.elements, ir.memory_type(p.x)), raw));
}

Value GpuRowsSource::vector_of(const std::string& operand, const GpuRowsVector& at) {
  Value column = at.inside ? ir.select(at.inside, at.column, ir.c(0)) : at.column;
  return widened(load(address(operand, p.x, column), CachePolicy::read_only));
}

GpuRowsSource::Raw GpuRowsSource::read(const GpuRowsVector& at) {
  Value column = at.inside ? ir.select(at.inside, at.column, ir.c(0)) : at.column;
  const CachePolicy cache = t.hint ? CachePolicy::passing : CachePolicy::usual;
  Raw raw = {load(address("x", p.x, column), cache), nullptr};
  if (p.residual) raw.residual = load(address("residual", p.x, column), cache);
  return raw;
}

/// Accesses of up to 16 bytes, in which neighbouring threads follow each other.
Value GpuRowsSource::slot(Value turn, int64_t part, int64_t bytes) {
  const int64_t parts = t.elements * t.held_bytes / bytes;
  Value access = ir.add(ir.mul(ir.add(ir.mul(turn, parts), part), t.threads), row_.thread);
  return ir.offset(ir.offset(ir.shared_memory(), ir.mul(access, bytes)), t.partial_bytes());
}

void GpuRowsSource::to_shared(Value elements, Value turn) {
  const int64_t all = t.elements * t.held_bytes, bytes = std::min<int64_t>(16, all);
  if (t.held_bytes < 4) elements = ir.encode(p.x, elements); // exact: they come from that type
  for (int64_t part = 0; part < all / bytes; ++part) {
    const int64_t count = bytes / t.held_bytes;
    Value piece = ir.slice(elements, part * count, count);
    ir.store(ir.bitcast(access_type(ir, bytes), piece), slot(turn, part, bytes), bytes);
  }
}

Value GpuRowsSource::from_shared(Value turn) {
  const int64_t all = t.elements * t.held_bytes, bytes = std::min<int64_t>(16, all);
  const Type type = t.held_bytes < 4 ? p.x : Type::f32;
  Values elements;
  for (int64_t part = 0; part < all / bytes; ++part) {
    Value raw = ir.load(access_type(ir, bytes), slot(turn, part, bytes), bytes);
    Value piece = ir.bitcast(ir.lanes(bytes / t.held_bytes, ir.memory_type(type)), raw);
    for (Value x : ir.unpack(ir.decode(type, piece))) elements.push_back(x);
  }
  return ir.pack(elements);
}

GpuRowsVector GpuRowsSource::place(Value first_turn, int64_t further, bool guarded) {
  GpuRowsVector out;
  Value vector = ir.add(ir.mul(ir.add(first_turn, further), t.lanes), row_.lane);
  if (guarded) out.inside = ir.less(vector, t.vectors);
  out.column = ir.mul(vector, t.elements);
  return out;
}

std::vector<GpuRowsSource::Raw> GpuRowsSource::read_all(const std::vector<GpuRowsVector>& group) {
  std::vector<Raw> raw;
  if (fetched_.empty())
    for (const GpuRowsVector& at : group) raw.push_back(read(at));
  else
    for (size_t i = 0, each = p.residual ? 2 : 1; i < group.size(); ++i)
      raw.push_back({fetched_[i * each], p.residual ? fetched_[i * each + 1] : nullptr});
  return raw;
}

Values GpuRowsSource::fetch() {
  Values loads;
  for (const GpuRowsVector& at : group_from(ir.c(0), 0, t.turns, true)) {
    const Raw raw = read(at);
    loads.push_back(raw.x);
    if (raw.residual) loads.push_back(raw.residual);
  }
  return loads;
}

/// All of the group are read before the first is looked at, so that they are under way together: AMD's
/// compiler keeps that order.
Values GpuRowsSource::visit(std::vector<GpuRowsVector>& group, const Values& carried, const Visit& body,
                            Value first_turn) {
  if (t.hold == GpuRowsTiling::in_shared && !first_pass_) {
    for (size_t i = 0; i < group.size(); ++i) group[i].x = from_shared(ir.add(first_turn, int64_t(i)));
    return body(group, carried);
  }
  const std::vector<Raw> raw = read_all(group);
  for (size_t i = 0; i < group.size(); ++i) {
    group[i].x = widened(raw[i].x);
    if (p.residual) group[i].x = ir.addf(group[i].x, widened(raw[i].residual));
    if (t.hold == GpuRowsTiling::in_shared) to_shared(group[i].x, ir.add(first_turn, int64_t(i)));
  }
  return body(group, carried);
}

/// `whole`: turns ahead of the group, of which the last ones alone are guarded.
std::vector<GpuRowsVector> GpuRowsSource::group_from(Value first_turn, int64_t whole, int64_t count,
                                                     bool guarded) {
  std::vector<GpuRowsVector> group;
  for (int64_t i = 0; i < count; ++i) {
    group.push_back(place(first_turn, i, guarded && (whole + i + 1) * t.lanes > t.vectors));
    group.back().turn = i;
  }
  return group;
}

Values GpuRowsSource::pass(const Values& start, const Visit& body) {
  Values carried = start;
  if (t.hold == GpuRowsTiling::in_registers && !first_pass_) return body(held_, carried);
  const bool in_registers = t.hold == GpuRowsTiling::in_registers;
  const int64_t together = in_registers ? t.turns : t.unroll;
  const int64_t whole = in_registers ? 0 : t.vectors / (together * t.lanes);
  if (whole)
    carried = ir.rolled_loop(ir.c(0), ir.c(whole * together), together, carried,
                             [&](Value turn, mlir::ValueRange now) {
                               auto group = group_from(turn, 0, together, false);
                               return visit(group, Values(now), body, turn);
                             });
  const int64_t rest = ceil_div(t.vectors - whole * together * t.lanes, t.lanes);
  Value turn = ir.c(whole * together);
  std::vector<GpuRowsVector> group = group_from(turn, whole * together, rest, true);
  if (!group.empty()) carried = visit(group, carried, body, turn);
  if (in_registers) held_ = group;
  first_pass_ = false;
  return carried;
}

void GpuRowsSource::store(const std::string& operand, Type type, const GpuRowsVector& at, Value elements) {
  const int64_t all = t.elements * size_of(type), bytes = std::min<int64_t>(16, all);
  Value encoded = type == Type::f32 ? elements : ir.encode(type, elements);
  Value inside = at.inside && row_.inside ? ir.both(at.inside, row_.inside)
                 : at.inside              ? at.inside
                                          : row_.inside;
  const auto write = [&] {
    Value to = address(operand, type, at.column);
    for (int64_t part = 0; part < all / bytes; ++part) {
      const int64_t count = bytes / size_of(type);
      Value piece = ir.bitcast(access_type(ir, bytes), ir.slice(encoded, part * count, count));
      ir.store(piece, ir.offset(to, part * bytes), bytes);
    }
  };
  if (inside)
    ir.branch(inside, write);
  else
    write();
}

} // namespace deepgen
