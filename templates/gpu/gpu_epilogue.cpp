#include "templates/gpu/gpu_epilogue.h"

#include "base/problem/signature.h"
#include "templates/ir/epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

namespace arith = mlir::arith;

namespace {

/// x / (1 + 2^(-steepness x)), times `factor` / x: the logistic family with approximate exponential and
/// reciprocal.
Value logistic_fast(GpuIr& ir, Value x, Value factor) {
  Value power = ir.exp2_fast(ir.mulf(x, ir.number(ir.f32, -1.44269504088896340736)));
  return ir.mulf(factor, ir.reciprocal_fast(ir.addf(power, ir.number(ir.f32, 1.0))));
}

/// x/2 (1 + erf(x / sqrt 2)) by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: erf
/// to 1.5e-7.
Value gelu_fast(GpuIr& ir, Value x) {
  Value z = ir.mulf(x, ir.number(ir.f32, 0.70710678118654752440));
  // Beyond 16 the tail is 0, and stays so for infinities.
  Value magnitude = ir.bitcast(ir.f32, ir.bit_and(ir.bitcast(ir.i32, z), 0x7fffffff));
  magnitude = ir.minimum(magnitude, ir.number(ir.f32, 16.0));
  Value t =
      ir.reciprocal_fast(ir.multiply_add(magnitude, ir.number(ir.f32, 0.3275911), ir.number(ir.f32, 1.0)));
  Value sum = ir.number(ir.f32, 1.061405429);
  for (double c : {-1.453152027, 1.421413741, -0.284496736, 0.254829592})
    sum = ir.multiply_add(sum, t, ir.number(ir.f32, c));
  Value square = ir.mulf(ir.mulf(magnitude, magnitude), ir.number(ir.f32, -1.44269504088896340736));
  Value tail = ir.mulf(ir.mulf(sum, t), ir.exp2_fast(square)); // 1 - erf(|z|)
  // x/2 (1 + sign(x) (1 - tail)) = relu(x) - |x|/2 tail
  Value half = ir.mulf(magnitude, ir.number(ir.f32, -0.70710678118654752440));
  return ir.multiply_add(half, tail, ir.maximum(x, ir.number(ir.f32, 0.0)));
}

Value gelu_tanh_fast(GpuIr& ir, Value x) {
  constexpr double kTwiceRoot = 1.59576912160573071176, kCubic = 0.044715; // 2 sqrt(2 / pi)
  Value slope =
      ir.multiply_add(ir.mulf(x, x), ir.number(ir.f32, kTwiceRoot * kCubic), ir.number(ir.f32, kTwiceRoot));
  return logistic_fast(ir, ir.mulf(x, slope), x);
}

} // namespace

Value gpu_function(GpuIr& ir, const Gemm& p, EpilogueOp op, Value x) {
  const bool fast = size_of(p.d) <= 2;
  if (op == EpilogueOp::relu && x.getType() == ir.f32) return ir.maximum(x, ir.number(ir.f32, 0.0));
  if (fast && op == EpilogueOp::gelu) return gelu_fast(ir, x);
  if (fast && op == EpilogueOp::gelu_tanh) return gelu_tanh_fast(ir, x);
  if (fast && op == EpilogueOp::silu) return logistic_fast(ir, x, x);
  if (fast && op == EpilogueOp::sigmoid) return logistic_fast(ir, x, ir.number(ir.f32, 1.0));
  return apply_epilogue(ir, {op}, x, [](const EpilogueOperand&) { return Value(); });
}

struct GpuEpilogue::Piece {
  Value row, column;           ///< for stores
  Value safe_row, safe_column; ///< inside D
  Value inside;                ///< i1; null: always
  Values accumulators, given, c;
  std::map<std::string, Values> operands; ///< in the compute type, one for each column
};

GpuEpilogue::GpuEpilogue(GpuIr& ir, const Gemm& p, const GpuIr::Arguments& arguments, Value entry,
                         int64_t align_d)
    : ir_(ir), problem_(p), arguments_(arguments), sizes_(ir, p, arguments), entry_(entry), align_(align_d),
      compute_(ir.memory_type(p.scale_type())) {
  for (const char* name : {"c", "d"}) bases_[name] = matrix_base(name, p.d);
  for (EpilogueOp op : p.epilogue)
    for (const EpilogueOperand& operand : operands_of(op))
      if (operand.shape == OperandShape::matrix)
        bases_[operand.name] = matrix_base(operand.name, p.epilogue_type());
}

bool GpuEpilogue::reads_matrices(const Gemm& p) { return has_operand(p.epilogue, OperandShape::matrix); }

Value GpuEpilogue::matrix_base(const std::string& name, Type type) {
  Value base = arguments_.at(name);
  if (!entry_ || problem_.batch == 1) return base;
  Value stride = arguments_.at("stride_" + name);
  return ir_.offset(base, ir_.mul(ir_.mul(ir_.to_i64(entry_), stride), size_of(type)));
}

Value GpuEpilogue::address(const std::string& name, Type type, const Piece& piece) {
  const bool stored = name == "d";
  Value ld = arguments_.at(name.size() == 1 ? "ld" + name : "ld_" + name);
  Value row = ir_.to_i64(stored ? piece.row : piece.safe_row);
  Value column = ir_.to_i64(stored ? piece.column : piece.safe_column);
  Value elements = ir_.add(ir_.mul(row, ld), column);
  return ir_.offset(bases_.at(name), ir_.mul(elements, size_of(type)));
}

Value GpuEpilogue::remember(const std::string& what, Value of, int64_t number,
                            const std::function<Value()>& make) {
  if (known_in_ != ir_.b.getInsertionBlock()) known_.clear(), known_in_ = ir_.b.getInsertionBlock();
  Value& slot = known_[{what, of ? of.getAsOpaquePointer() : nullptr, number}];
  if (!slot) slot = make();
  return slot;
}

std::vector<GpuEpilogue::Piece> GpuEpilogue::pieces(llvm::ArrayRef<Fragment> fragments, Bounds bounds) {
  std::vector<Piece> out;
  for (const Fragment& f : fragments) {
    const int64_t count = int64_t(f.values.size());
    int64_t width = std::max<int64_t>(1, std::min<int64_t>(align_, 16) / size_of(problem_.d));
    while (count % width) width /= 2;
    Piece row;
    row.row = row.safe_row = f.row;
    if (bounds.rows) {
      Value end = bounds.row_end ? bounds.row_end : ir_.c(sizes_.m);
      row.safe_row = remember("safe row", f.row, 0, [&] { return ir_.min(f.row, ir_.sub(end, ir_.c(1))); });
      row.inside = remember("row inside", f.row, 0, [&] { return ir_.less(f.row, end); });
    }
    for (int64_t first = 0; first < count; first += width) {
      Piece piece = row;
      piece.column = remember("column", f.column, first, [&] { return ir_.add(f.column, first); });
      piece.safe_column = piece.column;
      if (bounds.columns) {
        piece.safe_column = remember("safe column", piece.column, width,
                                     [&] { return ir_.min(piece.column, ir_.c(ir_.sub(sizes_.n, width))); });
        Value inside =
            remember("column inside", piece.column, 0, [&] { return ir_.less(piece.column, sizes_.n); });
        piece.inside = piece.inside ? ir_.both(piece.inside, inside) : inside;
      }
      piece.accumulators.assign(f.values.begin() + first, f.values.begin() + first + width);
      if (!f.given.empty()) piece.given.assign(f.given.begin() + first, f.given.begin() + first + width);
      out.push_back(piece);
    }
  }
  return out;
}

std::vector<GpuEpilogue::Piece> GpuEpilogue::loaded(llvm::ArrayRef<Fragment> fragments, Bounds bounds) {
  std::vector<Piece> out = pieces(fragments, bounds);
  if (!fragments.front().scaled) load_c(out);
  load_operands(out);
  return out;
}

Values GpuEpilogue::load_matrix(const std::string& name, Type type, const Piece& piece) {
  const int64_t count = int64_t(piece.accumulators.size());
  const int64_t alignment = std::max(size_of(type), std::min(align_, count * size_of(type)));
  Value raw = ir_.load(ir_.lanes(count, ir_.memory_type(type)), address(name, type, piece), alignment);
  return in_compute_type(type, raw);
}

Values GpuEpilogue::in_compute_type(Type type, Value elements) {
  return ir_.unpack(ir_.convert(compute_, ir_.decode(type, elements)));
}

/// C is not to be touched when beta is 0: one branch, the same for all threads, around all of its loads.
void GpuEpilogue::load_c(llvm::MutableArrayRef<Piece> all) {
  size_t total = 0;
  for (Piece& piece : all) total += piece.accumulators.size();
  auto loads = [&] {
    Values out;
    for (Piece& piece : all) llvm::append_range(out, load_matrix("c", problem_.d, piece));
    return out;
  };
  auto zeros = [&] { return Values(total, problem_.d == Type::i32 ? ir_.c(0) : ir_.number(compute_, 0.0)); };
  Values c = ir_.branch(has_beta(), llvm::SmallVector<mlir::Type>(total, compute_), loads, zeros);
  size_t next = 0;
  for (Piece& piece : all)
    for (size_t i = 0; i < piece.accumulators.size(); ++i) piece.c.push_back(c[next++]);
}

Value GpuEpilogue::load_vector_element(const std::string& name, Type type, Value index) {
  return remember(name, index, 0, [&] {
    Value at = arguments_.at(name);
    if (index) at = ir_.offset(at, ir_.mul(ir_.to_i64(index), size_of(type)));
    return ir_.convert(compute_, ir_.load(ir_.memory_type(type), at, size_of(type)));
  });
}

void GpuEpilogue::load_operands(llvm::MutableArrayRef<Piece> all) {
  for (Piece& piece : all)
    for (EpilogueOp op : problem_.epilogue)
      for (const Operand& x : operands_of(op, problem_)) {
        Values& out = piece.operands[x.name];
        const size_t count = piece.accumulators.size();
        switch (x.shape) {
        case Operand::Shape::per_column:
          for (size_t i = 0; i < count; ++i) {
            Value column = remember("operand column", piece.safe_column, int64_t(i),
                                    [&] { return ir_.add(piece.safe_column, int64_t(i)); });
            out.push_back(load_vector_element(x.name, x.type, column));
          }
          break;
        case Operand::Shape::per_row:
          out.assign(count, load_vector_element(x.name, x.type, piece.safe_row));
          break;
        case Operand::Shape::matrix:
          out = x.name == given_ ? in_compute_type(x.type, ir_.pack(piece.given))
                                 : load_matrix(x.name, x.type, piece);
          break;
        case Operand::Shape::value:
          out.assign(count,
                     x.in_memory() ? load_vector_element(x.name, x.type, nullptr) : arguments_.at(x.name));
          break;
        }
      }
}

Value GpuEpilogue::has_beta() const {
  Value beta = arguments_.at("beta");
  return problem_.d == Type::i32 ? ir_.not_equal(beta, ir_.c(0)) : ir_.is_not(beta, 0.0);
}

Value GpuEpilogue::times_alpha(Value sum) {
  Value alpha = arguments_.at("alpha");
  if (problem_.d == Type::i32) return arith::MulIOp::create(ir_.b, ir_.loc, alpha, sum); // wraps
  return ir_.mulf(alpha, ir_.convert(compute_, sum));
}

Value GpuEpilogue::with_c(Value scaled, Value c) {
  Value beta = arguments_.at("beta");
  if (problem_.d == Type::i32)
    return arith::AddIOp::create(ir_.b, ir_.loc, scaled, arith::MulIOp::create(ir_.b, ir_.loc, beta, c));
  return ir_.multiply_add(beta, c, scaled);
}

Values GpuEpilogue::scale(mlir::ValueRange sums, Bounds bounds, int64_t parts,
                          llvm::function_ref<std::vector<Fragment>(int64_t)> part) {
  auto and_c = [&] {
    Values out;
    for (int64_t number = 0; number < parts; ++number) {
      Values c;
      for (const Piece& piece : pieces(part(number), bounds))
        llvm::append_range(c, load_matrix("c", problem_.d, piece));
      for (Value x : c) out.push_back(with_c(times_alpha(sums[out.size()]), x));
    }
    return out;
  };
  // As beta 0 times a C of 0 is added elsewhere: -0 becomes 0, and the bits of D are those of any kernel.
  auto alone = [&] {
    Values out;
    for (Value sum : sums) {
      if (problem_.d == Type::i32)
        out.push_back(times_alpha(sum));
      else
        out.push_back(
            ir_.multiply_add(arguments_.at("alpha"), ir_.convert(compute_, sum), ir_.number(compute_, 0.0)));
    }
    return out;
  };
  return ir_.branch(has_beta(), llvm::SmallVector<mlir::Type>(sums.size(), compute_), and_c, alone);
}

Value GpuEpilogue::finish(const Piece& piece, int64_t lane) {
  Value x = piece.accumulators[size_t(lane)];
  if (!piece.c.empty()) x = with_c(times_alpha(x), piece.c[size_t(lane)]);
  auto operand = [&](const EpilogueOperand& o) { return piece.operands.at(o.name)[size_t(lane)]; };
  for (EpilogueOp op : problem_.epilogue) {
    x = operands_of(op).empty() ? gpu_function(ir_, problem_, op, x) : apply_epilogue(ir_, {op}, x, operand);
  }
  return x;
}

Values GpuEpilogue::results(llvm::ArrayRef<Fragment> fragments, Bounds bounds) {
  std::vector<Piece> all = loaded(fragments, bounds);
  Values out;
  auto piece = all.begin();
  for (const Fragment& f : fragments) {
    Values elements;
    for (; elements.size() < f.values.size(); ++piece)
      for (size_t i = 0; i < piece->accumulators.size(); ++i) elements.push_back(finish(*piece, int64_t(i)));
    out.push_back(ir_.encode(problem_.d, ir_.pack(elements)));
  }
  return out;
}

void GpuEpilogue::write(Value row, Value column, Value elements, Bounds bounds) {
  Piece piece;
  piece.row = row, piece.column = column;
  if (bounds.rows) piece.inside = ir_.less(row, bounds.row_end ? bounds.row_end : ir_.c(sizes_.m));
  if (bounds.columns) {
    Value inside = ir_.less(column, sizes_.n);
    piece.inside = piece.inside ? ir_.both(piece.inside, inside) : inside;
  }
  write(piece, elements);
}

void GpuEpilogue::write(const Piece& piece, Value elements) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(elements.getType());
  const int64_t bytes = (vector ? vector.getNumElements() : 1) * size_of(problem_.d);
  auto write = [&] { ir_.store(elements, address("d", problem_.d, piece), bytes); };
  if (piece.inside)
    ir_.branch(piece.inside, write);
  else
    write();
}

void GpuEpilogue::store(llvm::ArrayRef<Fragment> fragments, Bounds bounds) {
  for (const Piece& piece : loaded(fragments, bounds)) {
    Values elements;
    for (size_t i = 0; i < piece.accumulators.size(); ++i) elements.push_back(finish(piece, int64_t(i)));
    write(piece, ir_.encode(problem_.d, ir_.pack(elements)));
  }
}

} // namespace deepgen
