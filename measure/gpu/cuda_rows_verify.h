// Whether a GPU kernel of rows computes the right thing and nothing else. Operands are made, and canaries and
// unchanged inputs are checked, in the device's memory, whole. The reference is of rows that are copied back:
// all of a small problem, of a large one those with special values and seeded others. A row costs the host a
// microsecond for some tens of elements; kernels in f64 for it would be a second reference to keep right.
#pragma once

#include "measure/gpu/cuda_verify.h"
#include "measure/values/rows_expected.h"

#include <map>

namespace deepgen::cuda {

/// What one call must get right.
struct RowsCallCase {
  const char* name;
  bool padded = false;   ///< gaps between rows, and bases as little aligned as the kernel takes
  bool in_place = false; ///< D is X where their types are equal, and the residual output is the residual
  bool special = false;  ///< the first rows are one of each RowFlavour
};
std::vector<RowsCallCase> rows_call_cases();

/// The rows of which the numbers are checked.
std::vector<int64_t> checked_rows(const Rows&, uint64_t seed);

class RowsVerifier : public KernelVerifier {
public:
  RowsVerifier(const Context& context, const Toolbox& tools, uint64_t seed, int64_t zone)
      : context_(context), tools_(tools), seed_(seed), zone_(zone) {}
  Verdict verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) override;

private:
  struct Call;
  /// By the row's number. Kept for all kernels of one problem.
  using Reference = std::map<int64_t, ExpectedRow>;
  const Reference& reference_of(const Call&, const Rows&, const RowsCallCase&);
  Verdict verify_case(const LoadedKernel&, const Kernel&, const RowsCallCase&);
  Verdict damage(const Call&) const;
  Verdict numbers(const Call&, const Rows&, const Reference&) const;

  const Context& context_;
  const Toolbox& tools_;
  uint64_t seed_;
  int64_t zone_;
  std::map<std::string, Reference> references_;
};

} // namespace deepgen::cuda
