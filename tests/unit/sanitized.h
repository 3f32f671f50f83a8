#pragma once

namespace deepgen {

/// Whether the tests run under a sanitizer. It looks at memory, which each repetition of a simulation touches
/// in the same way: a few are enough there. What many of them show is shown by the run without.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

} // namespace deepgen
