// Whether a GPU kernel computes the right thing and nothing else. Everything happens in the device's memory:
// operands are made there, held against an f64 reference there, and only findings come back.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/gpu/cuda_equal_rows.h"
#include "measure/gpu/cuda_launch.h"
#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/values/groups.h"
#include "measure/values/verify.h"

#include <map>

namespace deepgen::cuda {

/// What one call must get right.
struct CallCase {
  const char* name;
  /// Gaps between rows and entries, and bases no better aligned than the kernel demands; vectors as their
  /// elements.
  bool padded;
  double alpha, beta;
  enum C {
    absent,
    separate,
    in_place
  } c;                ///< absent: C is null; separate with beta 0: C holds NaN; in place: D
  bool reuse = false; ///< residual and multiplier are D
  enum Broadcast { none, a, b } broadcast = none; ///< one matrix for the whole batch
  /// Between two calls on another A and D with the same workspace: for kernels that may begin before the one
  /// ahead of them ends, or leave something in the workspace.
  bool in_a_row = false;
  Sharing sharing = Sharing::even; ///< of rows among groups, where there are groups
};

/// Problems above the budget for all cases get the first and the last plain case; the others are covered by
/// the same config on the template's awkward shape.
std::vector<CallCase> call_cases(const Gemm&, const CheckBudget& = {});

/// Blocks of 32 rows of D, as indices into batch entries * blocks per entry: all of them, or of problems
/// above the budget or 64 M elements the first, the last and seeded ones in between.
std::vector<int64_t> checked_blocks(const Gemm&, uint64_t seed, const CheckBudget& = {});

/// Verifies the kernels of one operator.
class KernelVerifier {
public:
  virtual ~KernelVerifier() = default;
  static constexpr const char *loading = "loading", *reference = "computing the reference";
  /// `before` is called with the case's name ahead of each, and with these two ahead of what they say. A
  /// DriverError from a call of the kernel passes through.
  virtual Verdict verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) = 0;
  /// Of a kernel of a batch invariant problem, with its ranges: calls whose rows must be equal bit by bit.
  virtual Verdict verify_equal_rows(const Kernel&, const std::function<void(const std::string&)>& before) {
    (void)before;
    return {};
  }
};

/// Of matrix products.
class Verifier : public KernelVerifier {
public:
  /// `zone`: bytes of canaries around every operand. With 0, a tool that watches the bounds of allocations
  /// sees stray reads too.
  Verifier(const Context& context, const Toolbox& tools, uint64_t seed, int64_t zone = default_zone);
  static constexpr int64_t default_zone = 4096;
  Verdict verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) override;

  Verdict verify_equal_rows(const Kernel& kernel,
                            const std::function<void(const std::string&)>& before) override;

  /// One case of something else that computes the problem, called as `enqueue` does. `rounding`: of the
  /// product, ahead of gate and epilogue, in units of itself.
  using Enqueue = std::function<void(const CallOperands&, Stream)>;
  Verdict verify_call(const Kernel& described, const Enqueue& enqueue, const CallCase&, double rounding = 0);

private:
  struct Operands;
  /// Rows of D that have the same B: all of them, or those of a group.
  struct Part {
    int64_t group = 0, row = 0, rows = 0;
  };
  static std::vector<Part> parts_of(const Gemm&, const CallCase&, uint64_t seed);
  /// The product of the inputs, kept for all kernels of one problem: of each part its own.
  struct Product {
    Part part;
    std::vector<int64_t> blocks;
    Memory block_list, value, magnitude;
  };
  const std::vector<Product>& products_of(const Gemm&, const CallCase&);
  Product multiply(const Gemm&, const Part&, int64_t parts, const Array& a, const Array& b) const;
  Verdict verify_case(const LoadedKernel&, const Kernel&, const CallCase&);
  static CompareParameters comparison(const Kernel&, const Operands&, const Product&);
  /// `unwritten`: the finding is check_written()'s. Else the canary in an integer is a wrong value.
  std::string describe(const Kernel&, const CompareParameters&, const Part&, const Finding&, bool unwritten);

  const Context& context_;
  const Toolbox& tools_;
  uint64_t seed_;
  int64_t zone_;
  std::map<std::string, std::vector<Product>> products_;
  std::map<std::string, std::unique_ptr<EqualRowCalls>> equal_rows_; ///< by problem
};

} // namespace deepgen::cuda
