#include "arms.h"

#include "../../measure/values/clones.h"

#include <cstdio>
#include <dnnl.hpp>
#include <unordered_map>

namespace {

volatile uint64_t sink; ///< so that what is read is not left out

/// The sum of all words, a few lines at a time; `bytes` is a multiple of that.
DEEPGEN_CLONES uint64_t sum_of(const char* data, size_t bytes) {
  constexpr size_t kWords = 32;
  uint64_t sums[kWords] = {}, words[kWords], total = 0;
  for (size_t at = 0; at < bytes; at += sizeof words) {
    std::memcpy(words, data + at, sizeof words);
    for (size_t j = 0; j < kWords; ++j) sums[j] += words[j];
  }
  for (uint64_t x : sums) total += x;
  return total;
}

dnnl::primitive primitive_of(const RowsProblem& row, const dnnl::memory::desc& matrix,
                             const dnnl::engine& cpu) {
  using namespace dnnl;
  if (!std::strcmp(row.kind, "softmax"))
    return softmax_v2_forward(softmax_v2_forward::primitive_desc(
        {prop_kind::forward_inference, algorithm::softmax_accurate, matrix, matrix, 1}, cpu));
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  return layer_normalization_forward(
      layer_normalization_forward::primitive_desc({prop_kind::forward_inference, matrix, 1e-5f, flags}, cpu));
}

} // namespace

Arm reading_arm(const RowsOperands& o) {
  return {"reading", false, [&] { sink = sum_of(o.x.data(), o.x.size()) + sum_of(o.d.data(), o.d.size()); }};
}

Arm copying_arm(RowsOperands& o) {
  return {"copying", false, [&] { std::memcpy(o.d.data(), o.x.data(), o.x.size()); }};
}

std::vector<Arm> onednn_arms(const RowsProblem& row, RowsOperands& o) {
  using namespace dnnl;
  if (!std::strcmp(row.kind, "rms_norm")) return {}; // oneDNN has none
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const auto type = row.element() == 4 ? memory::data_type::f32 : memory::data_type::bf16;
  const memory::desc matrix({row.m, row.n}, type, memory::format_tag::ab);
  const memory::desc vector({row.n}, memory::data_type::f32, memory::format_tag::a);
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(matrix, cpu, o.x.data())},
                                               {DNNL_ARG_DST, memory(matrix, cpu, o.d.data())}};
  if (!std::strcmp(row.kind, "layer_norm")) {
    arguments.insert({DNNL_ARG_SCALE, memory(vector, cpu, o.wide_scale.data())});
    arguments.insert({DNNL_ARG_SHIFT, memory(vector, cpu, o.wide_bias.data())});
  }
  try {
    primitive p = primitive_of(row, matrix, cpu);
    return {{"oneDNN", true, [=]() mutable {
               p.execute(queue, arguments);
               queue.wait();
             }}};
  } catch (const dnnl::error& e) {
    std::fprintf(stderr, "%s: oneDNN does not serve it: %s\n", row.name, e.what());
    return {};
  }
}
