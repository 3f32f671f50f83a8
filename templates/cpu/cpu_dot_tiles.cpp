// cpu_dot's micro-kernel of AMX: up to two by two tiles of sums, 16 x 16 each. The left operand's tiles are
// rows of 16 words along K: where they lie, or in a panel in the order of tiles. The right one's are rows of
// words of 16 columns, as panels have them. Left is A, or B in place: then sums are those of D turned around.
#include "templates/cpu/cpu_dot_finish.h"
#include "templates/cpu/cpu_dot_kernel.h"

#include "templates/core/sizes.h"
#include "templates/cpu/pack.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

namespace llvmd = mlir::LLVM;

constexpr int64_t kTile = 16; ///< rows; words of a row
constexpr int64_t kSums = 0, kLeft = 4, kRight = 6;
constexpr int64_t kAwake = 8; ///< steps of K between stores

/// Turns a square of 16 x 16 sums around in scratch.
std::string turn_function(Ir& ir, Words& words, int64_t ld) {
  const std::string name = "turn_" + text(ld);
  ir.function(name, {ir.pointer}, true, [&](mlir::ValueRange x) {
    Values in;
    for (int64_t r = 0; r < kTile; ++r) in.push_back(words.load(ir.at(x[0], r * ld)));
    const Values out = transpose(ir, in);
    for (int64_t r = 0; r < kTile; ++r) words.store(out[size_t(r)], ir.at(x[0], r * ld), kTile);
  });
  return name;
}

class TilesEmitter {
public:
  TilesEmitter(Ir& builder, const Gemm& problem, const DotTiling& tiling, const DotTile& shape,
               mlir::ValueRange x)
      : ir(builder), words(builder, tiling.dot), p(problem), t(tiling), tile(shape), args(x[0]), k(x[5]),
        first(x[6]), last(x[7]), sums(x[8]), m(x[9]), n(x[10]), entry(x[11]),
        ahead(tiling.lines ? x[12] : Value()), rows(ceil_div(shape.rows, kTile)),
        half(ceil_div(shape.columns, kTile)), left{t.turned ? x[3] : x[1], t.turned ? x[4] : x[2]},
        right{t.turned ? x[1] : x[3], Value()} {
    left.type = t.turned ? p.b : p.a;
    left.tiles = t.turned ? t.halves * half : rows, right.tiles = t.turned ? rows : t.halves * half;
    left.width = t.turned ? t.nr : t.mr, right.width = t.turned ? t.mr : t.pitch;
    left.in_place = t.turned ? shape.columns == t.dr : t.a_in_place() && shape.rows == t.mr;
  }

  void emit() {
    begin();
    multiply(ir.shift_right(ir.add(k, t.chunk - 1), t.chunk));
    if (t.k_blocks == 1) return finish();
    ir.branch(ir.not_equal(last, ir.constant(0)), [&] { finish(); }, [&] { keep(); });
  }

private:
  struct Side {
    Value base, ld;
    Type type = Type::f32;
    int64_t tiles = 0, width = 0; ///< width: rows or columns of a panel
    bool in_place = false;
  };

  Ir& ir;
  Words words;
  const Gemm& p;
  const DotTiling& t;
  const DotTile& tile;
  Value args, k, first, last, sums, m, n, entry, ahead;
  const int64_t rows, half; ///< tiles along M; along N, of one weight
  Side left, right;

  Value number(int64_t x) { return mlir::arith::ConstantIntOp::create(ir.b, ir.loc, ir.b.getI8Type(), x); }
  void call(const char* name, mlir::ValueRange operands) {
    llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.b.getStringAttr(name), operands);
  }
  void move(const char* name, int64_t tile_number, Value at, Value row_bytes) {
    call(name, {number(tile_number), at, row_bytes});
  }
  void load(int64_t tile_number, Value at, Value row_bytes) {
    move("llvm.x86.tileloadd64", tile_number, at, row_bytes);
  }
  Value words_apart(int64_t count) { return ir.constant(4 * count); }

  /// Where tile j along N begins in a panel of B and in a row of sums.
  int64_t column_of(int64_t j) const { return j / half * t.dr + j % half * kTile; }

  /// Of each tile of sums its number and where it lies: in scratch, whose places are those of D, and in a
  /// turned tile's place its rows are columns.
  void each_sum(const std::function<void(int64_t, Value)>& body) {
    for (int64_t i = 0; i < left.tiles; ++i)
      for (int64_t j = 0; j < right.tiles; ++j) {
        const int64_t row = t.turned ? j : i, column = t.turned ? i : j;
        body(kSums + i * right.tiles + j, ir.at(sums, row * kTile * t.sums_ld + column_of(column)));
      }
  }
  void keep() {
    each_sum([&](int64_t x, Value at) { move("llvm.x86.tilestored64", x, at, words_apart(t.sums_ld)); });
  }

  void begin() {
    const auto zero = [&] { each_sum([&](int64_t x, Value) { call("llvm.x86.tilezero", {number(x)}); }); };
    if (t.k_blocks == 1) return zero();
    ir.branch(ir.not_equal(first, ir.constant(0)), zero,
              [&] { each_sum([&](int64_t x, Value at) { load(x, at, words_apart(t.sums_ld)); }); });
  }

  void finish() {
    DotFinish finisher(ir, words, p, args, entry, m, n, tile.columns);
    finisher.prepare();
    const auto by_rows = [&] {
      keep();
      if (t.turned) each_sum([&](int64_t, Value at) { ir.call(turn_function(ir, words, t.sums_ld), {at}); });
      finish_rows(ir, p, t, tile, words, finisher, sums);
    };
    const bool sums_are_d = p.d == (t.dot.integer() ? Type::i32 : Type::f32) && p.epilogue.empty() && !p.gate;
    const bool whole = tile.rows % kTile == 0 && tile.columns % kTile == 0;
    if (t.turned || !sums_are_d || !whole) return by_rows();
    ir.branch(
        finisher.stores_sums(),
        [&] {
          for (int64_t i = 0; i < left.tiles; ++i)
            for (int64_t j = 0; j < right.tiles; ++j)
              move("llvm.x86.tilestored64", kSums + i * right.tiles + j,
                   finisher.address(ir.constant(i * kTile), j * kTile), ir.mul(finisher.ld(), 4));
        },
        by_rows);
  }

  const char* instruction() const {
    return size_of(p.a) == 2 ? "llvm.x86.tdpbf16ps"
           : p.a == Type::u8 ? t.turned ? "llvm.x86.tdpbsud" : "llvm.x86.tdpbusd"
                             : "llvm.x86.tdpbssd";
  }

  void load_left(int64_t i, Value c) {
    if (left.in_place) {
      const int64_t row = t.turned ? i / half * p.n + i % half * kTile : i * kTile;
      Value at = words.at(left.type, left.base, ir.add(ir.mul(left.ld, row), ir.mul(c, t.chunk)));
      return load(kLeft + i, at, ir.mul(left.ld, size_of(left.type)));
    }
    const int64_t row = t.turned ? column_of(i) : i * kTile;
    load(kLeft + i, ir.at(ir.at(left.base, ir.mul(c, left.width * kTile)), row * kTile), words_apart(kTile));
  }
  void load_right(int64_t j, Value c) {
    Value at = ir.at(right.base, ir.mul(c, right.width * kTile));
    load(kRight + j, ir.at(at, t.turned ? j * kTile : column_of(j)), words_apart(right.width));
  }

  /// Stores a tile now and then that nobody reads, to where the sums will be: a core that has stored none for
  /// 3200 cycles needs 1100 for the next one (benchmarks/cpu/results/xeon-amx.txt: 1024 of K from L2, 34.5
  /// cycles a product without, 26.4 with a store every 8 steps).
  void multiply(Value chunks) {
    const int64_t most = ceil_div(std::max(t.k_blocks > 1 ? t.kc : 0, t.k_last), t.chunk);
    const auto steps = [&](Value from, Value to) { ir.loop(from, to, 1, [&](Value c) { chunk(c); }); };
    if (most <= 2 * kAwake) return steps(ir.constant(0), chunks);
    ir.loop(ir.constant(0), chunks, kAwake, [&](Value from) {
      steps(from, ir.min(ir.add(from, kAwake), chunks));
      move("llvm.x86.tilestored64", kLeft, sums, words_apart(kTile));
    });
  }

  void chunk(Value c) {
    if (t.lines) ask_for_lines(ir, t, ahead, ir.mul(c, t.lines * kLineWords));
    for (int64_t j = 0; j < right.tiles; ++j) load_right(j, c);
    for (int64_t i = 0; i < left.tiles; ++i) {
      load_left(i, c);
      for (int64_t j = 0; j < right.tiles; ++j)
        call(instruction(), {number(kSums + i * right.tiles + j), number(kLeft + i), number(kRight + j)});
    }
  }
};

} // namespace

std::string dot_tiles_kernel(Ir& ir, const Gemm& p, const DotTiling& t, const DotTile& tile) {
  const std::string name = "tiles_" + text(tile.rows) + "x" + text(tile.columns);
  ir.function(name, dot_parameters(ir, t), true,
              [&](mlir::ValueRange arguments) { TilesEmitter(ir, p, t, tile, arguments).emit(); });
  return name;
}

void begin_tiles(Ir& ir, Value scratch) {
  // Palette 1; eight tiles of 16 rows of 64 bytes (Intel's manual, LDTILECFG).
  const uint64_t rows = 0x1010101010101010, bytes = 0x0040004000400040;
  const uint64_t config[8] = {1, 0, bytes, bytes, 0, 0, rows, 0};
  for (int64_t i = 0; i < 8; ++i)
    llvmd::StoreOp::create(ir.b, ir.loc, ir.constant(int64_t(config[i])), ir.at(scratch, 2 * i), 8u);
  llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.b.getStringAttr("llvm.x86.ldtilecfg"),
                                 mlir::ValueRange{scratch});
}

void end_tiles(Ir& ir) {
  llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.b.getStringAttr("llvm.x86.tilerelease"),
                                 mlir::ValueRange{});
}

} // namespace deepgen
