#include "base/search/names.h"

namespace deepgen {

std::string slot_file_name(int64_t slot) { return (slot < 10 ? "s0" : "s") + std::to_string(slot) + ".dgk"; }

std::string candidate_name(const Record& r) {
  if (r.is_vendor() || r.origin == "default") return r.origin;
  std::string round = r.stage;
  // In the finals the stage is another one, and the kernel still lies in the folder of its round.
  const size_t end = r.kernel_file.rfind('/');
  if ((r.stage == "final" || r.stage == "holdout") && end != std::string::npos && end > 0) {
    const size_t slash = r.kernel_file.rfind('/', end - 1);
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    round = r.kernel_file.substr(begin, end - begin);
  }
  return round + "/" + std::to_string(r.slot);
}

} // namespace deepgen
