// lock vendor, and what `lock merge --vendored` does after it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace deepgen {

struct VendorOptions {
  std::string lock, cache;
  std::vector<std::string> devices; ///< device.json; kernels of a GPU that is present are verified on it
  double timeout = 60;
  size_t jobs = 0; ///< processes; 0: as many as there are cores
  std::string part;
};

/// Makes the folder of vendored kernels what the lock wants. Returns 0 when it has all of its kernels.
int vendor(const VendorOptions&);
void add_vendor_command(CLI::App& lock);

} // namespace deepgen
