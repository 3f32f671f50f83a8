// Faults that tests plant in right kernels of attention.
#pragma once

#include "tests/ptx_sim/check/attention_check.h"

#include <gtest/gtest.h>

#include <regex>

namespace deepgen::ptx_sim {

/// What is put in the place of pieces of PTX, wherever they are.
struct PlantedFault {
  const char *pattern, *by;
  const char *second = nullptr, *by_second = nullptr; ///< beside it
};

/// Of the first case that has one; "" where the kernel is right in all.
inline std::string first_fault(const Kernel& kernel, const std::vector<AttentionCase>& cases) {
  for (const AttentionCase& c : cases)
    if (const std::string found = check_attention(kernel, c, 2).fault; !found.empty()) return found;
  return "";
}

/// Each such fault, one at a time, from a place in the PTX on, is found; there is one at least.
inline void expect_found(const Kernel& right, const std::vector<AttentionCase>& cases, const PlantedFault& x,
                         size_t from = 0) {
  const std::regex pattern(x.pattern);
  int planted = 0;
  for (std::sregex_iterator i(right.ptx.begin(), right.ptx.end(), pattern), end; i != end; ++i) {
    if (size_t(i->position()) < from) continue;
    Kernel wrong = right;
    wrong.ptx.replace(size_t(i->position()), size_t(i->length()), i->format(x.by));
    if (x.second) wrong.ptx = std::regex_replace(wrong.ptx, std::regex(x.second), x.by_second);
    ++planted;
    EXPECT_NE(first_fault(wrong, cases), "") << "not found: " << i->str() << " at byte " << i->position();
  }
  EXPECT_GE(planted, 1) << x.pattern;
}

} // namespace deepgen::ptx_sim
