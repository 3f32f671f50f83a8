#include "measure/cpu/attention_cases.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace deepgen {
namespace {

View view_of(const TokenLayout& layout) {
  View v = View::dense(std::max<int64_t>(1, layout.rows()), layout.columns(), 1);
  v.ld = layout.ld();
  return v;
}

View view_of(const BiasLayout& layout) {
  View v = View::dense(std::max<int64_t>(1, layout.rows()), std::max<int64_t>(1, layout.columns()), 1);
  v.ld = std::max<int64_t>(1, layout.ld());
  return v;
}

} // namespace

AttentionCases::Prepared::Prepared(const Attention& p, const AttentionCase& c, uint64_t seed)
    : what(c), truth(attention_truth(p, c.shape, Type::f32, most_attention_products, seed)),
      inputs(truth->inputs), q("Q", p.q, view_of(inputs.q_layout), c.guard, c.misaligned),
      key("K", p.kv, view_of(inputs.key_layout), c.guard, c.misaligned),
      value("V", p.kv, view_of(inputs.value_layout), c.guard, c.misaligned),
      bias("bias", p.bias.value_or(Type::f32), view_of(inputs.bias_layout), c.guard, c.misaligned),
      out("out", p.out, view_of(inputs.out_layout), c.guard, c.misaligned),
      lse("lse", Type::f32, View::dense(1, std::max<int64_t>(1, p.lse ? inputs.lse_count(p) : 1), 1), c.guard,
          false) {
  q.fill(inputs.q.data()), key.fill(inputs.key.data()), value.fill(inputs.value.data());
  if (c.shape.keys || p.paged()) {
    poison_unused(p.kv, inputs.key_layout, c.shape, p.kv_heads, p.head_dim, key.data());
    poison_unused(p.kv, inputs.value_layout, c.shape, p.kv_heads, p.value_dim, value.data());
  }
  const std::vector<char> stored = stored_bias(p, inputs.bias_layout, c.shape, inputs.bias);
  if (!stored.empty()) std::memcpy(bias.data(), stored.data(), stored.size());
  for (GuardedMatrix* read : {&q, &key, &value, &bias}) read->make_read_only();
  call.q = q.data(), call.key = key.data(), call.value = value.data(), call.out = out.data();
  if (p.lse) call.lse = reinterpret_cast<float*>(lse.data());
  if (p.sink) call.sink = inputs.sink.data();
  if (p.bias) call.bias = bias.data();
  if (!inputs.query_offsets.empty()) call.query_offsets = inputs.query_offsets.data();
  if (!inputs.key_offsets.empty()) call.key_offsets = inputs.key_offsets.data();
  if (!what.shape.keys_used.empty()) call.keys_used = what.shape.keys_used.data();
  if (p.paged()) call.page_table = inputs.pages.table.data();
  call.q_layout = &inputs.q_layout, call.key_layout = &inputs.key_layout;
  call.value_layout = &inputs.value_layout, call.out_layout = &inputs.out_layout;
  call.bias_layout = &inputs.bias_layout, call.shape = &what.shape;
}

AttentionCases::AttentionCases(const Attention& p, uint64_t seed) : problem_(p) {
  for (const AttentionCase& c : cases_for(p)) cases_.push_back(std::make_unique<Prepared>(p, c, seed));
}

Verdict AttentionCases::run(Prepared& x, const LoadedKernel& kernel, GuardedWorkspace& workspace) const {
  workspace.poison();
  AttentionCall call = x.call;
  call.workspace = workspace.data();
  x.out.poison(), x.lse.poison();
  const SlotValues values = values_of(problem_, call);
  for (const TileRanges& range : cut_ranges(kernel.full_range(values), x.what.cut))
    kernel.call(values, range);
  for (const GuardedMatrix* written : {&x.out, &x.lse})
    if (std::string damage = written->damage(); !damage.empty())
      return {"out_of_bounds", std::string(written == &x.out ? "out: " : "lse: ") + damage, 0};
  if (std::string damage = workspace.damage(); !damage.empty())
    return {"out_of_bounds", "workspace: " + damage, 0};
  const auto row = [&](int64_t r) { return x.out.row(0, r); };
  if (Verdict verdict = x.truth->check.check_finite(row); verdict.status != "ok") return verdict;
  return x.truth->check.compare(row, x.lse.data());
}

Verdict AttentionCases::verify(const LoadedKernel& kernel, int64_t workspace_bytes,
                               const std::function<void(const std::string&)>& before) {
  GuardedWorkspace workspace(workspace_bytes);
  const auto name_of = [](const auto& prepared) { return prepared->what.name; };
  return verify_in_turn(problem_, cases_, name_of, [&](const auto& prepared) {
    before(prepared->what.name);
    return run(*prepared, kernel, workspace);
  });
}

} // namespace deepgen
