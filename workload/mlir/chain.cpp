#include "workload/mlir/chain.h"

#include "base/text/error.h"
#include "workload/mlir/steps.h"

#include <algorithm>
#include <map>

namespace deepgen::tensors {
namespace {

/// How a value lies over the loops of the product, and which node of the formula it is.
struct Inside {
  Map loops;
  int node = -1;
};

/// Operations behind a product that compute an element of its output from the same element, as one formula.
class Region {
public:
  Region(const Graph& graph, const Product& product) : graph_(graph), product_(product) {
    const Operation& o = graph.operation(product.operation);
    Node leaf{Step::product, graph.value(o.result).element, {}, 0, 0, ""};
    inside_[o.result] = {product.d_map, formula_.add(leaf)};
    operations_.push_back(product.operation);
  }

  /// Whether the operation has gone in.
  bool join(int operation) {
    const Operation& o = graph_.operation(operation);
    if (!o.elementwise() || o.body.root < 0 || o.block != graph_.operation(product_.operation).block)
      return false;
    if (formula_.nodes.size() + o.body.nodes.size() + o.operands.size() > Formula::most_nodes) return false;
    const std::optional<std::vector<int>> loops = loops_of(o);
    if (!loops) return false;
    std::vector<int> arguments;
    for (size_t i = 0; i < o.operands.size(); ++i) {
      const int node = argument(o, i, *loops);
      if (node < 0) return false;
      arguments.push_back(node);
    }
    Inside result{{}, substitute(o.body, arguments)};
    for (int loop : o.maps.back()) result.loops.push_back((*loops)[size_t(loop)]);
    inside_[o.result] = std::move(result);
    operations_.push_back(operation);
    return true;
  }

  /// The operations that the result of `last` needs; empty when another operation needs one of theirs.
  std::vector<int> closed(int last) const {
    std::set<int> needed;
    std::vector<int> left{last};
    while (!left.empty()) {
      const int at = left.back();
      left.pop_back();
      if (!needed.insert(at).second || at == product_.operation) continue;
      for (int v : graph_.operation(at).operands)
        if (inside_.count(v)) left.push_back(graph_.value(v).producer);
    }
    for (int at : needed) {
      if (at == last) continue;
      const Value& v = graph_.value(graph_.operation(at).result);
      const bool leaks = std::any_of(v.users.begin(), v.users.end(), [&](int u) { return !needed.count(u); });
      if (leaks || v.other_uses) return {};
    }
    return needed.count(product_.operation) ? std::vector<int>(needed.begin(), needed.end())
                                            : std::vector<int>();
  }

  Steps steps(int last) const {
    Formula f = formula_;
    f.root = inside_.at(graph_.operation(last).result).node;
    return steps_of(graph_, product_, f, leaves_);
  }

  const std::vector<int>& operations() const { return operations_; }
  const Map& loops(int last) const { return inside_.at(graph_.operation(last).result).loops; }

private:
  /// For each loop of the operation that of the product; nothing when they are not the same loops.
  std::optional<std::vector<int>> loops_of(const Operation& o) const {
    std::vector<int> loops(o.extents.size(), kOddIndex);
    bool found = false;
    for (size_t i = 0; i < o.operands.size(); ++i) {
      const auto known = inside_.find(o.operands[i]);
      if (known == inside_.end() || int(i) >= o.inputs) continue;
      found = true;
      const Map& map = o.maps[i];
      if (map.size() != o.extents.size()) return {};
      for (size_t d = 0; d < map.size(); ++d) {
        if (map[d] < 0) return {};
        int& loop = loops[size_t(map[d])];
        if (loop != kOddIndex && loop != known->second.loops[d]) return {};
        loop = known->second.loops[d];
      }
    }
    const Map& out = o.maps.back();
    if (!found || out.size() != o.extents.size() ||
        std::set<int>(out.begin(), out.end()).size() != out.size())
      return {};
    const bool all = std::find(loops.begin(), loops.end(), kOddIndex) == loops.end() &&
                     *std::min_element(out.begin(), out.end()) >= 0;
    return all ? std::optional(loops) : std::nullopt;
  }

  /// The node that stands for an operand's element; -1 when none can.
  int argument(const Operation& o, size_t operand, const std::vector<int>& loops) {
    const int value = o.operands[operand];
    const Value& v = graph_.value(value);
    if (!o.body.uses_argument(int(operand)))
      return formula_.add({Step::other, v.element, {}, 0, 0, "unused"});
    if (const auto known = inside_.find(value); known != inside_.end() && int(operand) < o.inputs)
      return known->second.node;
    Map map;
    for (int loop : o.maps[operand]) map.push_back(loop >= 0 ? loops[size_t(loop)] : loop);
    const Seen seen = look_through(graph_, value, std::move(map));
    const std::string& element = graph_.value(seen.value).element;
    if (seen.constant) return formula_.add({Step::constant, element, {}, 0, *seen.constant, ""});
    if (seen.undefined || inside_.count(seen.value)) return -1;
    leaves_.push_back({seen.value, seen.loops});
    return formula_.add({Step::operand, element, {}, int(leaves_.size()) - 1, 0, ""});
  }

  int substitute(const Formula& body, const std::vector<int>& arguments) {
    std::vector<int> at;
    for (const Node& node : body.nodes) {
      if (node.step == Step::argument) {
        at.push_back(arguments[size_t(node.index)]);
        continue;
      }
      Node copy = node;
      for (int& in : copy.in) in = at[size_t(in)];
      at.push_back(formula_.add(std::move(copy)));
    }
    return at[size_t(body.root)];
  }

  const Graph& graph_;
  const Product& product_;
  Formula formula_;
  std::map<int, Inside> inside_; ///< by Value
  std::vector<Leaf> leaves_;
  std::vector<int> operations_;
};

/// What D begins with: nothing, a bias, or C.
struct Start {
  std::optional<EpilogueOp> bias;
  int value = -1; ///< of the bias, or C; -1: zeros
};

std::variant<Start, Refused> start_of(const Graph& graph, const Product& p) {
  const Operation& o = graph.operation(p.operation);
  const Seen seen = look_through(graph, o.operands[2], p.d_map);
  if (seen.constant == 0.0) return Start{};
  if (seen.undefined)
    return Refused{"it adds to a tensor.empty, whose values are undefined",
                   "fill the output with zeros first: linalg.fill"};
  const std::optional<StepShape> shape = shape_of(graph, p, {seen.value, seen.loops});
  if (shape == StepShape::per_column && seen.value != o.operands[2])
    return Start{EpilogueOp::bias, seen.value};
  if (shape == StepShape::per_row && seen.value != o.operands[2])
    return Start{EpilogueOp::bias_row, seen.value};
  return Start{{}, o.operands[2]};
}

void add_place(ChainNumbers& numbers, const std::string& name, const Placed& place) {
  if (place.ld) numbers.emplace_back("ld" + name, double(place.ld));
  if (place.stride) numbers.emplace_back("stride_" + name, double(place.stride));
}

/// The chain that ends at `last`; a text says why there is none.
std::variant<Chain, std::string> assemble(const Graph& graph, const Product& p, const Region& region,
                                          const Start& start, int last) {
  Chain chain;
  chain.operations = region.closed(last);
  if (chain.operations.empty()) return std::string("others use what lies between");
  if (region.loops(last) != p.d_map) return std::string("it transposes the product");
  Steps steps = region.steps(last);
  if (!steps.why.empty()) return steps.why;
  chain.product = p.operation, chain.last = last, chain.gemm = p.gemm;
  chain.gemm.d = steps.d, chain.gemm.epilogue = steps.epilogue;
  const Type start_type =
      start.value >= 0 ? type_of(graph.value(start.value).element).value_or(Type::i32) : steps.d;
  chain.operands = {{"a", p.a}, {"b", p.b}};
  if (start.bias) {
    const auto& e = chain.gemm.epilogue;
    if (steps.alpha != 1) return std::string("its bias is scaled, too");
    if (std::find(e.begin(), e.end(), *start.bias) != e.end()) return std::string("a second bias");
    chain.gemm.epilogue.insert(chain.gemm.epilogue.begin(), *start.bias);
    chain.operands.push_back({epilogue_steps[int(*start.bias)].operand, start.value});
  } else if (start.value >= 0) {
    chain.operands.push_back({"c", start.value});
    chain.numbers.emplace_back("beta", steps.alpha);
    add_place(chain.numbers, "c", p.place_d); // as it is of D's shape
  }
  complete(chain.gemm);
  if (start.value >= 0 && start_type != (start.bias ? chain.gemm.epilogue_type() : steps.d))
    return std::string("what it adds to is of another type than D");
  try {
    validate(chain.gemm);
  } catch (const Error& e) {
    return first_line(e.what());
  }
  if (steps.alpha != 1) chain.numbers.emplace_back("alpha", steps.alpha);
  add_place(chain.numbers, "a", p.place_a), add_place(chain.numbers, "b", p.place_b);
  add_place(chain.numbers, "d", p.place_d);
  chain.operands.insert(chain.operands.end(), steps.operands.begin(), steps.operands.end());
  chain.operands.push_back({"d", graph.operation(last).result});
  chain.numbers.insert(chain.numbers.end(), steps.numbers.begin(), steps.numbers.end());
  std::sort(chain.numbers.begin(), chain.numbers.end());
  return chain;
}

} // namespace

std::variant<Chain, Refused> chain_of(const Graph& graph, const Product& p, const std::set<int>& taken) {
  constexpr size_t most_operations = 32;
  const std::variant<Start, Refused> start = start_of(graph, p);
  if (const Refused* r = std::get_if<Refused>(&start)) return *r;
  Region region(graph, p);
  std::optional<Chain> best;
  std::string why;
  const auto consider = [&](int last) {
    auto chain = assemble(graph, p, region, std::get<Start>(start), last);
    if (Chain* good = std::get_if<Chain>(&chain)) {
      best = std::move(*good), why = "";
    } else if (why.empty()) {
      why = graph.operation(last).name + " on line " + std::to_string(graph.operation(last).line) + ": " +
            std::get<std::string>(chain);
    }
  };
  consider(p.operation);
  // Operations stand in the order of the text: a user comes behind what it uses.
  std::set<int> next;
  const auto add_users = [&](int operation) {
    const Value& v = graph.value(graph.operation(operation).result);
    next.insert(v.users.begin(), v.users.end());
  };
  add_users(p.operation);
  while (!next.empty() && region.operations().size() < most_operations) {
    const int at = *next.begin();
    next.erase(next.begin());
    if (taken.count(at) || !region.join(at)) continue;
    consider(at);
    add_users(at);
  }
  if (!best)
    return Refused{"no call of DeepGen's computes it: " + why, "see docs/mlir.md for what is served"};
  best->ends = why;
  return *best;
}

} // namespace deepgen::tensors
