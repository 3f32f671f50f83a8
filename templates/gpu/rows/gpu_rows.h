// gpu_rows: softmax and normalisations of rows on GPUs of both vendors. It is bound by memory: what a config
// decides is how many bytes are under way, and where a row is kept between its passes.
#pragma once

#include "templates/core/operator_template.h"

#include <algorithm>
#include <cmath>

namespace deepgen {

/// A config with everything that follows from it for one problem. A row belongs to `lanes` threads; its
/// vectors go to them in turn.
struct GpuRowsTiling {
  GpuRowsTiling(const Rows&, const Config&);

  enum Hold { read_again, in_registers, in_shared };

  int64_t vec, lanes, rows, hold, unroll, sets, hint, resident; ///< the parameters; see GpuRows::parameters()
  int64_t elements = 1;                                         ///< of a vector
  int64_t vectors = 1;                                          ///< of a row
  int64_t turns = 1;    ///< vectors of a row that a thread has, at most
  int64_t threads = 1;  ///< of a block
  int64_t all_sets = 1; ///< of `rows` rows each
  int64_t blocks = 1;
  int64_t warps = 1;          ///< of 32 threads that share a row
  int64_t exchanged = 1;      ///< values that each warp tells the others of a row, for one set
  int64_t barriers = 1;       ///< at which it does
  int64_t passes = 2;         ///< over a row
  int64_t shuffle_rounds = 1; ///< reductions over a warp, one after another
  int64_t held_bytes = 4;     ///< of an element in shared memory
  /// The largest of a quantised rms_norm comes with its sum.
  bool largest_with_sum = false;

  bool crosses_warps() const { return warps > 1; }
  /// A set's rows are read while the set before is computed.
  bool ahead() const { return hold == in_registers && unroll > 1; }
  /// A set's partial results have other slots than those of the set before it.
  bool alternates() const { return crosses_warps() && sets > 1 && barriers == 1; }
  int64_t slot_bytes() const { return exchanged * threads / 32 * 4; }
  int64_t partial_bytes() const; ///< of shared memory that partial results take
  int64_t shared_bytes() const;
  int64_t words_ahead(const Rows&) const;     ///< registers of a thread for what it reads ahead
  int64_t registers(const Rows&) const;       ///< estimate, for one thread
  int64_t least_registers(const Rows&) const; ///< with which it should not spill
  /// Additions one after another behind an element of a sum over a row, and the most that a config may have.
  /// Each is off by u = 2^-24 of its result at most, so the sum by `additions` u of the terms' magnitudes:
  /// within the (8 + sqrt N) u that verification grants (measure/values/rows_expected.h), whatever the
  /// values. Sums of squares of short numbers do drift: their roundings are not independent.
  int64_t additions() const;
  static double most_additions(int64_t n) { return 8 + std::sqrt(double(n)); }
  static constexpr int64_t block_additions = 8; ///< vectors that are summed before they join the others
  /// Bytes of D, up to 16, that one access stores.
  int64_t store_bytes(const Rows& p) const { return std::min<int64_t>(16, elements * size_of(p.d)); }
};

class GpuRows : public RowsTemplate {
public:
  std::string name() const override { return "gpu_rows"; }
  int64_t revision() const override { return 3; } // 2: other orders of additions; 3: resident
  std::string why_not(const Rows&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Rows&, const Device&) const override;
  std::string why_illegal(const Rows&, const Device&, const Config&) const override;
  bool dead_end(const Rows&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Rows&, const Device&, const Config&) const override; // gpu_rows_cost.cpp
  std::vector<Choice> fallbacks(const Rows&, const std::string& arch, const Config&) const override;
  Rows awkward(const Rows&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Rows&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
