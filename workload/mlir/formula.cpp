#include "workload/mlir/formula.h"

#include <algorithm>
#include <cmath>

namespace deepgen::tensors {
namespace {

constexpr double kHalfRoot = 0.70710678118654752, kTanhScale = 0.79788456080286536; // 1/sqrt 2, sqrt(2/pi)

double exact(EpilogueOp op, double x) {
  switch (op) {
  case EpilogueOp::gelu:
    return x / 2 * (1 + std::erf(x * kHalfRoot));
  case EpilogueOp::gelu_tanh:
    return x / 2 * (1 + std::tanh(kTanhScale * (x + 0.044715 * x * x * x)));
  case EpilogueOp::silu:
    return x / (1 + std::exp(-x));
  default:
    return 1 / (1 + std::exp(-x));
  }
}

/// False for an operation that is not smooth, or not known.
bool apply(const Node& node, double x, double y, double& result) {
  switch (node.step) {
  case Step::add:
    return result = x + y, true;
  case Step::subtract:
    return result = x - y, true;
  case Step::multiply:
    return result = x * y, true;
  case Step::divide:
    return result = x / y, true;
  case Step::negate:
    return result = -x, true;
  case Step::exp:
    return result = std::exp(x), true;
  case Step::exp2:
    return result = std::exp2(x), true;
  case Step::tanh:
    return result = std::tanh(x), true;
  case Step::erf:
    return result = std::erf(x), true;
  case Step::power:
    return result = std::pow(x, y), true;
  case Step::square_root:
    return result = std::sqrt(x), true;
  case Step::reciprocal_root:
    return result = 1 / std::sqrt(x), true;
  case Step::constant:
    return result = node.number, true;
  case Step::widen:
  case Step::round:
    return result = x, true;
  default:
    return false;
  }
}

/// The nodes from `variable` (not among them) to `root`, in order; empty when the root depends on something
/// else, or is more than an activation can be.
std::vector<int> nodes_between(const Formula& f, int variable, int root) {
  constexpr size_t most = 40;
  std::vector<int> nodes, left{root};
  while (!left.empty()) {
    const int at = left.back();
    left.pop_back();
    if (at == variable || std::find(nodes.begin(), nodes.end(), at) != nodes.end()) continue;
    const Node& node = f.at(at);
    if (node.step == Step::product || node.step == Step::operand || node.step == Step::argument ||
        node.step == Step::other || nodes.size() == most)
      return {};
    nodes.push_back(at);
    left.insert(left.end(), node.in.begin(), node.in.end());
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

/// The largest difference from `op`, in parts of max(1, |x|); nothing where a value cannot be had.
std::optional<double> difference(const Formula& f, int variable, const std::vector<int>& nodes,
                                 EpilogueOp op) {
  std::vector<double> values(size_t(nodes.back()) + 1);
  double worst = 0;
  for (int i = -128; i <= 128; ++i) {
    const double x = i / 16.0 + (i % 7) / 97.0; // -8 to 8, in no even steps
    values[size_t(variable)] = x;
    for (int at : nodes) {
      const std::vector<int>& in = f.at(at).in;
      if (!apply(f.at(at), in.empty() ? 0 : values[size_t(in[0])], in.size() < 2 ? 0 : values[size_t(in[1])],
                 values[size_t(at)]))
        return {};
    }
    const double y = values[size_t(nodes.back())];
    if (!std::isfinite(y)) return {};
    worst = std::max(worst, std::abs(y - exact(op, x)) / std::max(1.0, std::abs(x)));
  }
  return worst;
}

} // namespace

int Formula::add(Node node) {
  nodes.push_back(std::move(node));
  return int(nodes.size()) - 1;
}

bool Formula::uses_argument(int index) const {
  const auto is_it = [&](int node) { return is(node, Step::argument) && at(node).index == index; };
  return is_it(root) || std::any_of(nodes.begin(), nodes.end(), [&](const Node& n) {
           return std::any_of(n.in.begin(), n.in.end(), is_it);
         });
}

int Formula::behind_casts(int node) const {
  while (is(node, Step::widen) || is(node, Step::round)) node = at(node).in[0];
  return node;
}

std::optional<double> Formula::constant(int node) const {
  node = behind_casts(node);
  if (is(node, Step::constant)) return at(node).number;
  return {};
}

std::optional<EpilogueOp> activation_of(const Formula& f, int root, int variable) {
  if (root <= variable) return {};
  const std::vector<int> nodes = nodes_between(f, variable, root);
  if (nodes.empty()) return {};
  // Constants are rounded to the type that the steps are in. gelu and gelu_tanh differ by 5e-4.
  double most = 2e-6;
  for (int at : nodes)
    if (f.at(at).type == "bf16" || f.at(at).type == "f16") most = 2e-3;
  std::optional<EpilogueOp> best;
  double least = 1, second = 1;
  for (EpilogueOp op : {EpilogueOp::gelu, EpilogueOp::gelu_tanh, EpilogueOp::silu, EpilogueOp::sigmoid}) {
    const std::optional<double> d = difference(f, variable, nodes, op);
    if (!d) return {};
    second = std::min(second, std::max(*d, least));
    if (*d < least) best = op, least = *d;
  }
  return best && least <= most && second > 2 * least ? best : std::nullopt;
}

} // namespace deepgen::tensors
