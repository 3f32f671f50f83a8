#include "workload/mlir/steps.h"

#include "base/text/error.h"

#include <algorithm>

namespace deepgen::tensors {
namespace {

/// Takes a formula apart from the outside. `left` is what the steps so far are applied to.
class Peeler {
public:
  Peeler(const Graph& graph, const Product& product, const Formula& f, const std::vector<Leaf>& leaves)
      : graph_(graph), product_(product), f_(f), leaves_(leaves) {
    for (size_t i = 0; i < f.nodes.size(); ++i) { // which nodes have the product behind them
      const Node& node = f.nodes[i];
      bool has = node.step == Step::product;
      for (int in : node.in) has = has || has_product_[size_t(in)];
      has_product_.push_back(has);
    }
  }

  Steps run() {
    steps_.d = type_of(f_.at(f_.root).type).value_or(Type::i32);
    if (!type_of(f_.at(f_.root).type)) fail("its type is " + f_.at(f_.root).type);
    int at = f_.root;
    while (steps_.why.empty()) {
      at = f_.behind_casts(at);
      if (f_.is(at, Step::from_integer)) at = f_.behind_casts(f_.at(at).in[0]);
      if (f_.is(at, Step::product)) break;
      at = step(at);
    }
    // They were found from the last to the first.
    std::reverse(steps_.epilogue.begin(), steps_.epilogue.end());
    std::reverse(steps_.operands.begin(), steps_.operands.end());
    return steps_;
  }

private:
  void fail(const std::string& why) {
    if (steps_.why.empty()) steps_.why = why;
  }

  int push(EpilogueOp op, int rest) {
    if (std::find(steps_.epilogue.begin(), steps_.epilogue.end(), op) != steps_.epilogue.end())
      fail("a second " + to_string(op));
    steps_.epilogue.push_back(op);
    return rest;
  }

  /// The one of two inputs that has the product, and the other one behind conversions; nothing when both or
  /// none have it.
  std::optional<std::pair<int, int>> sides(const Node& node) const {
    if (node.in.size() != 2) return {};
    const int x = node.in[0], y = node.in[1];
    if (has_product_[size_t(x)] == has_product_[size_t(y)]) return {};
    return has_product_[size_t(x)] ? std::pair(x, f_.behind_casts(y)) : std::pair(y, f_.behind_casts(x));
  }

  int step(int at) {
    const Node& node = f_.at(at);
    const auto pair = sides(node);
    if (pair && f_.is(pair->second, Step::operand)) {
      if (node.step == Step::add) return with_operand(pair->first, pair->second, true);
      if (node.step == Step::multiply) return with_operand(pair->first, pair->second, false);
    }
    if (const int rest = scaled(at); rest >= 0) return rest;
    if (const int rest = bounded(at); rest >= 0) return rest;
    for (int v = at - 1; v >= 0; --v)
      if (has_product_[size_t(v)])
        if (const auto op = activation_of(f_, at, v)) return push(*op, v);
    fail("no step of an epilogue is what it computes");
    return at;
  }

  int with_operand(int rest, int operand, bool adds) {
    const Leaf& leaf = leaves_[size_t(f_.at(operand).index)];
    const std::optional<StepShape> shape = shape_of(graph_, product_, leaf);
    if (!shape) {
      fail("an operand " + type_text(graph_.value(leaf.value)) +
           " is neither one value, a row, a column nor a matrix of D");
      return rest;
    }
    const EpilogueOp op = adds ? adding(*shape) : multiplying(*shape);
    if (adds && *shape == StepShape::value) fail("one value is added to all elements");
    const EpilogueStep& step = epilogue_steps[int(op)];
    Gemm g = product_.gemm;
    g.d = steps_.d;
    const Type wanted = step.scale ? g.scale_type() : g.epilogue_type();
    if (type_of(graph_.value(leaf.value).element) != wanted)
      fail("the operand of " + to_string(op) + " is of type " + graph_.value(leaf.value).element + ", not " +
           deepgen::to_string(wanted));
    if (*shape == StepShape::matrix) place_matrix(step.operand, leaf);
    steps_.operands.push_back({step.operand, leaf.value});
    return push(op, rest);
  }

  static EpilogueOp adding(StepShape shape) {
    return shape == StepShape::per_column ? EpilogueOp::bias
           : shape == StepShape::per_row  ? EpilogueOp::bias_row
                                          : EpilogueOp::residual;
  }

  EpilogueOp multiplying(StepShape shape) const {
    if (shape == StepShape::per_column) return EpilogueOp::scale_col;
    if (shape == StepShape::per_row) return EpilogueOp::scale_row;
    if (shape == StepShape::matrix) return EpilogueOp::multiply;
    const auto used = [&](EpilogueOp op) {
      return std::find(steps_.epilogue.begin(), steps_.epilogue.end(), op) != steps_.epilogue.end();
    };
    return !used(EpilogueOp::scale_d)   ? EpilogueOp::scale_d
           : !used(EpilogueOp::scale_b) ? EpilogueOp::scale_b
                                        : EpilogueOp::scale_a;
  }

  /// A residual lies as D does, or is one matrix for the whole batch.
  void place_matrix(const std::string& name, const Leaf& leaf) {
    std::vector<int64_t> shape = graph_.value(leaf.value).shape;
    const std::vector<int64_t> strides = dense_strides(shape);
    const auto stride = [&](const std::vector<int>& loops) -> int64_t {
      const auto at =
          loops.empty() ? leaf.loops.end() : std::find(leaf.loops.begin(), leaf.loops.end(), loops.back());
      return at == leaf.loops.end() ? 0 : strides[size_t(at - leaf.loops.begin())];
    };
    const Gemm& g = product_.gemm;
    int64_t ld = stride(product_.rows), batch = stride(product_.batch);
    if (ld == 0) ld = g.n;
    if (ld != g.n) steps_.numbers.emplace_back("ld_" + name, double(ld));
    if (g.batch > 1 && batch == 0) batch = -1;
    if (g.batch > 1 && batch != g.m * ld) steps_.numbers.emplace_back("stride_" + name, double(batch));
  }

  /// alpha, where nothing but the product is multiplied.
  int scaled(int at) {
    const Node& node = f_.at(at);
    const auto pair = sides(node);
    if (!pair || !f_.constant(pair->second)) return -1;
    int rest = f_.behind_casts(pair->first);
    if (f_.is(rest, Step::from_integer)) rest = f_.behind_casts(f_.at(rest).in[0]);
    if (!f_.is(rest, Step::product)) return -1;
    const double c = *f_.constant(pair->second);
    if (node.step == Step::multiply) {
      steps_.alpha *= c;
    } else if (node.step == Step::divide && pair->first == node.in[0]) {
      steps_.alpha /= c;
    } else {
      return -1;
    }
    return rest;
  }

  /// relu and clamp, or -1.
  int bounded(int at) {
    const Node& node = f_.at(at);
    if (node.step == Step::select) return rectified(node);
    const auto outer = sides(node);
    if (!outer || !f_.constant(outer->second)) return -1;
    const double bound = *f_.constant(outer->second);
    const Step other = node.step == Step::maximum ? Step::minimum : Step::maximum;
    if (node.step != Step::maximum && node.step != Step::minimum) return -1;
    const int inside = f_.behind_casts(outer->first);
    if (f_.is(inside, other)) {
      const auto inner = sides(f_.at(inside));
      const std::optional<double> second = inner ? f_.constant(inner->second) : std::nullopt;
      if (second) {
        const double low = other == Step::maximum ? *second : bound,
                     high = other == Step::maximum ? bound : *second;
        if (!(low <= high)) return -1;
        steps_.numbers.emplace_back("clamp_low", low), steps_.numbers.emplace_back("clamp_high", high);
        return push(EpilogueOp::clamp, inner->first);
      }
    }
    if (node.step == Step::maximum && bound == 0) return push(EpilogueOp::relu, outer->first);
    return -1;
  }

  /// x > 0, or x is NaN ? x : 0
  int rectified(const Node& node) {
    if (node.in.size() != 3 || !f_.is(node.in[0], Step::greater)) return -1;
    const Node& compare = f_.at(node.in[0]);
    const int x = f_.behind_casts(node.in[1]);
    if (f_.behind_casts(compare.in[0]) != x || f_.constant(compare.in[1]) != 0.0 ||
        f_.constant(node.in[2]) != 0.0)
      return -1;
    return push(EpilogueOp::relu, x);
  }

  const Graph& graph_;
  const Product& product_;
  const Formula& f_;
  const std::vector<Leaf>& leaves_;
  std::vector<bool> has_product_;
  Steps steps_;
};

} // namespace

std::optional<StepShape> shape_of(const Graph& graph, const Product& p, const Leaf& leaf) {
  const Value& v = graph.value(leaf.value);
  if (!v.tensor || v.shape.size() != leaf.loops.size()) return {};
  std::vector<int> loops;
  for (size_t i = 0; i < leaf.loops.size(); ++i) {
    if (v.shape[i] < 1 || leaf.loops[i] == kOddIndex) return {};
    if (leaf.loops[i] == kZeroIndex && v.shape[i] != 1) return {};
    if (leaf.loops[i] >= 0) loops.push_back(leaf.loops[i]);
  }
  if (loops.empty()) return StepShape::value;
  if (loops == p.columns) return StepShape::per_column;
  if (loops == p.rows) return StepShape::per_row;
  // A matrix: the columns last, rows and the batch before it in any order, or no batch.
  const auto has = [&](const std::vector<int>& part) {
    return std::search(loops.begin(), loops.end(), part.begin(), part.end()) != loops.end();
  };
  const std::vector<int>& last = p.columns.empty() ? p.rows : p.columns;
  if (last.empty() || !has(p.rows) || !has(p.columns) || loops.back() != last.back()) return {};
  const size_t size = p.rows.size() + p.columns.size();
  const bool whole = loops.size() == size || (loops.size() == size + p.batch.size() && has(p.batch));
  return whole ? std::optional(StepShape::matrix) : std::nullopt;
}

Steps steps_of(const Graph& graph, const Product& product, const Formula& formula,
               const std::vector<Leaf>& leaves) {
  return Peeler(graph, product, formula, leaves).run();
}

} // namespace deepgen::tensors
