// Graphs of 8-bit floats: the operations beside both products, in the order of cudnn-frontend, which the
// library's engines look for.
#include "cudnn_graph.h"

#include <algorithm>

namespace fake_cudnn {
namespace {

bool is_number(const Tensor& t) {
  return !t.is_virtual && !t.by_value && t.type == DATA_FLOAT && t.count() == 1;
}

/// Multiplies what the operation before made by a number in device memory.
bool scales(const Operation& o, const Operation& before) {
  return o.kind == Operation::pointwise && o.mode == POINTWISE_MUL && o.in[0].uid == before.out.uid &&
         is_number(o.in[1]);
}

bool is_maximum(const Operation& o, int64_t of) {
  return o.kind == Operation::reduction && o.mode == REDUCE_AMAX && o.in[0].uid == of && is_number(o.out);
}

} // namespace

bool is_narrow(const std::vector<Operation>& graph) { return graph.front().in[0].type == DATA_FP8_E4M3; }

const Operation& last_of(const std::vector<Operation>& graph) {
  return is_narrow(graph) ? graph[graph.size() - 2] : graph.back();
}

std::string fault_of_narrow(const std::vector<Operation>& graph) {
  const auto second = size_t(std::find_if(graph.begin() + 1, graph.end(),
                                          [](const Operation& o) { return o.kind == Operation::product; }) -
                             graph.begin());
  if (second < 6 || graph.size() != second + 5) return "another number of operations beside the products";
  if (graph[1].mode != POINTWISE_MUL || !graph[1].in[1].by_value) return "scores without a scale";
  if (!scales(graph[2], graph[1]) || !scales(graph[3], graph[2])) return "no scales of Q and K";
  const Operation& narrowed = graph[second - 1];
  if (!is_maximum(graph[second - 2], narrowed.in[0].uid)) return "no maximum of the weights";
  if (!scales(narrowed, graph[second - 3])) return "no scale of the weights";
  if (narrowed.out.type != DATA_FP8_E4M3 || graph[second].in[0].uid != narrowed.out.uid)
    return "weights that are no 8-bit floats";
  for (size_t i = second + 1; i <= second + 3; ++i)
    if (!scales(graph[i], graph[i - 1])) return "no scales of the weights, V and out";
  if (!is_maximum(graph.back(), graph[second + 2].out.uid)) return "no maximum of out";
  for (const Operation& o : graph) // what is between operations, but for the weights
    if (o.out.is_virtual && o.out.type == DATA_FP8_E4M3 && &o != &narrowed) return "8-bit floats in between";
  return "";
}

} // namespace fake_cudnn
