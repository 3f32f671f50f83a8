#include "workload/mlir/product.h"

#include "base/text/error.h"

#include <algorithm>
#include <numeric>

namespace deepgen::tensors {
namespace {

enum class Role { batch, row, column, sum };

bool has(const Map& map, int loop) { return std::find(map.begin(), map.end(), loop) != map.end(); }

/// Loops in the roles that they have in A x B -> D.
struct Roles {
  std::vector<int> batch, rows, columns, sums;
};

/// Whether the maps are those of a product: every loop runs along two of A, B, D, or all three, and each at
/// most once; loops of sums along A and B.
bool find_roles(const Operation& o, Roles& roles) {
  if (o.inputs != 2 || o.operands.size() != 3) return false;
  for (const Map& map : o.maps) {
    for (size_t i = 0; i < map.size(); ++i)
      if (map[i] < 0 || std::count(map.begin(), map.end(), map[i]) > 1) return false;
  }
  for (int loop = 0; loop < int(o.reduction.size()); ++loop) {
    const bool a = has(o.maps[0], loop), b = has(o.maps[1], loop), d = has(o.maps[2], loop);
    if (o.reduction[size_t(loop)] ? !(a && b && !d) : !(d && (a || b))) return false;
    (o.reduction[size_t(loop)] ? roles.sums
     : a && b                  ? roles.batch
     : a                       ? roles.rows
                               : roles.columns)
        .push_back(loop);
  }
  return !roles.sums.empty();
}

/// Loops of one role, in the order in which they follow each other in every map that has them: then they are
/// one loop. Empty when they do not.
std::vector<int> as_one(const std::vector<int>& loops, const std::vector<Map>& maps) {
  std::vector<int> order;
  for (const Map& map : maps) {
    std::vector<int> here;
    size_t first = map.size(), last = 0;
    for (size_t i = 0; i < map.size(); ++i)
      if (has(loops, map[i])) here.push_back(map[i]), first = std::min(first, i), last = i;
    if (here.empty()) continue;
    if (last - first + 1 != here.size() || (!order.empty() && order != here)) return {};
    order = here;
  }
  return order;
}

int64_t extent(const Operation& o, const std::vector<int>& loops) {
  int64_t n = 1;
  for (int loop : loops)
    if (__builtin_mul_overflow(n, o.extents[size_t(loop)], &n)) return -1;
  return n;
}

/// The matrix along `rows` and `columns` (each possibly no loop) and `batch`; nothing when its elements do
/// not follow each other along either.
std::optional<Placed> placed(const Operation& o, int operand, const std::vector<int>& rows,
                             const std::vector<int>& columns, const std::vector<int>& batch) {
  const Map& map = o.maps[size_t(operand)];
  std::vector<int64_t> shape;
  for (int loop : map) shape.push_back(o.extents[size_t(loop)]);
  const std::vector<int64_t> strides = dense_strides(shape);
  if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 1; })) return {};
  const auto stride = [&](const std::vector<int>& loops) {
    const auto at = loops.empty() ? map.end() : std::find(map.begin(), map.end(), loops.back());
    return at == map.end() ? 0 : strides[size_t(at - map.begin())];
  };
  const auto ends_with = [&](const std::vector<int>& loops) {
    return !loops.empty() && map.back() == loops.back();
  };
  Placed p;
  if (map.empty() || ends_with(columns) || (columns.empty() && rows.empty())) {
    p.ld = stride(rows);
  } else if (ends_with(rows)) {
    // A column, when there is but one: its elements follow each other as those of a transposed row.
    p.transposed = true, p.ld = stride(columns);
  } else {
    return {};
  }
  p.stride = stride(batch);
  return p;
}

bool is_sum_of_products(const Formula& f) {
  if (f.root < 0 || !f.is(f.root, Step::add)) return false;
  const auto argument = [&](int node, int index) {
    while (f.is(node, Step::widen)) node = f.at(node).in[0];
    return f.is(node, Step::argument) && f.at(node).index == index;
  };
  const Node& sum = f.at(f.root);
  for (int i : {0, 1}) {
    const int product = sum.in[size_t(i)], other = sum.in[size_t(1 - i)];
    if (!f.is(product, Step::multiply) || !f.is(other, Step::argument) || f.at(other).index != 2) continue;
    const std::vector<int>& x = f.at(product).in;
    if ((argument(x[0], 0) && argument(x[1], 1)) || (argument(x[0], 1) && argument(x[1], 0))) return true;
  }
  return false;
}

/// One way to see it as a batch of products.
struct View {
  std::vector<int> batch, rows, columns, sums;
};

/// Loops of rows (or columns) that are not one make the outer one a batch in which B (or A) stays the same.
std::vector<View> views_of(const Operation& o, const Roles& r) {
  const std::vector<int> batch = as_one(r.batch, o.maps), sums = as_one(r.sums, o.maps);
  if (sums.empty() || batch.empty() != r.batch.empty()) return {};
  const auto joined = [&](const std::vector<int>& loops) { return as_one(loops, o.maps); };
  const std::vector<int> rows = joined(r.rows), columns = joined(r.columns);
  const bool one_row = rows.empty() == r.rows.empty(), one_column = columns.empty() == r.columns.empty();
  if (one_row && one_column) return {{batch, rows, columns, sums}};
  std::vector<View> views;
  if (!batch.empty()) return views;
  const std::vector<int>& split = one_row ? r.columns : r.rows;
  if ((one_row || one_column) && split.size() == 2)
    for (int outer : {0, 1}) {
      const std::vector<int> first{split[size_t(outer)]}, second{split[size_t(1 - outer)]};
      views.push_back(one_row ? View{first, rows, second, sums} : View{first, second, columns, sums});
    }
  return views;
}

/// D's last dimension is of its columns, which makes the one operand A and the other B.
std::optional<Product> seen_as(const Operation& o, View view) {
  const Map& d = o.maps[2];
  int a = 0, b = 1;
  const auto in = [&](const std::vector<int>& loops) {
    return !loops.empty() && !d.empty() && has(loops, d.back());
  };
  if (in(view.batch)) return {};
  if (in(view.rows) && !view.columns.empty()) std::swap(view.rows, view.columns), std::swap(a, b);
  const std::optional<Placed> place_a = placed(o, a, view.rows, view.sums, view.batch),
                              place_b = placed(o, b, view.sums, view.columns, view.batch),
                              place_d = placed(o, 2, view.rows, view.columns, view.batch);
  if (!place_a || !place_b || !place_d) return {};
  Product p;
  p.gemm.m = extent(o, view.rows), p.gemm.n = extent(o, view.columns), p.gemm.k = extent(o, view.sums);
  p.gemm.batch = extent(o, view.batch);
  p.a = o.operands[size_t(a)], p.b = o.operands[size_t(b)];
  p.place_a = *place_a, p.place_b = *place_b, p.place_d = *place_d;
  if (p.place_d.transposed) p.place_d = {false, 1, p.place_d.stride}; // one column
  p.rows = view.rows, p.columns = view.columns, p.batch = view.batch, p.d_map = d;
  for (Placed* x : {&p.place_a, &p.place_b}) {
    const Map& map = o.maps[size_t(x == &p.place_a ? a : b)];
    if (!view.batch.empty() && !has(map, view.batch[0])) x->stride = -1;
  }
  using enum Layout;
  p.gemm.layout = p.place_a.transposed ? (p.place_b.transposed ? tt : tn) : p.place_b.transposed ? nt : nn;
  return p;
}

/// Leading dimensions and strides that are those of dense operands become 0.
void leave_out_dense(Product& p) {
  const Gemm& g = p.gemm;
  const auto simplify = [&](Placed& x, int64_t rows, int64_t columns) {
    if (x.ld < columns || rows == 1) x.ld = columns;
    if (g.batch == 1 || x.stride == rows * x.ld) x.stride = 0;
    if (x.ld == columns) x.ld = 0;
  };
  simplify(p.place_a, g.a_rows(), g.a_columns());
  simplify(p.place_b, g.b_rows(), g.b_columns());
  simplify(p.place_d, g.m, g.n);
}

Refused odd_sizes(const Graph& graph, const Operation& o) {
  std::string types;
  for (int v : o.operands) types += (types.empty() ? "" : ", ") + type_text(graph.value(v));
  const bool empty = std::find(o.extents.begin(), o.extents.end(), 0) != o.extents.end();
  if (empty) return {"one of its sizes is 0: " + types, "drop the operation"};
  return {"its sizes are not known before run time: " + types,
          "give every tensor its sizes, as tensor<8x128xf32>, or a bound of them by padding"};
}

Match typed(const Graph& graph, const Operation& o, Product p) {
  const Value& d = graph.value(o.operands[2]);
  const auto element = [&](int v) { return type_of(graph.value(v).element); };
  const std::optional<Type> a = element(p.a), b = element(p.b), out = type_of(d.element);
  const std::string types =
      graph.value(o.operands[0]).element + " x " + graph.value(o.operands[1]).element + " -> " + d.element;
  const char* remedy =
      "f32, f64, f16, bf16, f8E4M3FN, f8E5M2 or i8, and sums of f32, f64, i32 or of that type";
  if (!a || !b || !out) return Refused{"its types are not served: " + types, remedy};
  p.gemm.a = *a, p.gemm.b = *b, p.gemm.d = *out;
  complete(p.gemm);
  try {
    validate(p.gemm);
  } catch (const Error&) {
    return Refused{"its sizes or types are not served: " + types + ", " + p.gemm.key(), remedy};
  }
  return p;
}

} // namespace

std::optional<Type> type_of(const std::string& e) {
  static const std::pair<const char*, Type> known[] = {
      {"f32", Type::f32},       {"f64", Type::f64},     {"f16", Type::f16}, {"bf16", Type::bf16},
      {"f8E4M3FN", Type::e4m3}, {"f8E5M2", Type::e5m2}, {"i8", Type::i8},   {"i32", Type::i32}};
  for (const auto& [name, type] : known)
    if (e == name) return type;
  return {};
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    if (__builtin_mul_overflow(strides[i], shape[i], &strides[i - 1])) strides[i - 1] = -1;
  return strides;
}

Match match_product(const Graph& graph, int operation) {
  const Operation& o = graph.operation(operation);
  Roles roles;
  if (!find_roles(o, roles)) return {};
  if (o.memrefs)
    return Refused{"it works on memrefs, which other operations may write",
                   "import the module before it is bufferized: a chain is followed along tensors"};
  if (o.result < 0) return {};
  if (!is_sum_of_products(o.body))
    return Refused{"it has the loops of a matrix product, but its body is not c + a * b of values that are "
                   "widened at most",
                   "linalg.matmul or linalg.contract; signed integers"};
  if (std::any_of(o.extents.begin(), o.extents.end(), [](int64_t e) { return e < 1; }))
    return odd_sizes(graph, o);
  const std::vector<View> views = views_of(o, roles);
  for (const View& view : views)
    if (std::optional<Product> p = seen_as(o, view)) {
      p->operation = operation;
      if (std::min({p->gemm.m, p->gemm.n, p->gemm.k, p->gemm.batch}) < 1)
        return Refused{"its sizes are too large", "sizes of at most 2^31 each"};
      leave_out_dense(*p);
      return typed(graph, o, std::move(*p));
    }
  if (views.empty())
    return Refused{
        "it has more loops than M, N, K and one batch, and they do not follow each other in all operands",
        "transpose the operands first, so that loops of one kind lie side by side"};
  return Refused{"the batch is the innermost dimension of an operand",
                 "transpose it first, so that M, N or K is innermost"};
}

} // namespace deepgen::tensors
