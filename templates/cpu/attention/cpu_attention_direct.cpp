// Scores and sums of few rows, whose keys and values are read where they lie: nobody else would share what
// packing costs. Lanes are dimensions, so that a score is a sum over lanes.
#include "templates/cpu/attention/cpu_attention_parts.h"
#include "templates/cpu/cpu_values.h"

namespace deepgen {
namespace {

/// `a` and `b` hold as many sums each, every one in lanes side by side. All of them, those of `a` first, in
/// half as many lanes.
Value merge(Ir& ir, Value a, Value b, int64_t sums) {
  const int64_t lanes = ir.isa.lanes(), width = lanes / sums;
  llvm::SmallVector<int64_t> first, second;
  for (int64_t s = 0; s < 2 * sums; ++s)
    for (int64_t l = 0; l < width / 2; ++l) {
      const int64_t at = s / sums * lanes + s % sums * width + l;
      first.push_back(at), second.push_back(at + width / 2);
    }
  return ir.addf(ir.shuffle(a, b, first), ir.shuffle(a, b, second));
}

/// The sums over lanes of as many vectors as one has lanes, in their order.
Value merge_all(Ir& ir, Values vectors) {
  for (int64_t sums = 1; vectors.size() > 1; sums *= 2) {
    Values next;
    for (size_t i = 0; i < vectors.size(); i += 2)
      next.push_back(merge(ir, vectors[i], vectors[i + 1], sums));
    vectors = next;
  }
  return vectors[0];
}

/// The scores of all rows and some keys, of which each row's are stored.
void scores_of_keys(Ir& ir, const Attention& p, const AttentionTiling& t, Value q, const Values& keys,
                    Value scores) {
  const int64_t lanes = t.isa.lanes(), whole = p.head_dim / lanes * lanes, together = int64_t(keys.size());
  const auto step = [&](Values& sums, Value d, int64_t count) {
    Values right;
    for (Value key : keys) right.push_back(load_values(ir, p.kv, element_at(ir, p.kv, key, d), count));
    for (int64_t r = 0; r < t.mr; ++r) {
      Value left = ir.load_vector(ir.at(ir.at(q, r * t.q_ld), d), lanes);
      for (int64_t k = 0; k < together; ++k) {
        Value& sum = sums[size_t(r * together + k)];
        sum = ir.fma(left, right[size_t(k)], sum);
      }
    }
  };
  Values sums(size_t(t.mr * together), ir.splat(0.0));
  sums = ir.loop(ir.constant(0), ir.constant(whole), lanes, sums, [&](Value d, mlir::ValueRange carried) {
    Values next(carried);
    step(next, d, lanes);
    return next;
  });
  if (whole < p.head_dim) step(sums, ir.constant(whole), p.head_dim - whole);
  Value all = merge_all(ir, sums);
  for (int64_t r = 0; r < t.mr; ++r) {
    llvm::SmallVector<int64_t> own;
    for (int64_t k = 0; k < lanes; ++k) own.push_back(r * together + std::min(k, together - 1));
    Value row = t.mr == 1 ? all : ir.shuffle(all, all, own);
    ir.store_vector(row, ir.at(scores, r * t.bk), together);
  }
}

/// Parameters of a function from `at` on: keys or values where they lie, from the block's first one on, with
/// pages as the other functions take them.
struct RowsInPlace {
  Value base, stride;
  mlir::ValueRange pages;

  RowsInPlace(const Attention& p, mlir::ValueRange x, size_t at)
      : base(x[at]), stride(x[at + 1]), pages(x.slice(at + 2, p.paged() ? 3 : 0)) {}
  static void declare(Ir& ir, const Attention& p, llvm::SmallVector<mlir::Type>& types) {
    types.append({ir.pointer, ir.i64});
    if (p.paged()) types.append({ir.pointer, ir.i64, ir.i64});
  }
  Value at(Ir& ir, const Attention& p, Value row) const {
    return element_at(ir, p.kv, base, key_offset(ir, p, stride, pages, row));
  }
};

/// Asks for a row, for the second-level cache. Rows lie apart by more than a processor's own prefetching
/// follows.
void ask_for(Ir& ir, const Attention& p, Value row, int64_t elements) {
  constexpr int64_t kLine = 64;
  for (int64_t d = 0; d < elements; d += kLine / size_of(p.kv))
    ir.prefetch(element_at(ir, p.kv, row, ir.constant(d)), false, false);
}

} // namespace

std::string direct_scores_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "direct_scores";
  llvm::SmallVector<mlir::Type> types = {ir.pointer, ir.pointer, ir.i64};
  RowsInPlace::declare(ir, p, types), RowsInPlace::declare(ir, p, types);
  const int64_t together = t.isa.lanes() / t.mr;
  ir.function(name, types, true, [&](mlir::ValueRange x) {
    const RowsInPlace keys(p, x, 3), values(p, x, 5 + keys.pages.size());
    Value last = ir.sub(x[2], ir.constant(1));
    ir.loop(ir.constant(0), x[2], together, [&](Value key) {
      Values rows;
      for (int64_t k = 0; k < together; ++k) {
        Value row = ir.min(ir.add(key, k), last);
        rows.push_back(keys.at(ir, p, row));
        ask_for(ir, p, values.at(ir, p, row), p.value_dim);
      }
      scores_of_keys(ir, p, t, x[0], rows, ir.at(x[1], key));
    });
  });
  return name;
}

std::string direct_weigh_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "direct_weigh";
  llvm::SmallVector<mlir::Type> types = {ir.pointer, ir.pointer, ir.pointer, ir.i64, ir.i64};
  RowsInPlace::declare(ir, p, types), RowsInPlace::declare(ir, p, types);
  const int64_t lanes = t.isa.lanes(), all = t.value_ld / lanes;
  ir.function(name, types, true, [&](mlir::ValueRange x) {
    const RowsInPlace values(p, x, 5), keys(p, x, 7 + values.pages.size());
    Value last = ir.sub(x[4], ir.constant(1));
    for (int64_t first = 0; first < all; first += t.value_vectors)
      weigh_vectors(ir, t, {x[0], x[1], x[2], x[3]}, first, std::min(t.value_vectors, all - first),
                    [&](Value key) -> ValueOfKey {
                      return [&, key, first](int64_t u, int64_t j) {
                        Value own = ir.add(key, u);
                        if (first == 0 && j == 0)
                          ask_for(ir, p, keys.at(ir, p, ir.min(ir.add(own, t.bk), last)), p.head_dim);
                        const int64_t d = (first + j) * lanes;
                        return load_values(ir, p.kv,
                                           element_at(ir, p.kv, values.at(ir, p, own), ir.constant(d)),
                                           std::min(lanes, p.value_dim - d));
                      };
                    });
  });
  return name;
}

} // namespace deepgen
