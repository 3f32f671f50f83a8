// cuDNN's attention of keys and values in pages as a baseline, by a strict fake that loads pages by the
// table: the call's own cache and table, and that a wrong one, or a wrong length, is found.
#include "tests/unit/measure/vendor/cudnn_fixture.h"

#include "cudnn_graph.h"
#include "measure/values/attention/attention_truth.h"

#include <algorithm>

namespace deepgen::cuda::cudnn_pages_test {
namespace {

using enum Type;
using fake_cudnn::Operation, fake_cudnn::state;

constexpr int kModeA = 3;
constexpr int kE4m3 = 12, kBf16 = 9; ///< cudnnDataType_t
constexpr AttentionMask kMasks[] = {AttentionMask::none, AttentionMask::causal,
                                    AttentionMask::causal_top_left, AttentionMask::window};

Attention paged(int64_t page, Type type = bf16, AttentionMask mask = AttentionMask::none) {
  Attention p = cudnn_problem(type, mask);
  p.page_size = page;
  if (type == e4m3) p.out = bf16;
  return p;
}

void expect_served(const Attention& p) {
  const Vendor v = Cudnn::asked(p);
  EXPECT_EQ(v.why_not, "") << p.key();
  EXPECT_EQ(v.left_out, std::vector<std::string>()) << p.key();
  EXPECT_EQ(v.algorithms.size(), 2u) << p.key();
  const std::vector<Operation>& graph = fake_cudnn::last_graph();
  EXPECT_EQ(graph.size() - fake_cudnn::without_pages(graph).size(), 2u) << p.key();
  Cudnn::expect_no_complaints(p.key());
}

/// Pages of a key, of some, of all; the last one is whole, or is not.
TEST_F(Cudnn, LoadsPages) {
  state().narrow_outs = {kE4m3, kBf16};
  for (int64_t page : {1, 8, 16, 64})
    for (Type type : {f16, bf16, e4m3})
      for (AttentionMask mask : kMasks) {
        Attention p = paged(page, type, mask);
        p.lse = page != 8;
        expect_served(p);
        p.at_keys = 48;
        if (page == 16) expect_served(p);
      }
}

TEST_F(Cudnn, PagesWithOptions) {
  for (AttentionMask mask : kMasks) {
    Attention p = paged(16, f16, mask);
    p.sink = p.varlen = p.softcap = p.lse = true, p.bias = f32;
    expect_served(p);
  }
  for (auto [left, right] : {std::pair<int64_t, int64_t>{5, 0}, {-1, 3}, {30, -1}, {3, 4}}) {
    Attention p = paged(16, bf16, AttentionMask::window);
    p.lse = true, p.at_left = left, p.at_right = right;
    expect_served(p);
  }
  Attention decode = paged(16, bf16, AttentionMask::causal);
  decode.at_queries = 1, decode.lse = true;
  expect_served(decode);
}

/// One that loads another page, or pages from another place, or leaves out the last key, is not timed.
TEST_F(Cudnn, WrongPagesAreFound) {
  using fake_cudnn::Config;
  const std::pair<const char*, Config> faults[] = {{"the next page", {.engine = 1, .page_beyond = 1}},
                                                   {"the page before", {.engine = 1, .page_beyond = -1}},
                                                   {"pages farther apart", {.engine = 1, .page_shift = 64}},
                                                   {"a key less", {.engine = 1, .keys_more = -1}}};
  state().narrow_outs = {kE4m3};
  for (Type type : {bf16, e4m3})
    for (AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
      for (const auto& [name, config] : faults) {
        state().configs[kModeA] = {config, {.engine = 2}};
        const Vendor v = asked(paged(16, type, mask));
        ASSERT_EQ(v.algorithms.size(), 1u) << name << " of " << to_string(type);
        EXPECT_TRUE(v.algorithms[0].text.starts_with("engine 2")) << name;
        EXPECT_TRUE(v.left_out.back().starts_with("engine 1")) << v.left_out.back();
        EXPECT_NE(v.left_out.back().find("wrong"), std::string::npos) << v.left_out.back();
      }
}

/// What is wrong with the call that a graph is made of, of heads before or behind tokens; "ok": nothing.
std::string verdict(const Attention& p, bool by_head, const std::function<void(SlotValues&)>& change,
                    size_t spare_ids = 0) {
  AttentionShape shape = tuned_shape(p);
  shape.by_head = by_head, shape.gap = 16, shape.scale = 0.3;
  const auto truth = attention_truth(p, shape, AttentionArithmetic(p.kv), most_attention_products, 7);
  const AttentionInputs& in = truth->inputs;
  Bench bench(p, Cudnn::device(), 0, 1);
  const auto placed = [&](const char* rows, const TokenLayout& layout, Type type) {
    Memory memory(size_t(layout.rows() * layout.ld() * size_of(type)));
    const auto bytes = size_t(layout.columns() * size_of(type));
    for (int64_t r = 0; r < layout.rows() && rows; ++r)
      check(driver()->cuMemcpyHtoD(memory.address() + uint64_t(r * layout.ld() * size_of(type)),
                                   rows + size_t(r) * bytes, bytes),
            "copying");
    return memory;
  };
  const Memory q = placed(in.q.data(), in.q_layout, p.q), key = placed(in.key.data(), in.key_layout, p.kv),
               value = placed(in.value.data(), in.value_layout, p.kv),
               out = placed(nullptr, in.out_layout, p.out);
  std::vector<int32_t> ids = in.pages.table;
  ids.resize(ids.size() + spare_ids);
  const Memory table(ids.size() * sizeof(int32_t));
  check(driver()->cuMemcpyHtoD(table.address(), ids.data(), table.bytes()), "copying");
  const auto at = [](const Memory& m) { return reinterpret_cast<void*>(m.address()); };
  AttentionCall call;
  call.q = at(q), call.key = at(key), call.value = at(value), call.out = at(out), call.shape = &in.shape;
  call.page_table = static_cast<const int32_t*>(at(table));
  call.q_layout = &in.q_layout, call.key_layout = &in.key_layout;
  call.value_layout = &in.value_layout, call.out_layout = &in.out_layout;
  SlotValues values = values_of(p, call);
  change(values);
  const CudnnAttention attention(p, values, p.out);
  attention.enqueue(attention.plan(0), values, 0, bench.ring().context().stream());
  bench.ring().context().synchronize();
  const auto row = [&](int64_t r) {
    return static_cast<const char*>(at(out)) + r * in.out_layout.ld() * size_of(p.out);
  };
  return truth->check.compare(row, nullptr).status;
}

TEST_F(Cudnn, PagesLieAsTheCallSays) {
  const Attention p = paged(16, f16, AttentionMask::causal);
  for (bool by_head : {false, true}) {
    EXPECT_EQ(verdict(p, by_head, [](SlotValues&) {}), "ok") << by_head;
    expect_no_complaints(p.key());
    for (deepgen_arg stride : {DEEPGEN_ARG_KEY_TOKEN, DEEPGEN_ARG_VALUE_TOKEN})
      for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(verdict(p, by_head, [&](SlotValues& x) { x[stride + i] -= 8; }), "wrong") << stride + i;
    EXPECT_EQ(verdict(p, by_head, [](SlotValues& x) { x[DEEPGEN_ARG_PAGE_TABLE_STRIDE] = 1; }), "wrong");
    EXPECT_EQ(verdict(p, by_head, [](SlotValues& x) { x[DEEPGEN_ARG_PAGE_TABLE] += 4; }, 1), "wrong");
  }
}

TEST_F(Cudnn, EachSetOfPagesIsACallOfItsOwn) {
  const Attention p = paged(16);
  Bench bench(p, device(), 0, 1);
  const Vendor v = ask_cudnn(bench.ring(), "sm_90a", 1);
  ASSERT_EQ(v.algorithms.size(), 2u);
  const SlotValues& set = dynamic_cast<const AttentionSets&>(bench.ring().ring()).all().at(1);
  std::vector<uint16_t> out(size_t(p.at_batch * p.at_queries * p.heads * p.value_dim));
  bench.ring().tools().set_words(set[DEEPGEN_ARG_OUT], 0xffffffff, out.size() * 2);
  cudnn_call(v.algorithms[1], bench.ring())(1, bench.ring().context().stream());
  check(driver()->cuMemcpyDtoH(out.data(), set[DEEPGEN_ARG_OUT], out.size() * 2), "reading");
  EXPECT_EQ(std::count(out.begin(), out.end(), 0xffff), 0);
  expect_no_complaints(p.key());
}

/// In the library's words, as of 9.4, which has no such operation; and where no engine takes the graph.
TEST_F(Cudnn, PagesThatItRefusesAreNoneInItsWords) {
  state().version = 90400;
  std::string why = asked(paged(16)).why_not;
  EXPECT_NE(why.find("descriptor of kind 35, in creating a load of pages"), std::string::npos) << why;
  state().version = 91900;
  state().heuristic_results = {{kModeA, 3001}, {2, 3001}};
  why = asked(paged(16)).why_not;
  EXPECT_NE(why.find("no engine for this pattern"), std::string::npos) << why;
}

/// Each as a graph of ours could have been made.
TEST_F(Cudnn, TheFakeIsStrictWithPages) {
  asked(paged(16, bf16, AttentionMask::causal));
  const std::vector<Operation> right = fake_cudnn::last_graph();
  ASSERT_EQ(fake_cudnn::fault_of(right), "");
  const auto is_load = [](const Operation& o) { return o.kind == Operation::pages; };
  const std::pair<const char*, std::function<void(Operation&)>> faults[] = {
      {"rows that do not count", [](Operation& o) { o.counts[0].reset(); }},
      {"keys that do not count", [](Operation& o) { o.counts[1].reset(), o.counts[2].reset(); }},
      {"keys where queries count",
       [](Operation& o) { std::swap(o.counts[0], o.counts[o.counts[1] ? 1 : 2]); }},
      {"no mask",
       [](Operation& o) {
         if (o.mode == fake_cudnn::POINTWISE_CMP_LT) o.mode = fake_cudnn::POINTWISE_CMP_GT;
       }},
      {"a longer table", [&](Operation& o) { o.in[is_load(o) ? 2 : 0].sizes[2] += is_load(o); }},
      {"a table of i64",
       [&](Operation& o) {
         if (is_load(o)) o.in[2].type = fake_cudnn::DATA_FLOAT;
       }},
      {"lengths of one entry",
       [&](Operation& o) {
         if (is_load(o)) o.in[1].sizes[0] = 1;
       }},
      {"another head",
       [&](Operation& o) {
         if (is_load(o)) ++o.in[0].sizes[1];
       }},
      {"another type", [&](Operation& o) {
         if (is_load(o)) o.in[0].type = fake_cudnn::DATA_HALF;
       }}};
  for (const auto& [name, change] : faults) {
    std::vector<Operation> graph = right;
    for (Operation& o : graph) change(o);
    EXPECT_NE(fake_cudnn::fault_of(graph), "") << name;
  }
}

} // namespace
} // namespace deepgen::cuda::cudnn_pages_test
