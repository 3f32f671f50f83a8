#include "base/kernel.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_kernel(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return KernelFile::parse(text, "kernel"); },
      [](const KernelFile& file) { return file.serialize(); });
}
const fuzz::Target kernel_target("kernel", run_kernel);

} // namespace
} // namespace deepgen
