#include "templates/nvidia/attention/mma_attention_tiles.h"

#include "templates/core/sizes.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>
#include <numeric>

namespace deepgen {

namespace llvmd = mlir::LLVM;

namespace {

constexpr int64_t kPieceBytes = 16;
constexpr int64_t kBanks = 128; ///< bytes of all banks of shared memory

} // namespace

RowFill::RowFill(NvIr& ir, const SharedTile& tile, Source row, int64_t threads, int64_t align)
    : ir_(ir), tile_(tile), row_of_memory_(row), by_elements_(align < kPieceBytes),
      in_row_(tile.row_bytes / kPieceBytes), step_(threads / in_row_), passes_(ceil_div(tile.rows, step_)) {
  Value thread = ir.thread();
  row_ = ir.divide(thread, in_row_);
  column_ = ir.mul(ir.remainder(thread, in_row_), kPieceBytes);
  if (step_ * in_row_ < threads) works_ = ir.less(thread, step_ * in_row_);
  const int64_t bytes = row.elements * tile.element;
  if (!by_elements_ && bytes < tile.row_bytes)
    width_ = ir.select(ir.less(column_, bytes), ir.c(kPieceBytes), ir.c(0));
  const int64_t kinds = std::min(passes_, tile.period / std::gcd(step_, tile.period));
  for (int64_t i = 0; i < kinds; ++i) places_.push_back(tile.address(ir, ir.add(row_, row_of(i)), column_));
}

Value RowFill::source_column() const {
  return size_of(row_of_memory_.type) == tile_.element ? column_ : ir_.shift_right_bits(column_, 1);
}

Value RowFill::start(Value first, Value pitch) const {
  return ir_.offset(ir_.offset(first, ir_.mul(ir_.to_i64(row_), pitch)), source_column());
}

Value RowFill::advanced(Value start, Value rows, Value pitch) const {
  return ir_.offset(start, ir_.mul(ir_.to_i64(ir_.divide(rows, step_)), ir_.mul(pitch, step_)));
}

void RowFill::copy(Value tile, Value left, Value from, Value pitch) const {
  Value step = ir_.mul(pitch, step_);
  for (int64_t pass = 0; pass < passes_; ++pass) {
    if (pass) from = ir_.offset(from, step);
    piece(pass, tile, left, from);
  }
}

void RowFill::copy(Value tile, Value left, const std::function<Value(Value row)>& address) const {
  for (int64_t pass = 0; pass < passes_; ++pass)
    piece(pass, tile, left, ir_.offset(address(ir_.add(row_, row_of(pass))), source_column()));
}

void RowFill::copy_from_table(Value tile, Value left, const std::function<Value(Value row)>& address) const {
  Values from;
  for (int64_t pass = 0; pass < passes_; ++pass)
    from.push_back(ir_.offset(address(ir_.add(row_, row_of(pass))), source_column()));
  for (int64_t pass = 0; pass < passes_; ++pass) piece(pass, tile, left, from[size_t(pass)]);
}

/// As few values as can be are the same in each turn of a loop: LLVM would keep them all in registers.
void RowFill::piece(int64_t pass, Value tile, Value left, Value from) const {
  Value inside = ir_.less(row_, ir_.sub(left, ir_.c(row_of(pass))));
  Value wanted = works_;
  if ((pass + 1) * step_ > tile_.rows) {
    Value in_tile = ir_.less(row_, tile_.rows - row_of(pass));
    wanted = wanted ? ir_.both(wanted, in_tile) : in_tile;
  }
  const auto kinds = int64_t(places_.size());
  const int64_t rest = (pass - pass % kinds) * step_ * tile_.row_bytes;
  Value to = ir_.offset(tile, places_[size_t(pass % kinds)]);
  if (by_elements_) {
    const auto copy = [&] { piece_by_elements(ir_.offset(to, rest), inside, from); };
    return wanted ? ir_.branch(wanted, copy) : copy();
  }
  Value valid = ir_.select(inside, width_ ? width_ : ir_.c(kPieceBytes), ir_.c(0));
  Values operands = {to, from, valid};
  if (wanted) operands.push_back(wanted);
  ir_.assembly(nullptr,
               std::string(wanted ? "@$3 " : "") + "cp.async.cg.shared.global [$0+" + std::to_string(rest) +
                   "], [$1], 16, $2;",
               wanted ? "r,l,r,b" : "r,l,r", operands, true);
}

void RowFill::piece_by_elements(Value to, Value inside, Value from) const {
  const int64_t count = kPieceBytes / tile_.element, bytes = row_of_memory_.elements * tile_.element;
  const Type type = row_of_memory_.type;
  const int64_t size = size_of(type);
  mlir::Type word = size == tile_.element ? ir_.i16 : ir_.i8;
  Values all;
  for (int64_t i = 0; i < count; ++i) {
    Value wanted = inside;
    if (bytes < tile_.row_bytes) wanted = ir_.both(inside, ir_.less(column_, bytes - i * tile_.element));
    all.push_back(ir_.branch(
        wanted, {word}, [&] { return Values{ir_.load(word, ir_.offset(from, i * size), size)}; },
        [&] { return Values{ir_.zero(word)}; })[0]);
  }
  Value piece = ir_.pack(all);
  if (type == Type::e4m3) piece = ir_.encode(Type::f16, ir_.decode(type, piece));
  ir_.store(piece, to, kPieceBytes);
}

MatrixReader::MatrixReader(NvIr& ir, const SharedTile& tile, Value first_row, Order order, bool transposed)
    : ir_(ir), tile_(tile), transposed_(transposed),
      period_(std::max<int64_t>(32, tile.classes * tile.chunk)) {
  Value lane = ir.lane();
  Value low = ir.bit_and(ir.shift_right_bits(lane, 3), 1), high = ir.shift_right_bits(lane, 4);
  const bool rows = order == rows_first;
  Value row = ir.add(ir.bit_and(lane, 7), ir.shift_left(rows ? low : high, 3));
  if (first_row) row = ir.add(row, first_row);
  Value column = ir.shift_left(rows ? high : low, 4);
  const int64_t kinds = tile.row_bytes % kBanks == 0 && period_ == kBanks ? 1 : period_ / 32;
  for (int64_t i = 0; i < kinds; ++i) offsets_.push_back(tile.address(ir, row, ir.add(column, 32 * i)));
}

Values MatrixReader::read(Value tile, int64_t row, int64_t column) const {
  const int64_t kind = column % period_ / 32;
  Value at = llvmd::PtrToIntOp::create(ir_.b, ir_.loc, ir_.i32, tile);
  at = ir_.add(at, offsets_[offsets_.size() == 1 ? 0 : size_t(kind)]);
  // LLVM would keep these addresses of a loop in registers, one for each offset that it does not know
  // ldmatrix to take.
  if (offsets_.size() == 1 && kind)
    at = ir_.assembly(ir_.i32, "xor.b32 $0, $1, " + std::to_string(32 * kind) + ";", "=r,r", at, true);
  const std::string offset = std::to_string(row * tile_.row_bytes + column - column % period_);
  Value raw = ir_.assembly(record_of(4, ir_.i32),
                           std::string("ldmatrix.sync.aligned.m8n8.x4") + (transposed_ ? ".trans" : "") +
                               ".shared.b16 {$0,$1,$2,$3}, [$4+" + offset + "];",
                           "=r,=r,=r,=r,r", at, true);
  return fields_of(ir_, raw);
}

} // namespace deepgen
