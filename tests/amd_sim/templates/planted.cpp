#include "tests/amd_sim/templates/planted.h"

#include "tests/amd_sim/check/check.h"

#include <gtest/gtest.h>

#include <regex>

namespace deepgen::amd_sim {

std::string first_fault(const Compiled& c) {
  for (const cuda::CallCase& each : ptx_sim::chosen_cases(c.kernel.problem.gemm(), 1))
    if (const std::string fault = check_case(c.kernel, c.ir, each, 1).fault; !fault.empty()) return fault;
  return "";
}

namespace {

int plant_between(const Compiled& right, size_t first, size_t last, const std::string& pattern,
                  const std::string& by,
                  const std::function<std::string(const Compiled&)>& find = first_fault) {
  const std::regex expression(pattern);
  const auto begin = right.ir.begin();
  int planted = 0;
  for (std::sregex_iterator i(begin + int64_t(first), begin + int64_t(last), expression), end; i != end;
       ++i, ++planted) {
    Compiled wrong = right;
    wrong.ir.replace(first + size_t(i->position()), size_t(i->length()), i->format(by));
    EXPECT_NE(find(wrong), "") << "not found: " << i->str() << " changed to '" << i->format(by)
                               << "' at byte " << first + size_t(i->position());
  }
  return planted;
}

} // namespace

int plant(const Compiled& right, const std::string& pattern, const std::string& by) {
  return plant_between(right, 0, right.ir.size(), pattern, by);
}

int plant(const Compiled& right, const std::string& pattern, const std::string& by,
          const std::function<std::string(const Compiled&)>& find) {
  return plant_between(right, 0, right.ir.size(), pattern, by, find);
}

int plant_in_loop(const Compiled& right, const std::string& pattern, const std::string& by) {
  const size_t first = right.ir.find(" = phi "), last = right.ir.find("!llvm.loop", first);
  EXPECT_NE(last, std::string::npos);
  return plant_between(right, first, std::min(last, right.ir.size()), pattern, by);
}

} // namespace deepgen::amd_sim
