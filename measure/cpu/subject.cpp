#include "measure/cpu/subject.h"

namespace deepgen {

std::unique_ptr<Subject> subject_of(const Problem& p) {
  return std::visit([](const auto& x) { return subject_of(x); }, p.which());
}

} // namespace deepgen
