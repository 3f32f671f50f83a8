#include "templates/cpu/cpu_dot.h"

#include "base/kernel/cpu_isa.h"
#include "base/problem/packed_b.h"
#include "base/text/error.h"
#include "templates/core/cheapest.h"
#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_dot_cost.h"
#include "templates/cpu/cpu_stream.h"
#include "templates/ir/epilogue.h"

#include <algorithm>
#include <bit>

namespace deepgen {
namespace {

enum Index { kIsa, kDot, kForm, kMr, kNv, kKc, kUnroll, kPack, kMc, kNc, kLoops, kPrefetch, kCut };
constexpr std::string_view kNames[] = {"isa",  "dot", "form", "mr",    "nv",       "kc", "ku",
                                       "pack", "mc",  "nc",   "loops", "prefetch", "cut"};
constexpr int64_t kTileColumns = 16, kFewRows = 16;
constexpr int64_t kQuadParts = 4;    ///< sums of a vector of columns where its lanes have groups of K
constexpr int64_t kFewColumns = 256; ///< of a block of D: A would be packed too often
constexpr int64_t kLine = 64;        ///< bytes of a line of the cache

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

/// Row counts of a tile: a few that suit every level, and those that divide M into equal panels.
std::vector<int64_t> row_counts(int64_t m) {
  constexpr int64_t kMost = 14;
  std::vector<int64_t> out = {16, 32}; // AMX
  for (int64_t v : {1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 14})
    if (v <= m) out.push_back(v);
  const int64_t panels = ceil_div(m, kMost);
  for (int64_t p = panels; p < panels + 2; ++p) out.push_back(ceil_div(m, p));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<int64_t> kinds_of(Type a) {
  const auto all = [](std::initializer_list<DotKind> kinds) {
    std::vector<int64_t> out;
    for (DotKind kind : kinds) out.push_back(int64_t(kind));
    return out;
  };
  if (a == Type::f16 || a == Type::f32) return all({DotKind::f32});
  if (a == Type::bf16) return all({DotKind::f32, DotKind::bf16, DotKind::tiles});
  return all({DotKind::pairs, DotKind::bytes, DotKind::tiles});
}

/// Of code for a level that multiplies so and writes D of the type; 0: there is none. AMX of bf16 rounds them
/// by AVX512-BF16, where D is bf16.
int64_t isa_code(int64_t level, const Dot& dot, Type d) {
  switch (dot.kind) {
  case DotKind::f32:
  case DotKind::pairs:
    return level;
  case DotKind::bf16:
    return level == 4 ? 4 | isa_avx512bf16 : 0;
  case DotKind::bytes:
    return level == 4 ? 4 | isa_avx512vnni : level == 3 ? 3 | isa_avxvnni : 0;
  case DotKind::tiles:
    if (level != 4) return 0;
    return dot.rounds_bf16() && d == Type::bf16 ? 4 | isa_amx | isa_avx512bf16 : 4 | isa_amx;
  }
  return 0;
}

/// The values that rules look at; everything is known from the parameters up to the rule's own.
struct DotPoint {
  const Gemm& p;
  const Device& device;
  const Config& config;
  int64_t present; ///< isa_of(device)
  [[gnu::always_inline]] int64_t operator[](Index i) const { return at(config, i); }
  VectorIsa isa() const { return {(*this)[kIsa], Type::f32}; }
  Dot dot() const { return {DotKind((*this)[kDot]), p.a, p.b, p.packed_b}; }
  bool tiles() const { return dot().tiles(); }
  bool quads() const { return (*this)[kForm] == kQuads; }
  DotForm form() const { return form_of((*this)[kForm]); }
  bool along() const { return form() == DotForm::along_k && !tiles(); }
  bool turned() const { return form() == DotForm::along_k && tiles(); }
  int64_t halves() const { return p.gate ? 2 : 1; }
  int64_t lanes() const { return isa().lanes(); }
  int64_t nr() const { return along() ? (*this)[kNv] : (*this)[kNv] * lanes(); }
  int64_t dr() const { return nr() / halves(); }
  int64_t parts() const { return quads() ? kQuadParts : 1; } ///< of a vector of columns
  int64_t sums() const { return (*this)[kMr] * (*this)[kNv] * parts(); }
  bool streams_b() const { return p.packed_b && p.m <= kFewPackedRows; }
  int64_t m_tiles() const { return ceil_div(p.m, (*this)[kMr]); }
  int64_t n_tiles() const { return ceil_div(p.n, dr()); }
  int64_t chunk() const { return lanes() * dot().group(); }
  int64_t words() const { return ceil_div(std::min((*this)[kKc], p.k), dot().group()); }
  int64_t k_blocks() const { return ceil_div(p.k, (*this)[kKc]); }
  bool packed() const { return p.packed_b; }
  /// A block of A has all of its rows, so that AMX's is packed once.
  bool all_rows() const { return tiles() && (*this)[kPack] && (*this)[kMc] >= p.m; }
  bool large_block_of_a() const {
    const double rows = double(std::min(ceil_div((*this)[kMc], (*this)[kMr]), m_tiles()) * (*this)[kMr]);
    return (*this)[kPack] && several_tiles() && 4 * double(words()) * rows > 0.75 * double(device.l2);
  }
  bool a_passes_once() const { return (*this)[kLoops] == 1 && (*this)[kNc] < p.n; }
  bool several_tiles() const { return (*this)[kMc] > 2 * (*this)[kMr]; }
  std::string why_no_cut() const {
    return has_cut(p) ? deepgen::why_no_cut(p, cut_of(config), m_tiles(), n_tiles()) : "";
  }
  int64_t panel_columns() const { return packed_layout(p).columns; }
  /// Of a tile of a packed panel: `vectors` are what B has.
  int64_t most_vectors(int64_t vectors) const {
    return int64_t(std::bit_floor(uint64_t(std::min(vectors, panel_columns() / lanes()))));
  }
};

int64_t registers_of(const DotPoint& x) {
  const int64_t nv = x[kNv];
  if (x.quads()) return x.sums() + x[kMr] + 1;
  const int64_t shifts = x.dot().shifts_a() ? 1 + (x.form() == DotForm::panel ? 0 : nv) : 0;
  const int64_t product = x.dot().kind == DotKind::pairs ? 1 : 0;
  const int64_t converted = x.form() == DotForm::in_place         ? 1
                            : x.dot().splits() || x.dot().mixed() ? nv + 1
                                                                  : 0;
  return x.sums() + nv + 1 + shifts + product + converted;
}

const Rule<Index, DotPoint> kDotRules[] = {
    {kIsa, [](const DotPoint& x) { return x[kIsa] > level_of(x.present); },
     [](const DotPoint& x) {
       return "isa=" + text(x[kIsa]) + " is above the device's x86-64 level " + text(level_of(x.present));
     }},
    {kDot,
     [](const DotPoint& x) {
       const int64_t code = isa_code(x[kIsa], x.dot(), x.p.d);
       return !code || !runs_on(code, x.present);
     },
     [](const DotPoint& x) {
       const int64_t code = isa_code(x[kIsa], x.dot(), x.p.d);
       return "dot=" + text(x[kDot]) +
              (code ? " needs " + isa_text(code) + ", the device has " + isa_text(x.present)
                    : " is not for isa=" + text(x[kIsa]));
     }},
    {kForm, [](const DotPoint& x) { return x.packed() && x.form() != DotForm::panel; },
     [](const DotPoint&) { return std::string("a B that is packed ahead is in panels: form is 0"); }},
    {kForm,
     [](const DotPoint& x) {
       return x.quads() && (!x.dot().mixed() || x.p.b != Type::i8 || !x.packed() || x.p.a_transposed());
     },
     [](const DotPoint&) {
       return std::string("form=3 is for i8 that is packed ahead under f32 with rows along K");
     }},
    {kForm, [](const DotPoint& x) { return x[kForm] == kAlongAsking && x.tiles(); },
     [](const DotPoint&) { return std::string("AMX does not ask ahead for rows of B in place: form is 1"); }},
    {kForm, [](const DotPoint& x) { return x.tiles() && x.form() == DotForm::in_place; },
     [](const DotPoint&) { return std::string("AMX takes B from panels or along K: form is 0 or 1"); }},
    {kForm, [](const DotPoint& x) { return x.turned() && (!x.p.b_transposed() || x.p.k % x.chunk()); },
     [](const DotPoint& x) {
       return "form=1 with AMX needs rows of B along K, and K a multiple of " + text(x.chunk());
     }},
    {kForm, [](const DotPoint& x) { return x.along() && (x.p.a_transposed() || !x.p.b_transposed()); },
     [](const DotPoint&) { return std::string("form=1 needs layout nt: rows of A and B along K"); }},
    {kForm, [](const DotPoint& x) { return x.along() && x.p.k < x.chunk(); },
     [](const DotPoint&) { return std::string("form=1 needs K of at least one vector"); }},
    {kForm, [](const DotPoint& x) { return x.form() == DotForm::in_place && x.p.b_transposed(); },
     [](const DotPoint&) { return std::string("form=2 needs B with rows along N"); }},
    {kForm, [](const DotPoint& x) { return x.form() == DotForm::in_place && x.p.m > kFewRows; },
     [](const DotPoint&) { return "form=2 is for M of at most " + text(kFewRows); }},
    {kForm, [](const DotPoint& x) { return x.along() && x.p.m > kFewRows && x.dot().mixed(); },
     [](const DotPoint&) { return "form=1 under f32 is for M of at most " + text(kFewRows); }},
    {kMr, [](const DotPoint& x) { return x.tiles() && x[kMr] != kTileRows && x[kMr] != 2 * kTileRows; },
     [](const DotPoint&) { return std::string("AMX has tiles of 16 rows: mr is 16 or 32"); }},
    {kMr, [](const DotPoint& x) { return x.tiles() && x[kMr] > kTileRows && x.p.m <= kTileRows; },
     [](const DotPoint&) { return std::string("a smaller mr already covers M"); }},
    {kMr, [](const DotPoint& x) { return !x.tiles() && x[kMr] > x.p.m; },
     [](const DotPoint& x) { return "mr=" + text(x[kMr]) + " exceeds M"; }},
    {kNv, [](const DotPoint& x) { return x[kNv] % x.halves() != 0; },
     [](const DotPoint& x) {
       return "nv=" + text(x[kNv]) + " vectors are not as many of one weight as of the other";
     }},
    {kNv, [](const DotPoint& x) { return x.packed() && x.panel_columns() % x.nr() != 0; },
     [](const DotPoint& x) {
       return "nv=" + text(x[kNv]) + " vectors do not divide the " + text(x.panel_columns()) +
              " columns of a packed panel";
     }},
    {kNv, [](const DotPoint& x) { return x.tiles() && x.nr() > 2 * kTileColumns; },
     [](const DotPoint&) { return std::string("AMX has room for two tiles along N: nv is 1 or 2"); }},
    {kNv, [](const DotPoint& x) { return !x.tiles() && registers_of(x) > x.isa().registers(); },
     [](const DotPoint& x) {
       return "mr*nv sums with their operands need " + text(registers_of(x)) + " of the " +
              text(x.isa().registers()) + " vector registers";
     }},
    {kNv,
     [](const DotPoint& x) {
       const int64_t unit = x.along() ? 1 : x.lanes();
       return x.n_tiles() == 1 && x[kNv] > x.halves() && x.dr() - x.p.n >= unit;
     },
     [](const DotPoint&) { return std::string("a narrower tile already covers N"); }},
    // Two ports and a latency of 4 to 5 cycles; fewer sums only where D has no more, or memory decides.
    {kNv,
     [](const DotPoint& x) {
       const int64_t vectors = x.halves() * ceil_div(x.p.n, x.along() ? 1 : x.lanes());
       const int64_t all = x.p.m * (x.packed() ? x.most_vectors(vectors) : vectors);
       const int64_t most = std::min<int64_t>(x.p.m < 4 ? 4 : 8, all);
       return !x.tiles() && x.sums() < most;
     },
     [](const DotPoint& x) { return "mr*nv=" + text(x.sums()) + " sums do not hide the latency"; }},
    {kNv,
     [](const DotPoint& x) {
       return !x.tiles() && x.p.m >= 4 && x.p.n >= 4 * x.lanes() &&
              double(x[kMr] + x[kNv] * x.parts()) > 0.75 * double(x.sums());
     },
     [](const DotPoint&) { return std::string("(mr+nv)/(mr*nv) loads for each product exceed 0.75"); }},
    {kKc, [](const DotPoint& x) { return x[kKc] < x.p.k && (x[kKc] % x.chunk() || x[kKc] < 256); },
     [](const DotPoint& x) {
       return "kc is K, or at least 256 and a multiple of a vector's " + text(x.chunk()) + " elements";
     }},
    {kKc,
     [](const DotPoint& x) {
       return x.form() == DotForm::panel && !x.tiles() && !x.streams_b() && x[kKc] > 512 &&
              4 * x.words() * std::min(x[kMr], x.nr()) > x.device.l1d;
     },
     [](const DotPoint&) { return std::string("a panel of kc elements does not fit the L1 data cache"); }},
    {kKc,
     [](const DotPoint& x) {
       const double a = double(x.p.m * x.p.k * size_of(x.p.a));
       return x.streams_b() && !x.tiles() && x[kKc] > 512 &&
              a + 2 * double(x.words() * packed_layout(x.p).row_bytes()) > 0.6 * double(x.device.l2);
     },
     [](const DotPoint&) { return std::string("A and two blocks of a panel of B exceed 0.6 of L2"); }},
    {kUnroll, [](const DotPoint& x) { return x[kUnroll] > 1 && (x.tiles() || x[kUnroll] > x.words()); },
     [](const DotPoint&) { return std::string("ku exceeds a block's words, or is not 1 with AMX"); }},
    // LLVM loads a second step's operands ahead, and keeps all sums on the stack where these find no
    // register: 14 x 2 tiles took 2.1 times as long as 9 x 3 (bf_gelu, benchmarks/cpu/results/epyc5-dot*.md).
    // None spills of 27 sums.
    {kUnroll,
     [](const DotPoint& x) {
       return x[kUnroll] > 1 && !x.tiles() && x.isa().level >= 4 && x.sums() > x.isa().registers() - 5;
     },
     [](const DotPoint& x) {
       return "ku=1 is for " + text(x.sums()) + " sums: a second step makes them spill";
     }},
    {kUnroll, [](const DotPoint& x) { return x.along() && x[kUnroll] > 2; },
     [](const DotPoint&) { return std::string("ku is 1 or 2 with form=1"); }},
    {kPack, [](const DotPoint& x) { return x[kPack] && x.quads(); },
     [](const DotPoint&) { return std::string("form=3 reads A in place"); }},
    {kPack, [](const DotPoint& x) { return x[kPack] && x.along() && (x[kMr] == 1 || x.dot().mixed()); },
     [](const DotPoint&) {
       return std::string("with form=1 one row of A, or one of f32, is read in place");
     }},
    {kPack, [](const DotPoint& x) { return !x[kPack] && x.along() && x.p.m > kFewRows; },
     [](const DotPoint&) { return "form=1 packs A of more than " + text(kFewRows) + " rows"; }},
    // 8 x 3 took 1.2 to 1.5 times as long as 8 x 2 (benchmarks/cpu/results/xeon-amx-fit.csv).
    {kPack,
     [](const DotPoint& x) {
       const bool counts = x[kPack] && x.along() && x.dot().shifts_a();
       return counts && registers_of(x) >= x.isa().registers();
     },
     [](const DotPoint&) { return std::string("sums and what counts 128 more find no registers"); }},
    {kPack,
     [](const DotPoint& x) {
       return !x[kPack] && !x.along() && (x.turned() || x.p.a_transposed() || !x.dot().raw());
     },
     [](const DotPoint&) {
       return std::string("A must be packed: where it is stored transposed, is converted, or has B's place");
     }},
    {kPack, [](const DotPoint& x) { return !x[kPack] && x.tiles() && x.p.k % x.chunk(); },
     [](const DotPoint& x) { return "AMX reads A in place where K is a multiple of " + text(x.chunk()); }},
    {kMc, [](const DotPoint& x) { return x[kMc] < x.p.m && x[kMc] < 2 * x[kMr]; },
     [](const DotPoint&) { return std::string("mc below two tiles"); }},
    {kMc, [](const DotPoint& x) { return !x.all_rows() && x.large_block_of_a(); },
     [](const DotPoint&) { return std::string("the packed block of A exceeds 3/4 of L2"); }},
    {kMc,
     [](const DotPoint& x) {
       const double bytes = 4 * double(x.p.m) * double(ceil_div(x.p.k, x.dot().group()));
       return x.all_rows() && x.several_tiles() && bytes > double(std::max(x.device.l3 / 2, x.device.l2));
     },
     [](const DotPoint&) { return std::string("the packed A exceeds half of the last-level cache"); }},
    {kNc, [](const DotPoint& x) { return x[kNc] < x.p.n && x.form() != DotForm::panel; },
     [](const DotPoint&) { return std::string("nc only blocks a packed B"); }},
    {kNc, [](const DotPoint& x) { return x[kNc] < x.p.n && x[kNc] < x.dr(); },
     [](const DotPoint&) { return std::string("nc below a tile"); }},
    {kNc,
     [](const DotPoint& x) { return x[kNc] < std::min(x.p.n, kFewColumns) && !x.packed() && !x.all_rows(); },
     [](const DotPoint&) {
       return "nc below " + text(kFewColumns) + " is for AMX with all rows of A packed, once";
     }},
    {kNc,
     [](const DotPoint& x) {
       const double columns = double(std::min(x[kNc] + x.dr(), x.p.n) * x.halves());
       return x.form() == DotForm::panel && !x.packed() && x[kNc] > 512 &&
              4 * columns * double(ceil_div(x.p.k, x.dot().group())) > double(x.device.l3) / 2;
     },
     [](const DotPoint&) { return std::string("the packed B exceeds half of the last-level cache"); }},
    {kNc,
     [](const DotPoint& x) {
       const double rows = double(std::min(x[kMc] + x[kMr], x.p.m));
       const double columns = double(std::min(x[kNc] + x.dr(), x.p.n) * x.halves());
       return x.k_blocks() > 1 && x[kMc] > 2 * x[kMr] && 4 * rows * columns > double(x.device.l3) / 2;
     },
     [](const DotPoint&) {
       return std::string("the sums of a block of D exceed half of the last-level cache");
     }},
    {kLoops,
     [](const DotPoint& x) {
       return x[kLoops] == 2 && (!x.tiles() || x.form() != DotForm::panel || x.k_blocks() == 1);
     },
     [](const DotPoint&) {
       return std::string("loops=2 is for AMX with panels of B and several blocks of K");
     }},
    {kLoops, [](const DotPoint& x) { return x.all_rows() && !x.a_passes_once() && x.large_block_of_a(); },
     [](const DotPoint&) { return std::string("an A packed once that exceeds 3/4 of L2 is for loops=1"); }},
    {kLoops, [](const DotPoint& x) { return x[kLoops] && (x.m_tiles() == 1 || x.n_tiles() == 1); },
     [](const DotPoint&) {
       return std::string("with one row or column of tiles all loops are the same: 0");
     }},
    {kPrefetch, [](const DotPoint& x) { return x.packed() && x[kPrefetch] && !x.streams_b(); },
     [](const DotPoint&) { return "prefetch is for at most " + text(kFewPackedRows) + " rows"; }},
    // What follows a block in memory is what is multiplied next.
    {kPrefetch,
     [](const DotPoint& x) {
       return x.packed() && x[kPrefetch] &&
              ((x[kKc] < x.p.k && x[kNc] * x.halves() > x.panel_columns()) || x[kMc] < x.p.m || x[kLoops]);
     },
     [](const DotPoint&) { return std::string("prefetch needs nc of a panel or kc=K, mc=M and loops=0"); }},
    {kCut, [](const DotPoint& x) { return !x.why_no_cut().empty(); },
     [](const DotPoint& x) { return x.why_no_cut(); }},
};

/// modest_cpu() with the extensions of `isa`.
Device modest_device(int64_t isa) {
  Device device = modest_cpu(level_of(isa));
  device.features = {"avx512bf16", "avx512vnni", "avxvnni"};
  limit_features(device, isa);
  return device;
}

/// What CPUs there are, best first: a kernel for each, where it may be chosen.
std::vector<int64_t> isas_of(Type a) {
  if (is_integer(a)) return {4 | isa_avx512vnni, 4, 3 | isa_avxvnni, 3, 1};
  if (a == Type::bf16) return {4 | isa_avx512bf16, 4, 3, 1};
  return {4, 3, 1};
}

} // namespace

DotTiling::DotTiling(const Gemm& p, const Config& c)
    : isa{at(c, kIsa), Type::f32}, dot{DotKind(at(c, kDot)), p.a, p.b, p.packed_b}, d(p.d),
      form(form_of(at(c, kForm))), asks(at(c, kForm) == kAlongAsking), quads(at(c, kForm) == kQuads),
      mr(at(c, kMr)), nv(at(c, kNv)), kc(std::min(at(c, kKc), p.k)), mc(at(c, kMc)), nc(at(c, kNc)),
      unroll(at(c, kUnroll)), prefetch(p.packed_b ? at(c, kPrefetch) : 0), pack_a(at(c, kPack)),
      a_stays(at(c, kLoops) == 1), by_columns(at(c, kLoops) == 2), packed_b(p.packed_b),
      turned(dot.tiles() && form == DotForm::along_k), halves(p.gate ? 2 : 1),
      nr(form == DotForm::along_k && !turned ? nv : nv * isa.lanes()), dr(nr / halves),
      pitch(packed_b ? packed_layout(p).columns : nr), up(packed_b ? packed_layout(p).width() : dr),
      chunk(isa.lanes() * dot.group()), m_tiles(ceil_div(p.m, mr)), n_tiles(ceil_div(p.n, dr)),
      m_rest(p.m - (m_tiles - 1) * mr), n_rest(p.n - (n_tiles - 1) * dr),
      mc_tiles(std::clamp<int64_t>(ceil_div(mc, mr), 1, m_tiles)),
      nc_tiles(std::clamp<int64_t>(ceil_div(nc, dr), 1, n_tiles)), k_blocks(ceil_div(p.k, kc)),
      k_last(p.k - (k_blocks - 1) * kc), block_words(ceil_div(kc, dot.group())), a_panel(0), b_panel(0),
      a_panels(mc_tiles), b_panels(nc_tiles), sums_ld(halves * round_up(dr, isa.lanes())),
      sums_tile(mr * sums_ld), by_registers(!dot.tiles() && !p.gate && is_cheap(p.epilogue)),
      config_words(dot.tiles() ? kTileRows : 0), shares(prefetch ? up / dr * m_tiles : 0),
      lines(shares
                ? ceil_div((dot.tiles() ? kTileRows : unroll) * packed_layout(p).row_bytes(), kLine * shares)
                : 0) {
  if (dot.tiles()) block_words = round_up(block_words, kTileRows);
  if (asks_for_panel()) lines = ceil_div(kTileRows * nr * 4, kLine * mc_tiles);
  if (along()) block_words = round_up(block_words, isa.lanes());
  if (a_in_place()) a_panels = m_rest < mr ? 1 : 0;
  if (b_in_place()) b_panels = n_rest < dr ? 1 : 0;
  if (pack_a || (a_in_place() && a_panels)) a_panel = mr * (dot.mixed() ? kc : block_words);
  if ((form == DotForm::panel && !packed_b) || (b_in_place() && b_panels))
    b_panel = nr * (block_words + (dot.shifts_a() ? 1 : 0));
}

int64_t DotTiling::sums_words() const {
  if (k_blocks > 1) return sums_tile * mc_tiles * (by_columns ? 1 : nc_tiles);
  return by_registers ? 0 : sums_tile;
}

int64_t DotTiling::workspace_bytes() const {
  return 4 * (config_words + round_up(a_words(), 64) + round_up(b_words(), 64) + round_up(sums_words(), 64));
}

int64_t DotTiling::isa_code() const { return deepgen::isa_code(isa.level, dot, d); }

std::string CpuDot::why_not(const Gemm& p, const std::string& arch) const {
  if (arch != "cpu") return "cpu_dot generates x86-64 code, not " + arch;
  if (p.groups) return "cpu_dot serves no groups of rows";
  if (p.a != Type::bf16 && p.a != Type::f16 && !is_integer(p.a) && (p.a == p.b || p.a != Type::f32))
    return "cpu_dot serves bf16, f16, i8, u8 by i8, and f32 by bf16 and i8";
  return "";
}

std::vector<Parameter> CpuDot::parameters(const Gemm& p, const Device& device) const {
  std::vector<int64_t> levels = device.isa >= 4   ? std::vector<int64_t>{4, 3}
                                : device.isa >= 3 ? std::vector<int64_t>{3}
                                                  : std::vector<int64_t>{1};
  std::vector<Parameter> out = {
      {"isa", levels, "x86-64 level of the code: 4 AVX-512, 3 AVX2 and FMA, 1 SSE2"},
      {"dot", kinds_of(p.a), "0: f32, multiply-adds; 1: pairs, pmaddwd; 2: vdpbf16ps; 3: vpdpbusd; 4: AMX"},
      {"form",
       p.a == Type::f32 && p.b == Type::i8 ? std::vector<int64_t>{0, kQuads}
                                           : std::vector<int64_t>{0, 1, 2, kAlongAsking},
       "B: 0 packed; 1 in place along K (AMX: A packed); 2 in place along N; 3 packed, vectors of four "
       "columns "
       "by four of K; 4 as 1, asking for the next tile's rows"},
      {"mr", row_counts(p.m), "rows of a register tile", {1, 32}},
      {"nv", {1, 2, 3, 4, 6, 8}, "columns of a register tile, in vectors (form 1: in columns)", {1, 28}},
      {"kc", up_to({256, 512, 1024, 2048, 4096}, p.k), "depth of a block of K", {1, p.k}},
      {"ku", {1, 2, 4}, "words of K per iteration (form 1: vectors)", {1, 8}},
      {"pack", {0, 1}, "1: A is copied into panels"},
      {"mc", up_to({64, 128, 256, 512}, p.m), "rows of a block of A, rounded up to tiles", {1, p.m}},
      {"nc",
       p.packed_b ? up_to({packed_layout(p).width(), 256, 512, 1024}, p.n)
                  : up_to({64, 128, 256, 512, 1024}, p.n),
       "columns of a block of D, rounded up to tiles",
       {1, p.n}},
      {"loops",
       {0, 1, 2},
       "0: a panel of B stays while rows of tiles pass; 1: a panel of A stays; 2: as 0, all of K column by "
       "column (AMX)"}};
  if (p.packed_b)
    out.push_back({"prefetch",
                   {0, 64, 128},
                   "rows of words by which B is asked for ahead; by a block where tiles share it",
                   {0, 256}});
  if (has_cut(p)) out.push_back(cut_parameter(p));
  return out;
}

std::string CpuDot::why_illegal(const Gemm& p, const Device& device, const Config& config) const {
  const DotPoint point{p, device, config, isa_of(device)};
  return first_broken(kDotRules, point);
}

bool CpuDot::dead_end(const Gemm& p, const Device& device, const Config& config, size_t assigned) const {
  // What a device has is asked of strings: once for the instruction, and not for every leaf.
  const DotPoint point{p, device, config, assigned <= 2 ? isa_of(device) : 0};
  return breaks_newly(kDotRules, point, assigned);
}

double CpuDot::cost(const Gemm& p, const Device& device, const Config& config) const {
  if (!has_cut(p)) return dot_seconds(p, device, DotTiling(p, config));
  const DotTiling whole(p, config);
  const Gemm share = share_of(p, cut_of(config), whole.mr, whole.dr);
  return dot_seconds(share, device, DotTiling(share, config));
}

std::vector<Choice> CpuDot::fallbacks(const Gemm& p, const std::string&, const Config& config) const {
  const int64_t own = DotTiling(p, config).isa_code();
  std::vector<Choice> out;
  for (int64_t isa : isas_of(p.a)) {
    if (runs_on(own, isa) || level_of(isa) > level_of(own)) continue;
    const std::optional<Config> best = cheapest(*this, p, modest_device(isa));
    if (!best)
      throw Error("no config is legal for " + isa_text(isa), p.key(), "so the library would not run there",
                  "a defect of cpu_dot's rules");
    // Where the estimate has no use for an extension, a later kernel serves the CPUs that have it.
    if (DotTiling(p, *best).isa_code() == isa) out.push_back({name(), *best});
  }
  return out;
}

int64_t CpuDot::revision_for(const Gemm& p, const Config& c) const {
  const auto value = [&](Index i) { return value_or(c, size_t(i), kNames[i], 0); };
  const int64_t mr = value(kMr), mc = value(kMc);
  const bool all_rows = mr > 0 && mc > 0 && (mc - 1) / mr >= (p.m - 1) / mr; // in tiles
  const bool once = value(kPack) && all_rows && value(kNc) < p.n;
  const bool tiles = value(kDot) == int64_t(DotKind::tiles) && (once || is_integer(p.a));
  return tiles || has_gelu(p) ? 3 : revision();
}

Gemm CpuDot::awkward(const Gemm& p, const Config& config) const {
  const DotTiling t(p, config);
  Gemm small = p;
  small.m = std::min(t.mr + 1, t.form == DotForm::panel || t.turned ? t.mr + 1 : kFewRows);
  small.n = t.dr + t.isa.lanes() / 2 + 1;
  // A second, ragged block of K where blocks are short enough; otherwise a ragged end of the only one.
  const int64_t ragged =
      t.a_in_place() || t.b_in_place()
          ? 3 * t.chunk
          : (t.form == DotForm::along_k ? 3 * t.chunk : t.chunk) + 2 * t.unroll * t.dot.group() + 1;
  small.k = t.k_blocks > 1 && t.kc <= 1024 ? t.kc + ragged : std::min(ragged, at(config, kKc));
  small.batch = p.batch > 1 ? 2 : 1;
  return small;
}

} // namespace deepgen
