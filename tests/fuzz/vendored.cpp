#include "generator/lock/vendored.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_vendored(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return VendoredKernels::parse(text, "vendored"); },
      [](const VendoredKernels& v) { return v.serialize(); });
  fuzz::round_trip(
      input, [](const std::string& bytes) { return unpacked(bytes, "vendored"); },
      [](const std::string& text) { return packed(text); });
}
const fuzz::Target vendored_target("vendored", run_vendored);

} // namespace
} // namespace deepgen
