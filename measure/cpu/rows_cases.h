// Every kernel call that verification makes of rows.
#pragma once

#include "measure/values/buffers.h"
#include "measure/values/rows_expected.h"
#include "measure/values/rows_inputs.h"
#include "measure/values/verify.h"

#include <memory>

namespace deepgen {

/// What one call, or one set of calls that share out the rows, must get right.
struct RowsCase {
  const char* name;
  bool padded; ///< odd leading dimensions, bases aligned to an element only
  Guard guard;
  GridCut cut;
  /// In which operand an output lies.
  enum Place { apart, d_in_x, d_in_residual, sum_in_residual, sum_in_x } place = apart;
  int flavours = -1; ///< see RowsInputs
};

/// Problems up to 1 M elements get every case that they allow. Larger ones get the dense call only.
std::vector<RowsCase> cases_for(const Rows&);

/// The worst of what was compared; in words when it is too far off.
struct RowFinding {
  double error = 0;
  std::string detail;
  /// `column` is negative where there is none. Returns whether this is the worst, and too far off.
  bool note(double error, const char* operand, int64_t row, int64_t column, double found);
};

class RowsCases : public CaseSet {
public:
  RowsCases(const Rows&, uint64_t seed);

  Problem problem() const override { return problem_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  /// Values of the operands and what rows must become of them: of the cases with the same flavours.
  struct Values {
    RowsInputs inputs;
    std::vector<int64_t> rows; ///< that are compared, ascending
    std::vector<ExpectedRow> expected;
    Values(const Rows&, uint64_t seed, int flavours);
  };
  struct Prepared {
    RowsCase what;
    const Values* values;
    GuardedMatrix x, residual, scale, bias, own_d, own_sum, row_scales;
    RowsCall call;

    bool writes_x() const { return what.place == RowsCase::d_in_x || what.place == RowsCase::sum_in_x; }
    bool writes_residual() const {
      return what.place == RowsCase::d_in_residual || what.place == RowsCase::sum_in_residual;
    }
    const GuardedMatrix& d() const {
      return what.place == RowsCase::d_in_x ? x : what.place == RowsCase::d_in_residual ? residual : own_d;
    }
    const GuardedMatrix& sum() const { ///< the residual output
      return what.place == RowsCase::sum_in_x          ? x
             : what.place == RowsCase::sum_in_residual ? residual
                                                       : own_sum;
    }
  };
  Prepared prepare(const RowsCase&, const Values&) const;
  void fill(Prepared&) const;
  RowFinding compare(const Prepared&) const;
  Verdict run(Prepared&, const LoadedKernel&, GuardedWorkspace&) const;

  Rows problem_;
  std::vector<std::unique_ptr<Values>> values_;
  std::vector<std::unique_ptr<Prepared>> cases_;
};

/// Bytes that RowsCases take, or more.
double case_bytes(const Rows&);

} // namespace deepgen
