// boosted_trees(): small, exact and deterministic. A search has hundreds of trials, so every split is tried.
#include "generator/search/regression.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace deepgen {
namespace {

constexpr int kTrees = 60, kDepth = 4;
constexpr double kRate = 0.15;
constexpr double kShrink = 1;   ///< added to a leaf's count: a leaf of one trial is believed by half
constexpr double kLeast = 1e-9; ///< gain of a split

/// A full tree: node i has the children 2i+1 and 2i+2. A node without a split has column -1.
struct Tree {
  static constexpr size_t kNodes = (size_t(1) << (kDepth + 1)) - 1;
  struct Node {
    int column = -1;
    float threshold = 0; ///< below it: left
    double value = 0;
  };
  std::array<Node, kNodes> nodes;

  size_t leaf(const float* row) const {
    size_t i = 0;
    while (nodes[i].column >= 0) i = 2 * i + (row[nodes[i].column] < nodes[i].threshold ? 1 : 2);
    return i;
  }
};

struct Sum {
  double residual = 0, count = 0;
  void add(double r) { residual += r, count += 1; }
  double score() const { return residual * residual / (count + kShrink); }
};

class Boosting {
public:
  Boosting(const Table& known, const std::vector<float>& labels)
      : known_(known), order_(known.columns()), node_of_(known.rows()),
        base_(std::accumulate(labels.begin(), labels.end(), 0.0) / double(labels.size())) {
    for (size_t c = 0; c < order_.size(); ++c) {
      order_[c].resize(known.rows());
      std::iota(order_[c].begin(), order_[c].end(), size_t(0));
      std::stable_sort(order_[c].begin(), order_[c].end(),
                       [&](size_t x, size_t y) { return known.row(x)[c] < known.row(y)[c]; });
    }
    for (float label : labels) residuals_.push_back(double(label) - base_);
    for (int i = 0; i < kTrees; ++i) trees_.push_back(grow());
  }

  double predict(const float* row) const {
    double sum = base_;
    for (const Tree& tree : trees_) sum += tree.nodes[tree.leaf(row)].value;
    return sum;
  }

private:
  struct Split {
    double gain = kLeast;
    int column = -1;
    float threshold = 0;
  };

  Tree grow() {
    Tree tree;
    std::fill(node_of_.begin(), node_of_.end(), size_t(0));
    for (int depth = 0; depth < kDepth; ++depth) {
      const std::vector<Split> splits = best_splits((size_t(1) << depth) - 1, size_t(1) << depth);
      for (size_t i = 0; i < splits.size(); ++i) {
        auto& node = tree.nodes[(size_t(1) << depth) - 1 + i];
        node.column = splits[i].column, node.threshold = splits[i].threshold;
      }
      for (size_t r = 0; r < known_.rows(); ++r) node_of_[r] = tree.leaf(known_.row(r));
    }
    std::array<Sum, Tree::kNodes> sums;
    for (size_t r = 0; r < known_.rows(); ++r) sums[node_of_[r]].add(residuals_[r]);
    for (size_t i = 0; i < Tree::kNodes; ++i)
      tree.nodes[i].value = kRate * sums[i].residual / (sums[i].count + kShrink);
    for (size_t r = 0; r < known_.rows(); ++r) residuals_[r] -= tree.nodes[node_of_[r]].value;
    return tree;
  }

  /// Of the nodes first, first + 1, ...: one pass over the rows in each column's order.
  std::vector<Split> best_splits(size_t first, size_t count) const {
    std::vector<Sum> total(count);
    auto place = [&](size_t r) { return node_of_[r] - first; }; // huge when the row ended in a leaf above
    for (size_t r = 0; r < known_.rows(); ++r)
      if (place(r) < count) total[place(r)].add(residuals_[r]);
    std::vector<Split> best(count);
    for (size_t c = 0; c < order_.size(); ++c) {
      std::vector<Sum> left(count);
      std::vector<float> last(count);
      for (size_t r : order_[c]) {
        const size_t node = place(r);
        if (node >= count) continue;
        const float value = known_.row(r)[c];
        if (left[node].count > 0 && value > last[node])
          consider(best[node], left[node], total[node], int(c), last[node], value);
        left[node].add(residuals_[r]);
        last[node] = value;
      }
    }
    return best;
  }

  static void consider(Split& best, const Sum& left, const Sum& total, int column, float below, float above) {
    const Sum right{total.residual - left.residual, total.count - left.count};
    const double gain = left.score() + right.score() - total.score();
    if (gain <= best.gain) return;
    const float middle = below + (above - below) / 2;
    best = {gain, column, middle > below ? middle : above};
  }

  const Table& known_;
  std::vector<std::vector<size_t>> order_; ///< rows by each column's value
  std::vector<size_t> node_of_;
  const double base_;
  std::vector<double> residuals_;
  std::vector<Tree> trees_;
};

} // namespace

std::vector<double> boosted_trees(const Table& known, const std::vector<float>& labels, const Table& asked) {
  const Boosting model(known, labels);
  std::vector<double> expected;
  for (size_t r = 0; r < asked.rows(); ++r) expected.push_back(model.predict(asked.row(r)));
  return expected;
}

} // namespace deepgen
