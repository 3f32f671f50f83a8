// Keys and values of cuDNN's graph of attention, and what it has more where they lie in pages. As
// cudnn-frontend writes it: an operation loads pages by a table, and numbers in device memory say how long
// entries are. The cache and the table are the call's own, by their strides: nothing is moved.
#include "measure/vendor/gpu/cudnn_attention.h"

#include <utility>
#include <vector>

namespace deepgen::cuda {

/// Of the entries of the call that is timed, which are all as long.
CudnnAttention::Tensor CudnnAttention::lengths(int64_t of_each) {
  const std::vector<int32_t> all(size_t(p_.at_batch), int32_t(of_each));
  const Tensor t = tensor(CudnnType::i32, {p_.at_batch, 1, 1, 1}, {1, 1, 1, 1}, false, false);
  numbers_.push_back({int64_t(t.index) + 1, Memory(all.size() * sizeof(int32_t))});
  const Memory& memory = numbers_.back().memory;
  check(driver()->cuMemcpyHtoD(memory.address(), all.data(), memory.bytes()), "copying to the device");
  return t;
}

CudnnAttention::Tensor CudnnAttention::key_operand(const SlotValues& call) {
  const Sizes4 sizes = {p_.at_batch, p_.kv_heads, p_.head_dim, p_.at_keys};
  if (p_.paged()) {
    const int64_t row = p_.head_dim, head = row * p_.at_keys;
    const Tensor loaded =
        tensor(type_of(p_.kv), sizes, {head * p_.kv_heads, head, 1, row}, true, false); // transposed
    return from_pages(DEEPGEN_ARG_KEY, DEEPGEN_ARG_KEY_TOKEN, loaded, p_.head_dim, call);
  }
  Sizes4 strides = strides_of(call, DEEPGEN_ARG_KEY_TOKEN);
  std::swap(strides[2], strides[3]);
  return operand(DEEPGEN_ARG_KEY, type_of(p_.kv), sizes, strides);
}

CudnnAttention::Tensor CudnnAttention::value_operand(const SlotValues& call) {
  const Sizes4 sizes = {p_.at_batch, p_.kv_heads, p_.at_keys, p_.value_dim};
  if (p_.paged())
    return from_pages(DEEPGEN_ARG_VALUE, DEEPGEN_ARG_VALUE_TOKEN, between(type_of(p_.kv), sizes),
                      p_.value_dim, call);
  return operand(DEEPGEN_ARG_VALUE, type_of(p_.kv), sizes, strides_of(call, DEEPGEN_ARG_VALUE_TOKEN));
}

/// Of keys and of values each with a table of its own, which are the same memory.
CudnnAttention::Tensor CudnnAttention::from_pages(deepgen_arg slot, deepgen_arg token, const Tensor& loaded,
                                                  int64_t columns, const SlotValues& call) {
  const int64_t pages = AttentionPages(p_, tuned_shape(p_), 0).count, // whatever their order is
      of_entry = (p_.at_keys + p_.page_size - 1) / p_.page_size,
                ids = int64_t(call[DEEPGEN_ARG_PAGE_TABLE_STRIDE]);
  const Tensor container = operand(slot, type_of(p_.kv), {pages, p_.kv_heads, p_.page_size, columns},
                                   strides_of(call, token)),
               table = operand(DEEPGEN_ARG_PAGE_TABLE, CudnnType::i32, {p_.at_batch, 1, of_entry, 1},
                               {ids, ids, 1, 1});
  CudnnDescriptor& operation = operations_.emplace_back(library_, CudnnKind::pages_operation);
  operation.set(CudnnAttribute::pages_container, descriptor(container));
  operation.set(CudnnAttribute::pages_table, descriptor(table));
  operation.set(CudnnAttribute::pages_lengths, descriptor(lengths_->keys));
  operation.set(CudnnAttribute::pages_y, descriptor(loaded));
  operation.finalize();
  return loaded;
}

/// What is behind an entry's last query and key is hidden.
CudnnAttention::Tensor CudnnAttention::padded(const Tensor& scores) {
  if (!lengths_) return scores;
  const Tensor row = index(scores, 2), column = index(scores, 3);
  const Tensor in_rows = compared(CudnnPointwise::less, row, lengths_->queries, scores.sizes),
               in_columns = compared(CudnnPointwise::less, column, lengths_->keys, scores.sizes);
  return select(scores, compared(CudnnPointwise::both, in_rows, in_columns, scores.sizes));
}

} // namespace deepgen::cuda
