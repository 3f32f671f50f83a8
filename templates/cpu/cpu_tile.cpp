#include "templates/cpu/cpu_tile.h"

#include "base/problem/packed_b.h"
#include "base/problem/points.h"
#include "base/text/error.h"
#include "templates/core/cheapest.h"
#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/core/sum_order.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_stream.h"
#include "templates/ir/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deepgen {
namespace {

enum Index { kIsa, kForm, kMr, kNv, kKc, kUnroll, kPack, kMc, kNc, kLoops, kPrefetch, kCut };
constexpr std::string_view kNames[] = {"isa",  "form", "mr", "nv",    "kc",       "ku",
                                       "pack", "mc",   "nc", "loops", "prefetch", "cut"};
constexpr int64_t kPackA = 1, kPackB = 2;
constexpr int64_t kLine = 64;  ///< bytes of a line of the cache
constexpr int64_t kAhead = 64; ///< `prefetch` of a B that is packed ahead, where no distance is asked for

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

std::vector<int64_t> up_to(std::initializer_list<int64_t> values, int64_t limit) {
  std::vector<int64_t> out;
  for (int64_t v : values)
    if (v < limit) out.push_back(v);
  out.push_back(limit);
  return out;
}

/// Row counts of a tile: a few that suit every ISA, and those that divide M into equal panels.
std::vector<int64_t> row_counts(int64_t m) {
  constexpr int64_t kMost = 14;
  std::vector<int64_t> out;
  for (int64_t v : {1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 14})
    if (v <= m) out.push_back(v);
  const int64_t panels = ceil_div(m, kMost);
  for (int64_t p = panels; p < panels + 3; ++p) out.push_back(ceil_div(m, p));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct Point {
  const Gemm& p;
  const Device& device;
  const Config& config;
  [[gnu::always_inline]] int64_t operator[](Index i) const { return at(config, i); }
  bool gated() const { return p.gate.has_value(); }
  bool packed() const { return p.packed_b; }
  bool streams_b() const { return packed() && p.m <= kFewPackedRows; }
  bool may_ask_ahead() const { return !packed() || streams_b() || p.batch > 1; }
  int64_t panel_columns() const { return packed_layout(p).columns; }
  /// Of a tile: `vectors` are what B has.
  int64_t most_vectors(int64_t vectors) const {
    return int64_t(std::bit_floor(uint64_t(std::min(vectors, panel_columns() / isa().lanes()))));
  }
  /// Loads for each FMA. Tiles of a packed panel are 1, 2, 4 or 8 vectors wide: 4 x 2 is all that 4 rows
  /// have in 16 registers.
  double most_loads() const { return packed() ? 0.75 : 0.70; }
  int64_t n() const { return p.sum_columns(); } ///< columns of B
  VectorIsa isa() const { return {(*this)[kIsa], p.a}; }
  bool dot() const { return (*this)[kForm] == 1; }
  int64_t nr() const { return dot() ? (*this)[kNv] : (*this)[kNv] * isa().lanes(); }
  int64_t bytes() const { return size_of(p.a); }
  int64_t accumulators() const { return (*this)[kMr] * (*this)[kNv]; }
  int64_t m_tiles() const { return ceil_div(p.m, (*this)[kMr]); }
  int64_t n_tiles() const { return ceil_div(n(), nr()); }
  std::string why_no_cut() const {
    return has_cut(p) ? deepgen::why_no_cut(p, cut_of(config), m_tiles(), n_tiles()) : "";
  }
};

/// Whether the epilogue reads a matrix, which may be D itself.
bool reads_matrix(const Gemm& p) { return p.has(EpilogueOp::residual) || p.has(EpilogueOp::multiply); }
/// Whether D cannot hold partial sums between blocks of K.
bool blocks_sums(const Point& x) { return (x.gated() || reads_matrix(x.p)) && x[kKc] < x.p.k; }

double sums_bytes(const Point& x) {
  const double rows = double(std::min(x[kMc] + x[kMr], x.p.m)),
               columns = double(std::min(x[kNc] + x.nr(), x.n()));
  return rows * columns * double(x.bytes());
}

std::string number(double v) {
  std::string s = std::to_string(v);
  return s.substr(0, s.find('.') + 3);
}

const Rule<Index, Point> kRules[] = {
    {kIsa, [](const Point& x) { return x[kIsa] > x.device.isa; },
     [](const Point& x) {
       return "isa=" + std::to_string(x[kIsa]) + " is above the device's x86-64 level " +
              std::to_string(x.device.isa);
     }},
    {kForm, [](const Point& x) { return x.dot() && (x.p.a_transposed() || !x.p.b_transposed()); },
     [](const Point&) { return std::string("form=1 (dot) needs layout nt: rows of A and B along K"); }},
    {kForm, [](const Point& x) { return x.dot() && x.packed(); },
     [](const Point&) { return std::string("form=1 (dot) does not read a B that is packed ahead"); }},
    {kForm, [](const Point& x) { return x.dot() && x.gated(); },
     [](const Point&) { return std::string("form=1 (dot) does not serve a gate"); }},
    {kForm, [](const Point& x) { return x.dot() && x.p.k < x.isa().lanes(); },
     [](const Point&) { return std::string("form=1 (dot) needs K of at least one vector"); }},
    {kMr, [](const Point& x) { return x[kMr] > x.p.m; },
     [](const Point& x) { return "mr=" + std::to_string(x[kMr]) + " exceeds M"; }},
    {kNv, [](const Point& x) { return x.gated() && x[kNv] % 2; },
     [](const Point& x) {
       return "nv=" + std::to_string(x[kNv]) + " vectors are not as many of one weight as of the other";
     }},
    {kNv, [](const Point& x) { return x.packed() && x.panel_columns() % x.nr() != 0; },
     [](const Point& x) {
       return "nv=" + std::to_string(x[kNv]) + " vectors do not divide the " +
              std::to_string(x.panel_columns()) + " columns of a packed panel";
     }},
    {kNv,
     [](const Point& x) {
       const int64_t temporaries = x.dot() ? std::min(x[kNv], x[kMr]) + 1 : x[kNv] + 1;
       return x.accumulators() + temporaries > x.isa().registers();
     },
     [](const Point& x) {
       return "mr*nv accumulators with their operands need more than the " +
              std::to_string(x.isa().registers()) + " vector registers";
     }},
    {kNv,
     [](const Point& x) {
       const int64_t least = x.gated() ? 2 : 1;
       const int64_t narrower = x.packed() ? x.nr() / 2 : x.nr() - least * (x.dot() ? 1 : x.isa().lanes());
       return x.n_tiles() == 1 && x[kNv] > least && narrower >= x.n();
     },
     [](const Point&) { return std::string("a narrower tile already covers N"); }},
    // Two FMA ports with a latency of 4 cycles need 8 independent sums; fewer only where D has no more.
    {kNv,
     [](const Point& x) {
       const int64_t vectors = ceil_div(x.n(), x.dot() ? 1 : x.isa().lanes());
       const int64_t most = std::min<int64_t>(8, x.p.m * (x.packed() ? x.most_vectors(vectors) : vectors));
       return x.accumulators() < most &&
              !(x.p.m < 4 && x[kMr] == x.p.m && x.accumulators() >= std::min<int64_t>(4, most));
     },
     [](const Point& x) {
       return "mr*nv=" + std::to_string(x.accumulators()) + " sums do not hide the FMA latency";
     }},
    // Loads per FMA (measured: tiles at 1.04 ran at half speed). Few rows cannot do better, nor four with a
    // gate: its even vectors are 2, as 4 x 4 sums need more than 16 registers.
    {kNv,
     [](const Point& x) {
       return x.p.m >= (x.gated() ? 5 : 4) && x.n() >= 4 * x.isa().lanes() &&
              double(x[kMr] + x[kNv]) > x.most_loads() * double(x.accumulators());
     },
     [](const Point& x) {
       return "(mr+nv)/(mr*nv)=" + number(double(x[kMr] + x[kNv]) / double(x.accumulators())) +
              " loads per FMA exceed " + number(x.most_loads());
     }},
    {kKc,
     [](const Point& x) { return x.dot() && x[kKc] < x.p.k && (x[kKc] % x.isa().lanes() || x[kKc] < 512); },
     [](const Point&) { return std::string("form=1 (dot) needs kc=K, or whole vectors and at least 512"); }},
    {kKc, [](const Point& x) { return x[kKc] < std::min<int64_t>(x.p.k, 64) && x.p.m > 8; },
     [](const Point&) { return std::string("kc below 64 pays for D's traffic only with few rows"); }},
    {kKc,
     [](const Point& x) {
       const int64_t narrow = std::min(x[kMr], x.nr());
       return !x.dot() && !x.streams_b() && x[kKc] > 64 &&
              double(x.bytes() * x[kKc] * narrow) > 1.0 * double(x.device.l1d);
     },
     [](const Point&) { return std::string("a panel of kc steps does not fit the L1 data cache"); }},
    {kKc,
     [](const Point& x) {
       return x.streams_b() && x[kKc] > 256 &&
              double(x.bytes() * (x.p.m * x.p.k + 2 * x[kKc] * x.panel_columns())) >
                  0.6 * double(x.device.l2);
     },
     [](const Point&) { return std::string("A and two blocks of a panel of B exceed 0.6 of L2"); }},
    // f32, 32 x 4096 x 4096 with 8 x 2 tiles: 512 steps took 0.86 of the time of 2048.
    {kKc, [](const Point& x) { return x.streams_b() && x.m_tiles() > 1 && x[kKc] > 512 && x.p.k > 1024; },
     [](const Point&) { return std::string("blocks of B that tiles of rows share are at most 512 deep"); }},
    {kUnroll, [](const Point& x) { return x[kUnroll] > x[kKc]; },
     [](const Point&) { return std::string("ku exceeds kc"); }},
    {kUnroll,
     [](const Point& x) {
       if (x.dot()) return x[kUnroll] > 2;
       const int64_t sums = x.accumulators();
       const int64_t least = x[kKc] >= 4 && sums <= 26 ? 4 : x[kKc] >= 2 ? 2 : 1;
       return x[kUnroll] < least || (x[kUnroll] == 8 && sums > 20);
     },
     [](const Point&) {
       return std::string(
           "ku outside of what pays: 4; 8 for up to 20 sums, 2 for more than 26; 1 or 2 for form=1");
     }},
    {kPack, [](const Point& x) { return x.dot() && (x[kPack] & kPackB); },
     [](const Point&) { return std::string("form=1 (dot) reads B in place"); }},
    {kPack, [](const Point& x) { return x.dot() && (x[kPack] & kPackA) && x.n_tiles() == 1; },
     [](const Point&) { return std::string("packing A that is read once"); }},
    {kPack, [](const Point& x) { return x.packed() && (x[kPack] & kPackB); },
     [](const Point&) { return std::string("B is packed ahead"); }},
    {kPack,
     [](const Point& x) { return !x.dot() && !x.packed() && x.p.b_transposed() && !(x[kPack] & kPackB); },
     [](const Point&) { return std::string("B with rows along K must be packed, or use form=1"); }},
    {kPack, [](const Point& x) { return x.gated() && !x.packed() && !(x[kPack] & kPackB); },
     [](const Point&) {
       return std::string("the two weights of a gate must be packed: side by side in one panel");
     }},
    {kPack, [](const Point& x) { return (x[kPack] & kPackA) && x.n_tiles() == 1 && x.p.a_transposed(); },
     [](const Point&) { return std::string("packing A that is read once, in the order it is stored"); }},
    {kPack,
     [](const Point& x) {
       return (x[kPack] & kPackB) && x.m_tiles() == 1 && !x.p.b_transposed() && !x.gated();
     },
     [](const Point&) { return std::string("packing B that is read once, in the order it is stored"); }},
    {kPack,
     [](const Point& x) {
       return !x.dot() && !x.packed() && !(x[kPack] & kPackB) && x.n() * x.bytes() > 4096 &&
              x.m_tiles() > 2 && x.p.k > 64;
     },
     [](const Point&) {
       return std::string("unpacked rows of B beyond one page each (measured: half speed)");
     }},
    {kMc, [](const Point& x) { return x[kMc] < x.p.m && x[kMc] < 2 * x[kMr]; },
     [](const Point&) { return std::string("mc below two tiles"); }},
    {kMc,
     [](const Point& x) {
       const int64_t rows = std::min(ceil_div(x[kMc], x[kMr]) * x[kMr], x.p.m);
       return (x[kPack] & kPackA) && double(x.bytes() * rows * x[kKc]) > 0.75 * double(x.device.l2);
     },
     [](const Point&) { return std::string("the packed block of A exceeds 3/4 of L2"); }},
    {kNc,
     [](const Point& x) {
       return x[kNc] < x.n() && (x[kPack] & kPackB) == 0 && !blocks_sums(x) && !x.streams_b();
     },
     [](const Point&) { return std::string("nc only blocks a packed B"); }},
    {kNc, [](const Point& x) { return blocks_sums(x) && sums_bytes(x) > double(x.device.l3) / 2; },
     [](const Point& x) {
       return "the sums of a block of D, " + number(sums_bytes(x) / 1048576) + " MiB beside D " +
              (x.gated() ? "(of both weights)" : "(which residual or multiplier may be)") +
              ", exceed half of the last-level cache";
     }},
    {kLoops, [](const Point& x) { return x[kLoops] == 1 && (x.m_tiles() == 1 || x.n_tiles() == 1); },
     [](const Point&) { return std::string("loops=1 is the same as 0 with one row or column of tiles"); }},
    {kLoops,
     [](const Point& x) {
       return x[kLoops] == 2 && (!(x[kPack] & kPackB) || x[kNc] < x.n() || x[kKc] >= x.p.k);
     },
     [](const Point&) {
       return std::string("loops=2 packs all of B once: needs pack B, nc=N and several blocks of K");
     }},
    {kLoops, [](const Point& x) { return x[kLoops] == 2 && x.bytes() * x.n() * x.p.k > x.device.l3 / 2; },
     [](const Point&) { return std::string("loops=2 needs the packed B in half of the last-level cache"); }},
    {kPrefetch, [](const Point& x) { return x[kPrefetch] && ((x[kPack] & kPackB) || !x.may_ask_ahead()); },
     [](const Point&) {
       return "prefetch is for B read in place, or packed ahead for up to " + std::to_string(kFewPackedRows) +
              " rows or for a batch";
     }},
    {kPrefetch,
     [](const Point& x) {
       return x[kPrefetch] > kAhead && x.packed() && x.panel_columns() / x.nr() * x.m_tiles() > 1;
     },
     [](const Point&) {
       return "tiles that share a block ask for the next one, with prefetch=" + text(kAhead);
     }},
    // What follows a block in memory is what is multiplied next.
    {kPrefetch,
     [](const Point& x) {
       return x[kPrefetch] && x.packed() &&
              ((x[kKc] < x.p.k && x[kNc] > x.panel_columns()) || x[kMc] < x.p.m || x[kLoops]);
     },
     [](const Point&) {
       return std::string("prefetch of a B packed ahead needs nc of a panel or kc=K, mc=M and loops=0");
     }},
    {kPrefetch,
     [](const Point& x) { return x[kPrefetch] == kNextTile && (x[kForm] != 1 || x.packed() || x.p.gate); },
     [](const Point&) {
       return "prefetch=" + std::to_string(kNextTile) + " is for form=1 and B in place, without a gate";
     }},
    {kCut, [](const Point& x) { return !x.why_no_cut().empty(); },
     [](const Point& x) { return x.why_no_cut(); }},
};

} // namespace

CpuTiling::CpuTiling(const Gemm& p, const Config& c)
    : isa{at(c, kIsa), p.a}, dot(at(c, kForm) == 1), mr(at(c, kMr)), nv(at(c, kNv)),
      kc(std::min(at(c, kKc), p.k)), mc(at(c, kMc)), nc(at(c, kNc)), unroll(at(c, kUnroll)),
      pack_a(at(c, kPack) & kPackA), pack_b(at(c, kPack) & kPackB), loops(at(c, kLoops)),
      prefetch(at(c, kPrefetch)), nr(dot ? nv : nv * isa.lanes()), dr(p.gate ? nr / 2 : nr),
      packed_b(p.packed_b), pitch(packed_b ? packed_layout(p).columns : nr), m_tiles(ceil_div(p.m, mr)),
      n_tiles(ceil_div(p.n, dr)), m_rest(p.m - (m_tiles - 1) * mr), n_rest(p.n - (n_tiles - 1) * dr),
      mc_tiles(std::clamp<int64_t>(ceil_div(mc, mr), 1, m_tiles)),
      nc_tiles(loops == 2 ? n_tiles : std::clamp<int64_t>(ceil_div(nc, nr), 1, n_tiles)),
      k_blocks(ceil_div(p.k, kc)), a_depth(dot ? round_up(kc, isa.lanes()) : kc),
      a_elements(pack_a ? mc_tiles * mr * a_depth : 0),
      b_elements(pack_b ? nc_tiles * nr * (loops == 2 ? p.k : kc) : 0), sums_ld(0), sums_elements(0),
      shares(packed_b && prefetch ? pitch / nr * (p.ranged(Size::m) ? 1 : m_tiles) : 0),
      lines(shares ? ceil_div(unroll * pitch * size_of(p.a), kLine * shares) : 0) {
  if (!p.gate && (!reads_matrix(p) || (k_blocks == 1 && is_cheap(p.epilogue)))) return;
  sums_ld = ceil_div(packed_b && p.gate ? pitch : nr, isa.lanes()) * isa.lanes();
  sums_elements = mr * sums_ld * (k_blocks == 1 ? 1 : mc_tiles * nc_tiles);
}

std::string CpuTile::why_not(const Gemm& p, const std::string& arch) const {
  if (arch != "cpu") return "cpu_tile generates x86-64 code, not " + arch;
  if (p.groups) return "cpu_tile serves no groups of rows";
  if (p.a != p.d || p.a != p.b || (p.a != Type::f32 && p.a != Type::f64))
    return "cpu_tile serves f32 and f64";
  return "";
}

std::vector<Parameter> CpuTile::parameters(const Gemm& p, const Device& device) const {
  std::vector<int64_t> levels = device.isa >= 4   ? std::vector<int64_t>{4, 3}
                                : device.isa >= 3 ? std::vector<int64_t>{3}
                                                  : std::vector<int64_t>{1};
  const bool dot = p.layout == Layout::nt && !p.gate && !p.packed_b;
  std::vector<Parameter> out = {
      {"isa", levels, "x86-64 level of the code: 4 AVX-512, 3 AVX2 and FMA, 1 SSE2"},
      {"form", dot ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
       "0: vectors along N, rank-1 updates; 1: vectors along K, dot products"},
      {"mr", row_counts(p.m), "rows of a register tile", {1, std::min<int64_t>(28, p.m)}},
      {"nv", {1, 2, 3, 4, 5, 6, 8}, "columns of a register tile, in vectors (form 1: in columns)", {1, 28}},
      {"kc", up_to({16, 64, 128, 192, 256, 384, 512, 1024, 2048}, p.k), "depth of a block of K", {1, p.k}},
      {"ku", {1, 2, 4, 8}, "steps of K per iteration", {1, 8}},
      {"pack", {0, kPackA, kPackB, kPackA | kPackB}, "copy into panels: 1 A, 2 B, 3 both"},
      {"mc", up_to({48, 112, 224, 448}, p.m), "rows of a block of A, rounded up to tiles", {1, p.m}},
      {"nc",
       p.packed_b ? up_to({packed_layout(p).columns, 512, 1024, 2048}, p.sum_columns())
                  : up_to({512, 1024, 2048}, p.sum_columns()),
       "columns of a block of B, rounded up to tiles",
       {1, p.sum_columns()}},
      {"loops",
       {0, 1, 2},
       "0: a panel of B stays while rows of tiles pass; 1: a panel of A stays; 2: as 0, all of B packed "
       "first and "
       "blocks of K innermost"},
      {"prefetch",
       p.packed_b ? std::vector<int64_t>{0, kAhead, 2 * kAhead}
       : dot      ? std::vector<int64_t>{0, 4, 16, 64, kNextTile}
                  : std::vector<int64_t>{0, 4, 16, 64},
       "steps of K (form 1: vectors) by which B is prefetched, when read in place, or packed ahead; the "
       "latter "
       "by a block where tiles share it. 512, with form 1: the next tile's rows",
       {0, kNextTile}}};
  if (has_cut(p)) out.push_back(cut_parameter(p));
  return out;
}

std::string CpuTile::why_illegal(const Gemm& p, const Device& device, const Config& config) const {
  if (!p.ranged()) return first_broken(kRules, Point{p, device, config});
  // Blocks of K end at whole vectors, wherever else the config is legal.
  const Gemm largest = p.at(p.sizes());
  if (const Point point{largest, device, config};
      point.dot() && point[kKc] < p.k && point[kKc] % point.isa().lanes())
    return "form=1 (dot) needs kc of whole vectors, or of the largest K";
  std::string why;
  for (const Sizes& sizes : default_points(p)) {
    const Gemm one = p.at(sizes);
    why = first_broken(kRules, Point{one, device, config});
    if (why.empty()) break;
  }
  return why;
}

bool CpuTile::dead_end(const Gemm& p, const Device& device, const Config& config, size_t assigned) const {
  if (!p.ranged()) return breaks_newly(kRules, Point{p, device, config}, assigned);
  const std::vector<Sizes> points = default_points(p);
  return std::all_of(points.begin(), points.end(), [&](const Sizes& sizes) {
    const Gemm one = p.at(sizes);
    const Point point{one, device, config};
    return std::any_of(std::begin(kRules), std::end(kRules),
                       [&](const auto& rule) { return size_t(rule.after) < assigned && rule.broken(point); });
  });
}

/// Each element has one sum in each block of K (form=1: one in each lane, added up by halves), in the order
/// of K, and blocks are added in order. A level's fallback is the same whatever the config.
std::string CpuTile::sum_order(const Gemm& p, const std::string&, const Config& config) const {
  const CpuTiling t(p, config);
  return "cpu_tile isa=" + text(t.isa.level) + (t.dot ? ", lanes" : "") + " in the order of K" +
         (t.k_blocks > 1 ? " by blocks of " + text(t.kc) : "");
}

std::vector<Choice> CpuTile::fallbacks(const Gemm& p, const std::string&, const Config& config) const {
  std::vector<Choice> out;
  for (int64_t level : {3, 1}) {
    if (at(config, kIsa) <= level) continue;
    const std::optional<Config> best = cheapest(*this, p.at(p.sizes()), modest_cpu(level));
    if (!best)
      throw Error("no config is legal for x86-64 level " + std::to_string(level), p.key(),
                  "so the library would not run there", "a defect of cpu_tile's rules");
    out.push_back({name(), *best});
  }
  return out;
}

int64_t CpuTile::revision_for(const Gemm& p, const Config&) const { return has_gelu(p) ? 2 : revision(); }

Gemm CpuTile::awkward(const Gemm& p, const Config& config) const {
  const CpuTiling t(p, config);
  Gemm small = p;
  small.m = t.mr + 1; // a whole tile and one row: ragged, and cheap to compile
  small.n = t.dr + t.isa.lanes() / 2 + 1;
  // A second, ragged block of K where blocks are short enough; otherwise a ragged end of the only one. Blocks
  // of the dot form are whole vectors, so that one block must do unless the problem itself has several.
  const int64_t ragged = (t.dot ? 3 * t.isa.lanes() : 0) + 2 * t.unroll + 1;
  const bool second_block = t.dot ? t.k_blocks > 1 && t.kc <= 512 : t.kc <= 512;
  small.k = second_block ? t.kc + ragged : std::min(ragged, t.kc);
  small.batch = p.batch > 1 ? 2 : 1;
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) small.least[i] = 0;
  return small;
}

} // namespace deepgen
