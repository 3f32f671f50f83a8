// Shared libraries that a host may have or not, found by dlopen. One that is not there is left out; of one
// that is there and does not load, the loader's words say why; and what the host could not do this time, such
// as memory that it has not, is neither: it would be remembered as a library that is missing.
#pragma once

#include <string>
#include <vector>

namespace deepgen {

struct OpenedLibrary {
  void* handle = nullptr; ///< of dlopen, never closed
  std::string why; ///< the first that is there and does not load, in dlerror()'s words; empty: none is there

  explicit operator bool() const { return handle; }
  /// What to say where there is no handle.
  std::string absence(const std::string& otherwise) const {
    return why.empty() ? otherwise : "cannot load " + why;
  }
};

/// The first of the names that loads. Throws HostFault when the host was short of something.
OpenedLibrary open_library(const std::vector<std::string>& names);

/// What dlerror() says of dlopen(name).
enum class LoadFailure { absent, broken, host };
LoadFailure load_failure(const std::string& name, const std::string& words);

} // namespace deepgen
