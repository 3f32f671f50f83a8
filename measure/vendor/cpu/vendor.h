// The vendor library as a baseline: OpenBLAS, loaded with dlopen so that nothing depends on it.
#pragma once

#include "measure/values/operands.h"

#include <functional>
#include <optional>
#include <string>

namespace deepgen {

/// What a careful user without DeepGen would run: cblas_sgemm or cblas_dgemm on one thread, a batch as a
/// loop, the epilogue as one vectorised pass over D afterwards (vendor_epilogue.h); a gated problem as one
/// product of both weights. Loading it starts no threads in this process's children.
class Vendor {
public:
  /// Empty when no OpenBLAS is installed, or when it does not load: then `why`, if given, says why. Throws
  /// HostFault as open_library().
  static std::optional<Vendor> open(std::string* why = nullptr);
  const std::string& name() const { return name_; } ///< "openblas 0.3.21"
  /// The call to time. The buffers must outlive it.
  std::function<void()> prepare(const Gemm&, const CallBuffers&) const;
  /// Its calls in this process take so many threads from here on, which start now.
  void use_threads(int) const;

private:
  std::string name_;
  void *sgemm_ = nullptr, *dgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
};

} // namespace deepgen
