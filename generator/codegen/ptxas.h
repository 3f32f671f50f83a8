// ptxas: NVIDIA's assembler as a child process. PTX in, cubin and the resources of each entry out. No LLVM.
#pragma once

#include "base/kernel/kernel.h"

#include <string>
#include <vector>

namespace deepgen {

/// What `ptxas -v` says about one compilation.
struct PtxasReport {
  std::vector<Launch> entries; ///< only the entry's name and its resources are set
  std::vector<std::string> warnings;
};
PtxasReport parse_ptxas(const std::string& output);

/// Path of ptxas: $DEEPGEN_PTXAS ("none": do without), else in $CUDA_HOME/bin, $CUDA_PATH/bin, PATH,
/// /usr/local/cuda*/bin; empty when there is none. Throws Error when DEEPGEN_PTXAS names no program.
std::string find_ptxas();
/// "ptxas 13.0.88"; empty when there is none.
std::string ptxas_version();

/// One running ptxas. Its input and output are memory files and a pipe, so that nothing is left on disk
/// however it ends.
class Assembly {
public:
  /// Starts ptxas on kernel.ptx for kernel.target, if there is a ptxas; `level` as in -O.
  explicit Assembly(const Kernel&, int level = 3);
  Assembly(Assembly&&) noexcept;
  Assembly& operator=(Assembly&&) = delete;
  ~Assembly(); ///< kills it when it still runs

  /// Waits, then fills in code, assembler, warnings and the launches' resources. Throws Error with what ptxas
  /// said when it fails, or takes longer than `seconds`.
  void finish(Kernel&, double seconds);

private:
  int process_ = -1, input_ = -1, output_ = -1, messages_ = -1;
};

/// Why the kernel, assembled, would be slower than its config suggests: spills, a stack frame, serialised
/// wgmma. Empty when it is sound, or was not assembled.
std::string why_rejected(const Kernel&);

} // namespace deepgen
