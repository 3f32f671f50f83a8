// cpu_dot's micro-kernel of AMX: up to two by two tiles of sums, 16 x 16 each. A's tiles are rows of 16 words
// along K, B's are rows of words of 16 columns, as panels have them.
#include "templates/cpu/cpu_dot_finish.h"
#include "templates/cpu/cpu_dot_kernel.h"

#include "templates/core/sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

namespace llvmd = mlir::LLVM;

constexpr int64_t kTile = 16; ///< rows; words of a row
constexpr int64_t kSums = 0, kA = 4, kB = 6;

class TilesEmitter {
public:
  TilesEmitter(Ir& builder, const Gemm& problem, const DotTiling& tiling, const DotTile& shape,
               mlir::ValueRange x)
      : ir(builder), words(builder, tiling.dot), p(problem), t(tiling), tile(shape), args(x[0]), a(x[1]),
        b(x[3]), k(x[5]), first(x[6]), last(x[7]), sums(x[8]), m(x[9]), n(x[10]), entry(x[11]),
        rows(t.mr / kTile), columns(t.nr / kTile) {}

  void emit() {
    begin();
    Value chunks = ir.shift_right(ir.add(k, t.chunk - 1), t.chunk);
    ir.loop(ir.constant(0), chunks, 1, [&](Value c) { chunk(c); });
    each_sum([&](int64_t number, Value at) { move("llvm.x86.tilestored64", number, at, t.sums_ld); });
    const auto finish = [&] {
      DotFinish finisher(ir, words, p, args, entry, m, n, tile.columns);
      finisher.prepare();
      finish_rows(ir, p, t, tile, words, finisher, sums);
    };
    if (t.k_blocks == 1) return finish();
    ir.branch(flag(last), finish);
  }

private:
  Ir& ir;
  Words words;
  const Gemm& p;
  const DotTiling& t;
  const DotTile& tile;
  Value args, a, b, k, first, last, sums, m, n, entry;
  const int64_t rows, columns; ///< tiles of sums

  Value flag(Value x) { return ir.not_equal(x, ir.constant(0)); }
  Value number(int64_t x) { return mlir::arith::ConstantIntOp::create(ir.b, ir.loc, ir.b.getI8Type(), x); }
  void call(const char* name, mlir::ValueRange operands) {
    llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.b.getStringAttr(name), operands);
  }
  void move(const char* name, int64_t tile_number, Value at, int64_t row_words) {
    call(name, {number(tile_number), at, ir.constant(4 * row_words)});
  }

  void each_sum(const std::function<void(int64_t, Value)>& body) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        body(kSums + i * columns + j, ir.at(sums, i * kTile * t.sums_ld + j * kTile));
  }

  void begin() {
    const auto zero = [&] { each_sum([&](int64_t x, Value) { call("llvm.x86.tilezero", {number(x)}); }); };
    if (t.k_blocks == 1) return zero();
    ir.branch(flag(first), zero, [&] {
      each_sum([&](int64_t x, Value at) { move("llvm.x86.tileloadd64", x, at, t.sums_ld); });
    });
  }

  const char* instruction() const {
    return size_of(p.a) == 2 ? "llvm.x86.tdpbf16ps"
           : p.a == Type::u8 ? "llvm.x86.tdpbusd"
                             : "llvm.x86.tdpbssd";
  }

  void chunk(Value c) {
    Value a_at = ir.at(a, ir.mul(c, t.mr * kTile)), b_at = ir.at(b, ir.mul(c, t.nr * kTile));
    for (int64_t j = 0; j < columns; ++j) move("llvm.x86.tileloadd64", kB + j, ir.at(b_at, j * kTile), t.nr);
    for (int64_t i = 0; i < rows; ++i) {
      move("llvm.x86.tileloadd64", kA + i, ir.at(a_at, i * kTile * kTile), kTile);
      for (int64_t j = 0; j < columns; ++j)
        call(instruction(), {number(kSums + i * columns + j), number(kA + i), number(kB + j)});
    }
  }
};

} // namespace

std::string dot_tiles_kernel(Ir& ir, const Gemm& p, const DotTiling& t, const DotTile& tile) {
  const std::string name = "tiles_" + text(tile.rows) + "x" + text(tile.columns);
  ir.function(name,
              {ir.pointer, ir.pointer, ir.i64, ir.pointer, ir.i64, ir.i64, ir.i64, ir.i64, ir.pointer, ir.i64,
               ir.i64, ir.i64},
              true, [&](mlir::ValueRange arguments) { TilesEmitter(ir, p, t, tile, arguments).emit(); });
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
