#include "generator/space/sample.h"

#include "base/problem/signature.h"
#include "base/text/error.h"
#include "generator/space/space.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

using Engine = std::mt19937_64;

constexpr double kFewestFlops = 4; ///< a gated GEMM of 1 x 1 x 1: nothing is below

// The standard library's distributions and shuffle differ between implementations; these do not.
int64_t between(Engine& random, int64_t low, int64_t high) {
  return low + int64_t(random() % uint64_t(high - low + 1));
}
template <typename T>
void shuffle(std::vector<T>& values, Engine& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

int64_t prime_at_most(int64_t n) {
  for (; n > 2; --n) {
    int64_t divisor = 2;
    while (divisor * divisor <= n && n % divisor != 0) ++divisor;
    if (divisor * divisor > n) break;
  }
  return n;
}

int64_t draw_size(Engine& random, int64_t largest) {
  static constexpr int64_t tile[] = {8, 16, 32, 64, 128};
  switch (random() % 10) {
  case 0:
    return 1;
  case 1:
  case 2:
    return between(random, 1, std::min<int64_t>(16, largest));
  case 3:
  case 4:
    return between(random, 1, largest);
  case 5:
    return prime_at_most(between(random, 1, largest));
  case 6:
    return between(random, 1, std::max<int64_t>(1, largest / 8)) | 1; // odd
  default: {
    const int64_t unit = std::min(tile[random() % 5], largest);
    return unit * between(random, 1, std::max<int64_t>(1, largest / unit));
  }
  }
}

bool valid(const Problem& problem) {
  try {
    validate(problem);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// All combinations of types that validate() takes, with each layout.
std::vector<Problem> all_kinds(const Gemm&) {
  constexpr int last = int(Type::u8);
  std::vector<Problem> kinds;
  for (int a = 0; a <= last; ++a)
    for (int b = 0; b <= last; ++b)
      for (int d = 0; d <= last; ++d)
        for (Layout layout : {Layout::nn, Layout::nt, Layout::tn, Layout::tt}) {
          Gemm p;
          p.a = Type(a), p.b = Type(b), p.d = Type(d), p.layout = layout;
          complete(p);
          if (valid(p)) kinds.push_back(p);
        }
  return kinds;
}

std::vector<Problem> all_kinds(const Rows&) {
  constexpr int last = int(Type::i32);
  std::vector<Problem> kinds;
  for (int x = 0; x <= last; ++x)
    for (int d = 0; d <= last; ++d)
      for (RowsKind kind :
           {RowsKind::softmax, RowsKind::log_softmax, RowsKind::layer_norm, RowsKind::rms_norm}) {
        Rows p;
        p.x = Type(x), p.d = Type(d), p.kind = kind;
        if (valid(p)) kinds.push_back(p);
      }
  return kinds;
}

std::vector<Problem> all_kinds(const Attention&) {
  std::vector<Problem> kinds;
  for (Type kv : {Type::f32, Type::f16, Type::bf16, Type::e4m3})
    for (Type q : {kv, kv == Type::e4m3 ? kv : Type::f32})
      for (AttentionMask mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::causal_top_left,
                                 AttentionMask::window}) {
        Attention p;
        p.q = p.out = q, p.kv = kv, p.mask = mask;
        if (q == Type::e4m3) p.out = Type::bf16;
        kinds.push_back(p);
      }
  return kinds;
}

std::vector<Problem> all_kinds(const std::string& op) {
  for (const Problem& one : one_of_each())
    if (one.op() == op) return std::visit([](const auto& x) { return all_kinds(x); }, one.which());
  return {};
}

/// Of A, or of X.
Type first_type(const Problem& p) { return signature(p).front().type; }

/// Depth first over the grid with the values in random order, giving up a branch after some leaves.
class ConfigSearch {
public:
  ConfigSearch(const Template& source, const Problem& problem, const Device& device, Engine& random)
      : source_(source), problem_(problem), device_(device), random_(random),
        parameters_(source.parameters(problem, device)) {}

  std::optional<Config> find() {
    for (int attempt = 0; attempt < 50; ++attempt) {
      Config config;
      for (Parameter& p : parameters_) {
        config.values.emplace_back(p.name, 0);
        shuffle(p.values, random_);
      }
      leaves_ = 0;
      if (visit(config, 0)) return config;
    }
    return std::nullopt;
  }

private:
  bool visit(Config& config, size_t assigned) {
    if (assigned == parameters_.size()) {
      ++leaves_;
      return source_.why_illegal(problem_, device_, config).empty();
    }
    for (int64_t value : parameters_[assigned].values) {
      config.values[assigned].second = value;
      if (!source_.dead_end(problem_, device_, config, assigned + 1) && visit(config, assigned + 1))
        return true;
      if (leaves_ > 300) return false;
    }
    return false;
  }

  const Template& source_;
  const Problem& problem_;
  const Device& device_;
  Engine& random_;
  std::vector<Parameter> parameters_;
  int leaves_ = 0;
};

struct Cell {
  std::string arch;
  const Template* source;
  std::vector<Problem> kinds; ///< of which a sample has one
};

/// With `spec.count`, the kinds of one type of A share a cell: the 8-bit floats have half of all
/// combinations.
std::vector<Cell> all_cells(const SampleSpec& spec) {
  std::map<Type, std::vector<Problem>> groups;
  std::vector<Cell> cells;
  const std::vector<Problem> kinds = all_kinds(spec.op);
  for (const Problem& kind : kinds) groups[first_type(kind)].push_back(kind);
  for (const Template* t : templates()) {
    const auto& wanted = spec.templates;
    if (t->op() != spec.op) continue;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), t->name()) == wanted.end()) continue;
    for (const std::string& arch : spec.archs) {
      if (spec.count)
        for (const auto& [type, group] : groups) cells.push_back({arch, t, group});
      else
        for (const Problem& kind : kinds) cells.insert(cells.end(), spec.each, {arch, t, {kind}});
    }
  }
  return cells;
}

/// The arch's generic GPU; for "cpu" one of the highest level, so that every level and extension is in the
/// space.
Device device_of(const std::string& arch) {
  if (arch != "cpu") return generic_gpu(arch);
  Device cpu;
  cpu.present = false, cpu.isa = 4;
  cpu.features = {"amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512vnni", "avxvnni"};
  return cpu;
}

/// The problem with ranges that end at its sizes: of M more often than of the batch, N and K, as far as the
/// template serves them.
Gemm with_ranges(Gemm p, const Cell& cell, Engine& random) {
  const bool all = random() % 4 == 0;
  for (Size size : {Size::m, Size::batch, Size::n, Size::k}) {
    const bool wanted = random() % (size == Size::m ? 4 : 3) < (size == Size::m ? 3u : 1u);
    if ((!all && !wanted) || (size == Size::batch && p.groups)) continue;
    Gemm ranged = p;
    int64_t* most[] = {&ranged.m, &ranged.n, &ranged.k, &ranged.batch};
    int64_t& x = *most[size_t(size)];
    x = std::max<int64_t>(x, 2);
    ranged.least[size_t(size)] = random() % 2 ? 1 : x / 4;
    if (cell.source->why_not(ranged, cell.arch).empty()) p = ranged;
  }
  return p;
}

/// The problem, and a config: with ranges one that is legal at some sizes, and so runs at all of them.
std::optional<RandomCandidate> draw_ranged(Gemm p, const Cell& cell, const Device& device, Engine& random) {
  p = with_ranges(p, cell, random);
  if (!p.ranged()) return std::nullopt;
  const auto config = draw_config(*cell.source, p.up_to(draw_sizes(p, random)), device, random);
  if (!config) return std::nullopt;
  return RandomCandidate{p, cell.arch, {cell.source->name(), *config}};
}

/// Nothing when the template serves no problem of the cell, as far as some tries tell.
std::optional<RandomCandidate> draw(const Cell& cell, const SampleSpec& spec, Engine& random) {
  const Device device = device_of(cell.arch);
  for (int attempt = 0; attempt < 60; ++attempt) {
    const Problem problem = std::visit(
        [&](auto kind) {
          draw_shape(kind, spec, random);
          return Problem(kind);
        },
        cell.kinds[random() % cell.kinds.size()].which());
    if (spec.ranges && problem.op() == "gemm") {
      if (auto sample = draw_ranged(problem.gemm(), cell, device, random)) return sample;
      continue;
    }
    if (!cell.source->why_not(problem, cell.arch).empty()) continue;
    if (spec.defaults)
      return RandomCandidate{problem, cell.arch, Space(problem, cell.arch, device).default_choice()};
    if (auto config = draw_config(*cell.source, problem, device, random))
      return RandomCandidate{problem, cell.arch, {cell.source->name(), *config}};
  }
  return std::nullopt;
}

} // namespace

void draw_shape(Rows& problem, const SampleSpec& spec, Engine& random) {
  problem.n = draw_size(random, std::min<int64_t>(8 * spec.largest, most_row_columns));
  problem.m = draw_size(random, std::max<int64_t>(1, std::min<int64_t>(spec.largest, 4'000'000 / problem.n)));
  problem.residual = random() % 2;
  problem.output_residual = problem.residual && random() % 2;
  problem.scale = problem.normalises() && random() % 2;
  problem.bias = problem.normalises() && random() % 2;
}

void draw_shape(Attention& problem, const SampleSpec& spec, Engine& random) {
  static constexpr int64_t dimensions[] = {32, 64, 64, 96, 128, 128, 192, 256};
  problem.kv_heads = between(random, 1, 3), problem.heads = problem.kv_heads * between(random, 1, 8);
  problem.head_dim = dimensions[random() % std::size(dimensions)];
  problem.value_dim = random() % 4 ? problem.head_dim : dimensions[random() % std::size(dimensions)];
  problem.queries = problem.at_queries = draw_size(random, spec.largest);
  problem.keys = problem.at_keys = draw_size(random, spec.largest);
  problem.at_batch = between(random, 1, 3);
  for (bool* option : {&problem.varlen, &problem.lse, &problem.softcap, &problem.sink})
    *option = random() % 3 == 0;
  problem.page_size = 0; // of what is drawn, so that a template which serves both sees what it saw before
  if ((problem.queries + problem.keys) % 4 == 0) problem.page_size = int64_t(1) << problem.keys % 8;
  constexpr Type biases[] = {Type::f32, Type::f16, Type::bf16};
  problem.bias.reset();
  if ((problem.queries + 2 * problem.keys) % 5 == 0) problem.bias = biases[problem.keys % 3];
  // Of few queries: the workspace is as large as four times those of the tuned call.
  const bool split = problem.queries <= 64 && (7 * problem.queries + problem.keys) % 5 < 2;
  problem.splits = split ? int64_t(1) << problem.queries % 6 : 0;
}

void draw_shape(Gemm& problem, const SampleSpec& spec, Engine& random) {
  int64_t* sizes[] = {&problem.m, &problem.n, &problem.k, &problem.batch};
  static constexpr EpilogueOp gates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                                         EpilogueOp::sigmoid, EpilogueOp::relu};
  problem.gate.reset();
  if (problem.d != Type::i32 && random() % 4 == 0) problem.gate = gates[random() % std::size(gates)];
  for (int64_t* size : {&problem.m, &problem.n, &problem.k}) *size = draw_size(random, spec.largest);
  problem.batch = random() % 4 ? 1 : between(random, 2, 5);
  while (problem.flops() >
         std::max(kFewestFlops, spec.most_flops)) { // two or three of the sizes stay as they are
    int64_t& size = *sizes[random() % 4];
    if (size > 1) size = draw_size(random, std::max<int64_t>(1, size / 4));
  }
  problem.groups = 0;
  if (problem.batch == 1 && !problem.a_transposed() && random() % 4 == 0)
    problem.groups = between(random, 1, 9);
  problem.epilogue.clear();
  if (problem.d == Type::i32) return;
  std::vector<EpilogueOp> ops;
  for (int op = 0; op < epilogue_op_count; ++op)
    if (!problem.gate || (EpilogueOp(op) != EpilogueOp::scale_a && EpilogueOp(op) != EpilogueOp::scale_b))
      ops.push_back(EpilogueOp(op));
  shuffle(ops, random);
  const int64_t length = random() % 3 ? between(random, 0, 3) : between(random, 0, int64_t(ops.size()));
  problem.epilogue.assign(ops.begin(), ops.begin() + length);
}

Sizes draw_sizes(const Gemm& p, Engine& random) {
  Sizes sizes = p.sizes();
  for (size_t i = 0; i < size_count; ++i) {
    if (!p.least[i]) continue;
    const int64_t most = sizes[Size(i)], least = std::max<int64_t>(1, *p.least[i]);
    constexpr int64_t tiles[] = {16, 32, 64, 128};
    const int64_t near = tiles[random() % 4] + between(random, -1, 1), any = between(random, least, most);
    const int64_t choices[] = {least, most, most - 1, near, any, any};
    sizes[Size(i)] = std::clamp(choices[random() % std::size(choices)], least, most);
  }
  return sizes;
}

std::vector<Sizes> draw_calls(const Gemm& p, Engine& random, int count) {
  std::vector<Sizes> calls;
  for (int i = 0; i < count; ++i) calls.push_back(draw_sizes(p, random));
  if (p.ranged(Size::k)) calls.push_back(calls.back()), calls.back().k = 0;
  return calls;
}

std::optional<Config> draw_config(const Template& source, const Problem& problem, const Device& device,
                                  Engine& random) {
  return ConfigSearch(source, problem, device, random).find();
}

std::vector<RandomCandidate> draw_samples(const SampleSpec& spec) {
  Engine random(spec.seed);
  std::vector<Cell> cells = all_cells(spec);
  std::vector<RandomCandidate> samples;
  size_t before;
  do { // with a count, all cells in turn, in another order each time
    before = samples.size();
    shuffle(cells, random);
    for (const Cell& cell : cells) {
      if (spec.count && samples.size() == spec.count) break;
      if (auto sample = draw(cell, spec, random)) samples.push_back(std::move(*sample));
    }
  } while (samples.size() > before && samples.size() < spec.count);
  return samples;
}

} // namespace deepgen
