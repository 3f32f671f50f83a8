// oneDNN as a baseline: loaded with dlopen so that nothing depends on it.
#pragma once

#include "measure/values/operands.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace deepgen {

/// What a user of oneDNN would run: one matmul primitive with the epilogue as its post-operations, on one
/// thread unless it is told more. Only the interface of version 2 is known here.
class OneDnn {
public:
  /// How the primitive gets B: as a call of ours passes it, or in the layout that oneDNN likes best, copied
  /// there ahead of the calls.
  enum class Weights { plain, packed };

  /// Empty when it is not installed, or of no use: then `why`, if given, says why. Throws HostFault as
  /// open_library().
  static std::optional<OneDnn> open(std::string* why = nullptr);
  const std::string& name() const { return name_; } ///< "onednn 2.6.3"
  /// The call to time, with beta 0; an empty function where oneDNN has no primitive for the problem on this
  /// CPU. The buffers must outlive it.
  std::function<void()> prepare(const Gemm&, const CallBuffers&, Weights) const;

  /// Whether it has a primitive for the problem, dense and with plain weights, on this CPU.
  bool serves(const Gemm&) const;

  /// Primitives that this thread prepares and calls from here on take so many threads. False where the
  /// library has none that can be set: it shares out its work by OpenMP, or not at all.
  bool use_threads(int) const;

  struct Interface;

private:
  std::string name_;
  std::shared_ptr<const Interface> interface_;
};

} // namespace deepgen
