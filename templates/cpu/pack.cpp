#include "templates/cpu/pack.h"

namespace deepgen {
namespace {

/// One row of the panel is one run of the source.
void copy_rows(Ir& ir, const PanelShape& panel, mlir::ValueRange arguments) {
  Value source = arguments[0], ld = arguments[1], destination = arguments[2], kc = arguments[3];
  const int64_t lanes = ir.isa.lanes();
  ir.loop(ir.constant(0), kc, 1, [&](Value k) {
    Value from = ir.at(source, ir.mul(k, ld));
    Value to = ir.at(destination, ir.mul(k, panel.pitch()));
    for (int64_t w = 0; w < panel.width; w += lanes) {
      const int64_t valid = std::clamp<int64_t>(panel.valid - w, 0, lanes);
      Value values = panel.ragged ? ir.load_vector(ir.at(from, w), ir.sub(arguments[4], ir.constant(w)))
                     : valid == 0 ? ir.splat(0.0)
                                  : ir.load_vector(ir.at(from, w), valid);
      ir.store_vector(values, ir.at(to, w), std::min(lanes, panel.width - w));
    }
  });
}

/// Where the values for one w begin, counted from `source` on.
using RowAt = std::function<Value(Value source, int64_t w)>;

/// A square: `lanes` steps of k for the `lanes` values of w from `source` on, of which the first `valid`
/// exist.
void transpose_square(Ir& ir, int64_t pitch, int64_t valid, int64_t stored, Value source, const RowAt& row,
                      Value destination) {
  const int64_t lanes = ir.isa.lanes();
  Values rows;
  for (int64_t w = 0; w < lanes; ++w)
    rows.push_back(w < valid ? ir.load_vector(row(source, w), lanes) : ir.splat(0.0));
  Values columns = transpose(ir, rows);
  for (int64_t k = 0; k < lanes; ++k)
    ir.store_vector(columns[size_t(k)], ir.at(destination, k * pitch), stored);
}

/// `lanes` steps of k from `source` on, for all columns w of the panel.
void transpose_block(Ir& ir, const PanelShape& panel, Value source, Value ld, Value destination) {
  const int64_t lanes = ir.isa.lanes(), whole = panel.valid / lanes * lanes;
  const RowAt row = [&](Value from, int64_t w) { return ir.at(from, ir.mul(ld, w)); };
  // A loop, not unrolled squares: shuffles are what compiling a kernel spends most time on.
  if (whole > 0)
    ir.loop(ir.constant(0), ir.constant(whole), lanes, [&](Value w) {
      transpose_square(ir, panel.pitch(), lanes, lanes, ir.at(source, ir.mul(w, ld)), row,
                       ir.at(destination, w));
    });
  for (int64_t w = whole; w < panel.width; w += lanes)
    transpose_square(ir, panel.pitch(), std::clamp<int64_t>(panel.valid - w, 0, lanes),
                     std::min(lanes, panel.width - w), ir.at(source, ir.mul(ld, w)), row,
                     ir.at(destination, w));
}

/// The same where a run-time number of columns exists: the last one stands for those that do not.
void transpose_ragged(Ir& ir, const PanelShape& panel, Value source, Value ld, Value last,
                      Value destination) {
  const int64_t lanes = ir.isa.lanes(), whole = panel.width / lanes * lanes;
  const auto square = [&](Value first, int64_t stored) {
    const RowAt row = [&](Value from, int64_t w) {
      return ir.at(from, ir.mul(ir.min(ir.add(first, w), last), ld));
    };
    transpose_square(ir, panel.pitch(), lanes, stored, source, row, ir.at(destination, first));
  };
  if (whole > 0) ir.loop(ir.constant(0), ir.constant(whole), lanes, [&](Value w) { square(w, lanes); });
  if (whole < panel.width) square(ir.constant(whole), panel.width - whole);
}

void transpose_columns(Ir& ir, const PanelShape& panel, mlir::ValueRange arguments) {
  Value source = arguments[0], ld = arguments[1], destination = arguments[2], kc = arguments[3];
  const int64_t lanes = ir.isa.lanes();
  Value last = panel.ragged ? ir.sub(arguments[4], ir.constant(1)) : Value();
  Value whole = ir.sub(kc, ir.remainder(kc, lanes));
  ir.loop(ir.constant(0), whole, lanes, [&](Value k) {
    if (panel.ragged)
      return transpose_ragged(ir, panel, ir.at(source, k), ld, last,
                              ir.at(destination, ir.mul(k, panel.pitch())));
    transpose_block(ir, panel, ir.at(source, k), ld, ir.at(destination, ir.mul(k, panel.pitch())));
  });
  // What is left is fewer than `lanes` steps: element by element, so that nothing behind the rows is read,
  // and no second transposition is compiled.
  ir.loop(whole, kc, 1, [&](Value k) {
    Value to = ir.at(destination, ir.mul(k, panel.pitch()));
    for (int64_t w = 0; w < panel.width; ++w) {
      Value from =
          ir.at(ir.at(source, k), panel.ragged ? ir.mul(ir.min(ir.constant(w), last), ld) : ir.mul(ld, w));
      ir.store_scalar(panel.ragged || w < panel.valid ? ir.load_scalar(from) : ir.scalar(0.0), ir.at(to, w));
    }
  });
}

/// A panel of vectors: row by row, each of which ends with zeros up to a whole vector.
void copy_vectors(Ir& ir, const PanelShape& panel, mlir::ValueRange arguments) {
  Value source = arguments[0], ld = arguments[1], destination = arguments[2], kc = arguments[3];
  const int64_t lanes = ir.isa.lanes();
  Value rest = ir.remainder(kc, lanes), whole = ir.sub(kc, rest);
  Value rows = panel.ragged ? Value(arguments[4]) : ir.constant(panel.valid);
  ir.loop(ir.constant(0), rows, 1, [&](Value w) {
    Value from = ir.at(source, ir.mul(w, ld)), to = ir.at(destination, ir.mul(w, lanes));
    ir.loop(ir.constant(0), whole, lanes, [&](Value k) {
      ir.store_vector(ir.load_vector(ir.at(from, k), lanes), ir.at(to, ir.mul(k, panel.width)), lanes);
    });
    ir.branch(ir.not_equal(rest, ir.constant(0)), [&] {
      ir.store_vector(ir.load_vector(ir.at(from, whole), rest), ir.at(to, ir.mul(whole, panel.width)), lanes);
    });
  });
}

} // namespace

Values transpose(Ir& ir, Values rows) {
  const int64_t n = ir.isa.lanes();
  for (int64_t step = 1; step < n; step *= 2) {
    Values next(rows.size());
    for (int64_t i = 0; i < n; ++i) {
      if (i & step) continue;
      llvm::SmallVector<int64_t> low, high;
      for (int64_t e = 0; e < n; ++e) {
        low.push_back(e & step ? n + e - step : e);
        high.push_back(e & step ? n + e : e + step);
      }
      Value x = rows[size_t(i)], y = rows[size_t(i + step)];
      next[size_t(i)] = ir.shuffle(x, y, low);
      next[size_t(i + step)] = ir.shuffle(x, y, high);
    }
    rows = next;
  }
  return rows;
}

std::string pack_function(Ir& ir, const PanelShape& panel) {
  std::string name = std::string(panel.of_vectors ? "pack_vectors_"
                                 : panel.k_major  ? "pack_rows_"
                                                  : "pack_columns_") +
                     std::to_string(panel.width) + "_" +
                     (panel.ragged ? "ragged" : std::to_string(panel.valid)) +
                     (panel.row ? "_of_" + std::to_string(panel.row) : "");
  llvm::SmallVector<mlir::Type> parameters = {ir.pointer, ir.i64, ir.pointer, ir.i64};
  if (panel.ragged) parameters.push_back(ir.i64);
  ir.function(name, parameters, true, [&](mlir::ValueRange arguments) {
    if (panel.of_vectors)
      copy_vectors(ir, panel, arguments);
    else if (panel.k_major)
      copy_rows(ir, panel, arguments);
    else
      transpose_columns(ir, panel, arguments);
  });
  return name;
}

} // namespace deepgen
