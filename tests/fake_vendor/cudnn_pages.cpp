// Graphs whose keys and values lie in pages: which loads of them the library takes, and what it wants of the
// rest of a graph then, as cudnn-frontend says.
#include "cudnn_graph.h"

#include <algorithm>

namespace fake_cudnn {
namespace {

bool is_transposed(const Operation& load) { return load.out.strides[2] == 1; }

const Operation* load_of(const std::vector<Operation>& graph, const Tensor& t) {
  for (const Operation& o : graph)
    if (o.kind == Operation::pages && o.out.uid == t.uid) return &o;
  return nullptr;
}

bool counts(const std::optional<Tensor>& t, int64_t uid) { return t && t->uid == uid; }

/// Columns are hidden by these lengths.
bool is_masked(const std::vector<Operation>& graph, int64_t lengths) {
  return std::any_of(graph.begin(), graph.end(), [&](const Operation& o) {
    return o.kind == Operation::pointwise && o.mode == POINTWISE_CMP_LT && o.in[1].uid == lengths;
  });
}

} // namespace

int64_t key_of(const Operation& load, const Four& place) { return place[is_transposed(load) ? 3 : 2]; }

Four place_in_cache(const Operation& load, const Four& place, int64_t page) {
  return {page, place[1], key_of(load, place) % load.in[0].sizes[2], place[is_transposed(load) ? 2 : 3]};
}

std::vector<Operation> without_pages(const std::vector<Operation>& graph) {
  std::vector<Operation> rest;
  std::copy_if(graph.begin(), graph.end(), std::back_inserter(rest),
               [](const Operation& o) { return o.kind != Operation::pages; });
  return rest;
}

std::string fault_of_pages(const Operation& o) {
  const Four &cache = o.in[0].sizes, &lengths = o.in[1].sizes, &table = o.in[2].sizes, &out = o.out.sizes;
  const size_t keys = is_transposed(o) ? 3 : 2;
  if (cache[1] != out[1] || cache[3] != out[5 - keys] || o.in[0].type != o.out.type)
    return "pages of another operand";
  if (o.in[0].strides[3] != 1) return "pages whose rows are not dense";
  if (lengths != Four{out[0], 1, 1, 1} || o.in[1].type != DATA_INT32) return "lengths of other entries";
  if (table != Four{out[0], 1, (out[keys] + cache[2] - 1) / cache[2], 1} || o.in[2].type != DATA_INT32)
    return "a table of other pages";
  if (!o.out.is_virtual || o.in[0].is_virtual || o.in[1].is_virtual || o.in[2].is_virtual)
    return "pages that are no memory, or are loaded to memory";
  return "";
}

std::string fault_of_pages(const std::vector<Operation>& graph) {
  std::vector<const Operation*> products;
  for (const Operation& o : graph)
    if (o.kind == Operation::product) products.push_back(&o);
  const Operation *keys = load_of(graph, products[0]->in[1]), *values = load_of(graph, products[1]->in[1]);
  if (graph.size() == without_pages(graph).size()) return "";
  if (!keys || !values) return "keys or values alone in pages";
  if (!is_transposed(*keys) || is_transposed(*values))
    return "keys that are not transposed, or values that are";
  const int64_t lengths = keys->in[1].uid;
  if (values->in[1].uid != lengths || !counts(products[0]->counts[1], lengths) ||
      !counts(products[1]->counts[2], lengths))
    return "pages without lengths of both products' keys";
  if (!products[0]->counts[0] || !counts(products[1]->counts[0], products[0]->counts[0]->uid))
    return "pages without lengths of queries";
  if (!is_masked(graph, lengths) || !is_masked(graph, products[0]->counts[0]->uid))
    return "pages without a mask of what is behind an entry";
  return "";
}

} // namespace fake_cudnn
