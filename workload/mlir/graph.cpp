#include "workload/mlir/graph.h"

#include <algorithm>

namespace deepgen::tensors {

int64_t Value::size() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

bool Operation::elementwise() const {
  return result >= 0 && !memrefs && int(operands.size()) == inputs + 1 &&
         std::none_of(reduction.begin(), reduction.end(), [](bool r) { return r; });
}

std::string place(const std::string& file, const Operation& o) {
  return file + ":" + std::to_string(o.line) + ":" + std::to_string(o.column);
}

std::string type_text(const Value& v) {
  if (!v.tensor) return v.element;
  std::string text = "tensor<";
  for (int64_t s : v.shape) text += (s < 0 ? "?" : std::to_string(s)) + "x";
  return text + v.element + ">";
}

Seen look_through(const Graph& graph, int value, Map map) {
  Seen seen{value, std::move(map), {}, false};
  for (int depth = 0; depth < 16; ++depth) {
    const Value& v = graph.value(seen.value);
    seen.constant = v.constant, seen.undefined = v.undefined;
    if (v.producer < 0) return seen;
    const Operation& o = graph.operation(v.producer);
    if (!o.elementwise() || o.inputs > 1 || o.body.root < 0) return seen;
    const Node& root = o.body.at(o.body.root);
    if (root.step == Step::constant) { // a fill whose value stands in the body
      seen.constant = root.number;
      return seen;
    }
    if (o.inputs != 1 || root.step != Step::argument || root.index != 0) return seen;
    // Its loops, as whoever looks at its result sees them.
    std::vector<int> loops(o.extents.size(), kOddIndex);
    const Map& out = o.maps[1];
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] >= 0) loops[size_t(out[i])] = seen.loops[i];
    Map in;
    for (int loop : o.maps[0]) in.push_back(loop >= 0 ? loops[size_t(loop)] : loop);
    if (std::find(in.begin(), in.end(), kOddIndex) != in.end()) return seen;
    seen.value = o.operands[0], seen.loops = std::move(in);
  }
  return seen;
}

} // namespace deepgen::tensors
