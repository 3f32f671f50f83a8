#include "templates/cpu/cpu_dot_kernel.h"

#include "templates/core/sizes.h"
#include "templates/cpu/cpu_dot_finish.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

class DotEmitter {
public:
  DotEmitter(Ir& builder, const Gemm& problem, const DotTiling& tiling, const DotTile& shape,
             mlir::ValueRange x)
      : ir(builder), words(builder, tiling.dot), p(problem), t(tiling), tile(shape), a(x[1]), lda(x[2]),
        b(x[3]), ldb(x[4]), k(x[5]), first(x[6]), last(x[7]), sums(x[8]), ahead(t.lines ? x[12] : Value()),
        finish(builder, words, problem, x[0], x[11], x[9], x[10], shape.columns), lanes(ir.isa.lanes()),
        along(t.along()), half(along ? tile.columns : ceil_div(tile.columns, lanes)),
        vectors(t.halves * half), parts(t.quads ? 4 : 1),
        shifts(t.dot.shifts_a() && t.form != DotForm::panel) {}

  void emit() {
    Values acc = along ? summed(product()) : t.quads ? joined(product()) : product();
    if (t.k_blocks > 1)
      acc = ir.branch(
          flag(first), mlir::ValueRange(acc).getTypes(), [&] { return acc; },
          [&] { return with_earlier(acc); });
    if (!t.by_registers) {
      store(acc);
      return on_last([&] {
        finish.prepare();
        finish_rows(ir, p, t, tile, words, finish, sums);
      });
    }
    if (t.k_blocks == 1) return finish_registers(acc);
    ir.branch(flag(last), [&] { finish_registers(acc); }, [&] { store(acc); });
  }

private:
  Ir& ir;
  Words words;
  const Gemm& p;
  const DotTiling& t;
  const DotTile& tile;
  Value a, lda, b, ldb, k, first, last, sums, ahead;
  DotFinish finish;
  const int64_t lanes;
  const bool along;
  const int64_t half, vectors; ///< of a row for one weight; for both
  const int64_t parts;         ///< accumulators of a vector
  const bool shifts;           ///< what 128 more in A adds is found on the way

  Value flag(Value x) { return ir.not_equal(x, ir.constant(0)); }
  void on_last(const std::function<void()>& body) {
    if (t.k_blocks == 1) return body();
    ir.branch(flag(last), body);
  }

  // What is carried through the loop over K: a sum for each row and vector; for each vector, what 128 more in
  // A has added; where A and B are.
  Values product() {
    Values state;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors * parts; ++j) state.push_back(start(j));
    if (shifts) state.append(size_t(vectors), words.zero_sums());
    state.push_back(a);
    state.push_back(first_b());
    const int64_t group = t.dot.group();
    Value steps = along           ? ir.shift_right(k, t.chunk)
                  : whole_words() ? ir.shift_right(ir.add(k, group - 1), group)
                                  : ir.shift_right(k, group);
    Value whole = ir.sub(steps, ir.remainder(steps, t.unroll));
    state = k_loop(state, ir.constant(0), whole, t.unroll);
    if (t.unroll > 1 && !unrolls_evenly()) state = k_loop(state, whole, steps, 1);
    state = with_tail(state);
    state.pop_back_n(2);
    if (!shifts) return state;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors; ++j) {
        Value& sum = state[size_t(r * vectors + j)];
        sum = words.subtract(sum, state[size_t(tile.rows * vectors + j)]);
      }
    state.pop_back_n(size_t(vectors));
    return state;
  }

  /// Where the first word of B is. Of a B that is packed ahead, b is where the panel begins for this tile,
  /// and ldb the row of words at which the block does.
  Value first_b() {
    if (t.packed_b) return panel_word(ir.at(b, packed_sums()), ir.mul(ldb, t.pitch));
    return t.form == DotForm::panel && t.dot.shifts_a() ? ir.at(b, t.nr) : b;
  }
  int64_t packed_sums() const { return is_integer(p.b) ? t.pitch : 0; }
  /// Panels of f16 that are packed ahead have words of two bytes, as f16 is.
  bool narrow_panel() const { return t.packed_b && p.b == Type::f16; }
  Value panel_word(Value base, Value index) {
    return narrow_panel() ? words.at(p.b, base, index) : ir.at(base, index);
  }
  Value panel_word(Value base, int64_t index) { return panel_word(base, ir.constant(index)); }

  /// A's panels are padded to whole words; those of f32 have one element each.
  bool whole_words() const { return t.form == DotForm::panel && t.pack_a && !t.dot.mixed(); }

  bool unrolls_evenly() const {
    const int64_t step = along ? t.chunk : t.dot.group();
    const auto even = [&](int64_t depth) { return depth % step == 0 && depth / step % t.unroll == 0; };
    return even(t.k_last) && (t.k_blocks == 1 || even(t.kc));
  }

  /// Panels of B have what 128 more in A adds, negated.
  Value start(int64_t j) {
    if (t.form != DotForm::panel || !t.dot.shifts_a()) return words.zero_sums();
    const auto shift = [&] { return Values{words.load_sums(ir.at(b, column_of(j)), lanes)}; };
    if (!t.packed_b || t.k_blocks == 1) return shift()[0];
    // Those of a B that is packed ahead are of all K.
    return ir.branch(flag(first), {words.sums}, shift, [&] { return Values{words.zero_sums()}; })[0];
  }
  /// Where vector j of a row of sums is in a row of a panel of B.
  int64_t column_of(int64_t j) const { return j / half * t.up + j % half * lanes; }

  /// Elements of K of the last block that fill no whole step.
  int64_t tail() const {
    if (along) return t.k_last % t.chunk;
    return whole_words() ? 0 : t.k_last % t.dot.group();
  }
  Values with_tail(const Values& state) {
    if (!tail()) return state;
    const auto step_over = [&] {
      Values next(state);
      step(next, 0, tail());
      return next;
    };
    if (t.k_blocks == 1) return step_over();
    return ir.branch(flag(last), mlir::ValueRange(state).getTypes(), step_over, [&] { return state; });
  }

  Values k_loop(const Values& state, Value from, Value to, int64_t unroll) {
    return ir.loop(from, to, unroll, state, [&](Value k, mlir::ValueRange carried) {
      Values next(carried);
      if (unroll == t.unroll) ask_for_lines(ir, t, ahead, ir.mul(k, t.lines * kLineWords / t.unroll));
      for (int64_t u = 0; u < unroll; ++u) step(next, u, along ? t.chunk : t.dot.group());
      Value b_at = next.pop_back_val(), a_at = next.pop_back_val();
      const int64_t elements = unroll * (along ? t.chunk : t.dot.group());
      next.push_back(t.pack_a ? ir.at(a_at, (t.dot.mixed() ? elements : unroll * a_vector()) * t.mr)
                              : words.at(p.a, a_at, elements));
      next.push_back(t.form == DotForm::panel      ? panel_word(b_at, unroll * t.pitch)
                     : t.form == DotForm::in_place ? words.at(p.b, b_at, ir.mul(ldb, elements))
                                                   : words.at(p.b, b_at, elements));
      return next;
    });
  }

  /// One step of K: a word's group, or a vector of words where rows run along K. `elements` exist.
  void step(Values& state, int64_t u, int64_t elements) {
    Value a_at = state[state.size() - 2], b_at = state.back();
    if (t.quads) return quads_step(state, a_at, b_at, u, elements);
    Values right;
    for (int64_t j = 0; j < vectors; ++j) right.push_back(b_words(b_at, u, j, elements));
    if (t.dot.mixed()) return widened_step(state, a_at, u, elements, right);
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value left = a_words(a_at, u, r, elements);
      for (int64_t j = 0; j < vectors; ++j) {
        Value& sum = state[size_t(r * vectors + j)];
        sum = words.multiply_add(sum, left, right[size_t(j)]);
      }
    }
    for (int64_t j = 0; shifts && j < vectors; ++j) {
      Value& sum = state[size_t(tile.rows * vectors + j)];
      sum = words.multiply_add(sum, words.constant(0x80808080), right[size_t(j)]);
    }
  }

  /// One element of each word's group after the other, so that few registers hold widened ones.
  void widened_step(Values& state, Value a_at, int64_t u, int64_t elements, const Values& right) {
    for (int64_t e = 0; e < elements; ++e) {
      Values wide;
      for (int64_t j = 0; j < vectors; ++j) wide.push_back(words.widened(right[size_t(j)], e));
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t k = u * t.dot.group() + e;
        Value at = t.pack_a ? ir.at(a_at, k * t.mr + r) : ir.at(ir.at(a_at, ir.mul(lda, r)), k);
        Value left = ir.splat(ir.load_scalar(at));
        for (int64_t j = 0; j < vectors; ++j) {
          Value& sum = state[size_t(r * vectors + j)];
          sum = ir.fma(left, wide[size_t(j)], sum);
        }
      }
    }
  }

  /// Four elements of K of four columns, and more where vectors are longer: as they lie in a panel.
  void quads_step(Values& state, Value a_at, Value b_at, int64_t u, int64_t elements) {
    Values left;
    for (int64_t r = 0; r < tile.rows; ++r)
      left.push_back(words.repeated(ir.at(ir.at(a_at, ir.mul(lda, r)), u * t.dot.group()), elements));
    for (int64_t i = 0; i < vectors * parts; ++i) {
      const int64_t column = column_of(i / parts) + i % parts * lanes / parts;
      Value right = words.widened_bytes(panel_word(b_at, u * t.pitch + column));
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value& sum = state[size_t(r * vectors * parts + i)];
        sum = ir.fma(left[size_t(r)], right, sum);
      }
    }
  }

  Values joined(const Values& acc) {
    Values out;
    for (size_t i = 0; i < acc.size(); i += size_t(parts))
      out.push_back(words.joined(Values(acc.begin() + i, acc.begin() + i + size_t(parts))));
    return out;
  }

  int64_t a_vector() const { return along ? lanes : 1; } ///< words of a row that a step takes of A's panel

  Value b_words(Value at, int64_t u, int64_t j, int64_t elements) {
    if (narrow_panel()) return words.across_k(p.b, {panel_word(at, u * t.pitch + column_of(j))}, lanes);
    if (t.form == DotForm::panel) return words.load(ir.at(at, u * t.pitch + column_of(j)));
    const int64_t weight = j / half * p.n, i = j % half;
    if (along) {
      const auto in_row = [&](int64_t row) {
        return words.at(p.b, words.at(p.b, at, ir.mul(ldb, weight + row)), u * t.chunk);
      };
      if (t.asks && elements == t.chunk) ir.prefetch(in_row(i + t.dr), false, false);
      return words.along_k(p.b, in_row(i), elements);
    }
    Values rows;
    for (int64_t e = 0; e < elements; ++e) {
      Value row = words.at(p.b, at, ir.mul(ldb, u * t.dot.group() + e));
      rows.push_back(words.at(p.b, row, weight + i * lanes));
    }
    return words.across_k(p.b, rows, std::min(lanes, tile.columns - i * lanes));
  }

  Value a_words(Value at, int64_t u, int64_t r, int64_t elements) {
    if (t.pack_a && along) return words.load(ir.at(at, (u * t.mr + r) * lanes));
    if (t.pack_a) return words.splat(words.load_word(ir.at(at, u * t.mr + r)));
    Value row = words.at(p.a, words.at(p.a, at, ir.mul(lda, r)), u * (along ? t.chunk : t.dot.group()));
    Value x = along                       ? words.along_k(p.a, row, elements)
              : elements == t.dot.group() ? words.splat(words.load_word(row))
                                          : words.splat(words.part_of_word(p.a, row, elements));
    return t.dot.shifts_a() ? words.shifted(x) : x;
  }

  /// Rows along K: every accumulator becomes one lane of its row's vectors.
  Values summed(const Values& acc) {
    Values rows;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t h = 0; h < t.halves; ++h)
        for (int64_t j = 0; j < tile.columns; j += lanes) {
          Value row = words.zero_sums();
          for (int64_t i = j; i < std::min(tile.columns, j + lanes); ++i)
            row = ir.insert(words.sum_lanes(acc[size_t(r * vectors + h * half + i)], p.batch_invariant), row,
                            i - j);
          rows.push_back(row);
        }
    return rows;
  }

  int64_t row_vectors() const { return t.halves * ceil_div(tile.columns, lanes); }
  Value sums_at(int64_t r, int64_t v) {
    const int64_t each = row_vectors() / t.halves;
    return ir.at(sums, r * t.sums_ld + v / each * (t.sums_ld / t.halves) + v % each * lanes);
  }
  void store(const Values& acc) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t v = 0; v < row_vectors(); ++v)
        words.store_sums(acc[size_t(r * row_vectors() + v)], sums_at(r, v));
  }
  Values with_earlier(const Values& acc) {
    Values out;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t v = 0; v < row_vectors(); ++v)
        out.push_back(words.add(words.load_sums(sums_at(r, v), lanes), acc[size_t(r * row_vectors() + v)]));
    return out;
  }

  void finish_registers(const Values& acc) {
    finish.prepare();
    const auto rows = [&](DotFinish::C c) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const auto begin = acc.begin() + r * row_vectors();
        finish.row(ir.constant(r), Values(begin, begin + row_vectors()), c);
      }
    };
    ir.branch(finish.reads_c(), [&] { rows(DotFinish::C::read); }, [&] { rows(DotFinish::C::none); });
  }
};

} // namespace

void ask_for_lines(Ir& ir, const DotTiling& t, Value ahead, Value offset) {
  for (int64_t i = 0; i < t.lines; ++i)
    ir.prefetch(ir.at(ir.at(ahead, offset), i * kLineWords), false, false);
}

llvm::SmallVector<mlir::Type> dot_parameters(Ir& ir, const DotTiling& t) {
  llvm::SmallVector<mlir::Type> out = {ir.pointer, ir.pointer, ir.i64,     ir.pointer, ir.i64, ir.i64,
                                       ir.i64,     ir.i64,     ir.pointer, ir.i64,     ir.i64, ir.i64};
  if (t.lines) out.push_back(ir.pointer);
  return out;
}

void finish_rows(Ir& ir, const Gemm&, const DotTiling& t, const DotTile& tile, Words& words,
                 DotFinish& finish, Value sums) {
  const int64_t lanes = ir.isa.lanes();
  const auto rows = [&](DotFinish::C c) {
    ir.loop(ir.constant(0), ir.constant(tile.rows), 1, [&](Value r) {
      Value from = ir.at(sums, ir.mul(r, t.sums_ld));
      Values row;
      for (int64_t h = 0; h < t.halves; ++h)
        for (int64_t j = 0; j < tile.columns; j += lanes)
          row.push_back(words.load_sums(ir.at(from, h * (t.sums_ld / t.halves) + j), lanes));
      finish.row(r, row, c);
    });
  };
  ir.branch(finish.reads_c(), [&] { rows(DotFinish::C::read); }, [&] { rows(DotFinish::C::none); });
}

std::string dot_kernel(Ir& ir, const Gemm& p, const DotTiling& t, const DotTile& tile) {
  const std::string name = "dot_" + text(tile.rows) + "x" + text(tile.columns);
  ir.function(name, dot_parameters(ir, t), true,
              [&](mlir::ValueRange arguments) { DotEmitter(ir, p, t, tile, arguments).emit(); });
  return name;
}

} // namespace deepgen
