#include "runtime/core/fallback.h"

#include <cstdlib>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

const char* text_of(Fallback x) {
  switch (x) {
  case Fallback::unknown:
    return nullptr;
  case Fallback::runs:
    return "the vendor's library runs where a call's operands are as they were timed";
  case Fallback::off:
    return "the tuned kernel runs: DEEPGEN_FALLBACK is off";
  case Fallback::other_device:
    return "the tuned kernel runs: the vendor's library was timed on another device";
  case Fallback::absent:
    return "the tuned kernel runs: the vendor's library is not here; install it, or set LD_LIBRARY_PATH";
  case Fallback::other_version:
    return "the tuned kernel runs: the vendor's library here is another version than the one that was timed";
  case Fallback::threads:
    return "the tuned kernel runs: OpenBLAS has threads of its own here; start with OPENBLAS_NUM_THREADS=1";
  case Fallback::refused:
    return "the tuned kernel runs: the vendor's library does not take the problem on this device, or has no "
           "memory";
  case Fallback::failed:
    return "the tuned kernel runs: a call of the vendor's library failed";
  }
  return nullptr;
}

bool is_forced_off() {
  const char* text = secure_getenv("DEEPGEN_FALLBACK");
  return text && text[0] == 'o' && text[1] == 'f' && text[2] == 'f' && !text[3];
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
