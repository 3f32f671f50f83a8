#include "tests/ptx_sim/check/attention_check.h"

#include "measure/gpu/attention_map.h"
#include "measure/gpu/cuda_attention_verify.h"
#include "tests/ptx_sim/machine/tensor_map.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace deepgen::ptx_sim {
namespace {

constexpr double kMostProducts = 1e9; // all rows of what can be simulated
constexpr int64_t kPersistentBlocks = 3;

/// The operands of one call in simulated memory.
class AttentionMemory {
public:
  AttentionMemory(const Kernel& kernel, const AttentionCase& c, uint64_t seed)
      : kernel_(kernel), p_(kernel.problem.attention()), what_(cuda::taken_by(kernel, c)),
        inputs_(p_, what_.shape, seed),
        check_(p_, inputs_, AttentionArithmetic::of(p_, kernel.target), kMostProducts, seed) {
    const AttentionShape& s = what_.shape;
    AttentionCall call;
    call.q = input("q", p_.q, inputs_.q_layout, inputs_.q, p_.heads, p_.head_dim, false);
    call.key = input("key", p_.kv, inputs_.key_layout, inputs_.key, p_.kv_heads, p_.head_dim, true);
    call.value = input("value", p_.kv, inputs_.value_layout, inputs_.value, p_.kv_heads, p_.value_dim, true);
    out_ = place("out", p_.out, inputs_.out_layout, kernel.align_d);
    call.out = address(out_);
    if (p_.lse) {
      lse_ = memory.add("lse", size_t(4 * inputs_.lse_count(p_)), 0, true);
      own(lse_, 0, size_t(4 * inputs_.lse_count(p_)));
      call.lse = static_cast<float*>(address(lse_));
    }
    if (p_.bias) call.bias = bias();
    if (p_.sink) call.sink = static_cast<const float*>(array("sink", inputs_.sink));
    const auto table = [&](const char* name, const std::vector<int32_t>& x) {
      return x.empty() ? nullptr : static_cast<const int32_t*>(array(name, x));
    };
    call.query_offsets = table("query_offsets", inputs_.query_offsets);
    call.key_offsets = table("key_offsets", inputs_.key_offsets);
    call.keys_used = table("keys_used", s.keys_used);
    call.page_table = table("page_table", inputs_.pages.table);
    if (kernel.workspace) {
      const size_t region = memory.add("workspace", size_t(kernel.workspace), 0, true);
      own(region, 0, size_t(kernel.workspace));
      call.workspace = address(region);
    }
    call.q_layout = &inputs_.q_layout, call.key_layout = &inputs_.key_layout;
    call.value_layout = &inputs_.value_layout, call.out_layout = &inputs_.out_layout;
    call.bias_layout = &inputs_.bias_layout, call.shape = &what_.shape;
    values_ = values_of(p_, call);
  }

  GlobalMemory memory;

  std::vector<uint8_t> argument(const std::string& name) const {
    for (const TensorMap& map : kernel_.maps)
      if (name == "map_" + map.operand) return map_of(map);
    static constexpr const char* kNames[] = {DEEPGEN_ARG_NAMES};
    const auto at = std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames);
    const bool scalar = name == "score_scale" || name == "softcap";
    std::vector<uint8_t> out(scalar ? 4 : 8);
    std::memcpy(out.data(), &values_[size_t(at)], out.size());
    return out;
  }

  /// The launch as this call makes it.
  Launch launched(Launch l) const {
    const Sizes sizes{what_.shape.queries, what_.shape.keys, 1, what_.shape.batch};
    for (size_t i = 0; i < 3; ++i)
      if (l.grid_rules[i].exists()) l.grid[i] = std::min(l.grid[i], l.grid_rules[i].at(sizes));
    // A device that holds few blocks at a time: they walk over several pieces of work each.
    if (l.persistent) l.grid[0] = std::min(l.grid[0], kPersistentBlocks);
    return l;
  }

  /// A launch has ended: of out, what it has written counts as written.
  void note_written() {
    const GlobalMemory::Region& out = memory[out_];
    written_.resize(out.bytes.size());
    for (size_t i = 0; i < written_.size(); ++i) written_[i] = written_[i] || out.writers[i];
  }

  Outcome compare() const {
    const GlobalMemory::Region& out = memory[out_];
    for (size_t i = 0; i < out.bytes.size(); ++i)
      if (out.owned[i] && !written_[i])
        return {"byte " + std::to_string(i - out.lead) + " of out is not written", 0};
    const auto row = [&](int64_t r) {
      return reinterpret_cast<const char*>(out.bytes.data()) + out.lead +
             r * inputs_.out_layout.ld() * size_of(p_.out);
    };
    if (const Verdict v = check_.check_finite(row); v.status != "ok") return {v.detail, v.error};
    const void* lse = p_.lse ? memory[lse_].bytes.data() + memory[lse_].lead : nullptr;
    const Verdict v = check_.compare(row, lse);
    return {v.status == "ok" ? "" : v.detail, v.error};
  }

private:
  std::vector<uint8_t> map_of(const TensorMap& map) const {
    const TokenMap x = token_map(p_, map.operand, values_);
    SimulatedMap m;
    if (x.empty())
      m.magic = 0;
    else
      m = make_tensor_map(x.base, uint32_t(size_of(x.type)), 4, x.sizes.data(), x.pitches.data(), map);
    std::vector<uint8_t> bytes(sizeof m);
    std::memcpy(bytes.data(), &m, sizeof m);
    return bytes;
  }
  void* address(size_t region) const { return reinterpret_cast<void*>(uintptr_t(memory[region].base)); }
  void own(size_t region, size_t from, size_t bytes) {
    auto& owned = memory[region].owned;
    std::fill_n(owned.begin() + int64_t(memory[region].lead + from), bytes, uint8_t(1));
  }
  template <typename T>
  void* array(const char* name, const std::vector<T>& x) {
    const size_t region = memory.add(name, x.size() * sizeof(T), 0, false);
    std::memcpy(memory[region].bytes.data() + memory[region].lead, x.data(), x.size() * sizeof(T));
    own(region, 0, x.size() * sizeof(T));
    return address(region);
  }
  size_t place(const char* name, Type type, const TokenLayout& layout, int64_t align) {
    const int64_t rows = layout.rows();
    const auto bytes = size_t(rows ? ((rows - 1) * layout.ld() + layout.columns()) * size_of(type) : 0);
    const size_t region =
        memory.add(name, bytes, what_.misaligned ? size_t(std::max(align, size_of(type))) : 0, true);
    for (int64_t r = 0; r < rows; ++r)
      own(region, size_t(r * layout.ld() * size_of(type)), size_t(layout.columns() * size_of(type)));
    return region;
  }
  /// Of keys that do not count there is nothing that may be read. By tensor maps, pages are read whole: there
  /// what is poison in a page with a key that counts may come into shared memory.
  void* input(const char* name, Type type, const TokenLayout& layout, const PageBuffer& dense, int64_t heads,
              int64_t dimension, bool keys) {
    const size_t region = place(name, type, layout, kernel_.align_a);
    std::vector<char> image = stored(type, layout, dense);
    if (keys && !image.empty()) {
      poison_unused(type, layout, what_.shape, heads, dimension, image.data());
      std::vector<char> used(image.size(), 0);
      poison_unused(type, layout, what_.shape, heads, dimension, used.data());
      if (inputs_.pages.size && !kernel_.maps.empty()) keep_pages(layout, size_of(type), used);
      for (size_t i = 0; i < used.size(); ++i)
        if (used[i]) memory[region].owned[memory[region].lead + i] = 0;
    }
    std::copy(image.begin(), image.end(), memory[region].bytes.begin() + int64_t(memory[region].lead));
    memory[region].writable = false;
    return address(region);
  }

  /// Of what no row sees there is nothing that may be read.
  void* bias() {
    const std::vector<char> image = stored_bias(p_, inputs_.bias_layout, what_.shape, inputs_.bias);
    const std::vector<bool> used = used_bias(p_, inputs_.bias_layout, what_.shape);
    const auto size = size_t(size_of(*p_.bias));
    const size_t region = memory.add("bias", image.size(), what_.misaligned ? size : 0, true);
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) own(region, i * size, size);
    std::copy(image.begin(), image.end(), memory[region].bytes.begin() + int64_t(memory[region].lead));
    memory[region].writable = false;
    return address(region);
  }

  /// Takes back what is set in the image of an operand where a page has a key that counts.
  void keep_pages(const TokenLayout& layout, int64_t size, std::vector<char>& unused) const {
    const int64_t rows = layout.rows() / inputs_.pages.count; // of a page
    std::vector<bool> kept(size_t(inputs_.pages.count));
    for (int64_t b = 0; b < what_.shape.batch; ++b)
      for (int64_t j = 0; j < what_.shape.keys_of(b); ++j) kept[size_t(layout.row(b, j, 0) / rows)] = true;
    for (int64_t r = 0; r < layout.rows(); ++r)
      if (kept[size_t(r / rows)])
        std::fill_n(unused.begin() + r * layout.ld() * size, layout.columns() * size, char(0));
  }

  const Kernel& kernel_;
  const Attention p_;
  const AttentionCase what_;
  const AttentionInputs inputs_;
  const AttentionComparison check_;
  size_t out_ = 0, lse_ = 0;
  std::vector<bool> written_; ///< bytes of out
  SlotValues values_ = {};
};

} // namespace

Outcome check_attention(const Kernel& k, const AttentionCase& c, uint64_t seed) {
  return check_attention(k, c, seed, runner(k));
}

Outcome check_attention(const Kernel& k, const AttentionCase& c, uint64_t seed, const Runner& run) {
  try {
    AttentionMemory call(k, c, seed);
    std::vector<std::vector<uint8_t>> arguments;
    for (const std::string& name : k.args) arguments.push_back(call.argument(name));
    for (size_t i = 0; i < k.launches.size(); ++i) {
      run(call.launched(k.launches[i]), arguments, call.memory, seed + i);
      call.note_written();
    }
    return call.compare();
  } catch (const Fault& f) {
    return {f.what(), 0};
  }
}

std::vector<std::string> unseen_strides(const Kernel& kernel, const AttentionCase& c, uint64_t seed,
                                        const std::vector<std::string>& strides) {
  std::vector<std::string> unseen;
  for (const std::string& stride : strides) {
    const auto at = size_t(std::find(kernel.args.begin(), kernel.args.end(), stride) - kernel.args.begin());
    const Runner device = runner(kernel);
    const auto planted = [&](const Launch& l, std::vector<std::vector<uint8_t>> arguments,
                             GlobalMemory& memory, uint64_t of_launch) {
      std::vector<uint8_t>& argument = arguments.at(at);
      std::fill(argument.begin(), argument.end(), uint8_t(0));
      device(l, arguments, memory, of_launch);
    };
    if (check_attention(kernel, c, seed, planted).fault.empty()) unseen.push_back(stride);
  }
  return unseen;
}

std::vector<std::string> unseen_bias_strides(const Kernel& kernel, const AttentionCase& c, uint64_t seed) {
  return unseen_strides(kernel, c, seed, {"bias_query", "bias_head", "bias_batch"});
}

Attention draw_attention(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr int64_t dimensions[] = {64, 64, 96, 128, 32, 40, 80, 16, 192, 256};
  constexpr Type outputs[] = {Type::f32, Type::f16, Type::bf16};
  Attention p;
  p.q = p.kv = below(2) ? Type::bf16 : Type::f16;
  p.out = below(2) ? p.q : outputs[below(3)];
  p.mask = AttentionMask(seed % 4);
  constexpr int64_t groups[] = {1, 2, 3, 4, 7};
  p.kv_heads = 1 + below(2), p.heads = p.kv_heads * groups[below(5)];
  p.head_dim = below(8) ? dimensions[below(10)] : 1 + below(70);
  p.value_dim = below(4) ? p.head_dim : below(2) ? dimensions[below(10)] : 1 + below(70);
  p.queries = p.at_queries = 1 + below(largest);
  p.keys = p.at_keys = 1 + below(2 * largest);
  p.at_batch = 1 + below(2);
  p.varlen = below(2), p.lse = below(2), p.softcap = below(4) == 0, p.sink = below(4) == 0;
  constexpr int64_t pages[] = {16, 64, 1, 4, 128};
  if (below(3) == 0) p.page_size = pages[below(5)];
  if (below(3) == 0) p.splits = int64_t(1) << below(5);
  constexpr Type biases[] = {Type::f32, Type::f16, Type::bf16};
  if (below(3) == 0) p.bias = biases[below(3)];
  return p;
}

} // namespace deepgen::ptx_sim
