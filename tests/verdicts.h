// Recorded verdicts: what verification said of a kernel, one a line, with the largest error in tolerances:
//   ok 0.1284 | cpu | gemm m=... | cpu_tile isa=3 ... [| as gemm m=...]
// The last part is what a kernel was verified as, where that is what it does not compute.
//
// With VERDICTS=all a test compares all lines, not a sample; with VERDICTS=record it writes its file again,
// which is for a change of kernels' arithmetic, of tolerances or of cases alone: look at the difference.
#pragma once

#include "base/files/files.h"
#include "base/kernel/config.h"
#include "base/problem/problem.h"
#include "base/text/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace deepgen::verdicts {

struct Recorded {
  std::string arch = "cpu";
  Problem compiled, verified;
  Choice choice;
  std::string status = {};
  double error = 0;

  std::string text() const {
    char number[32];
    std::snprintf(number, sizeof number, " %.4g", error);
    return status + number + " | " + arch + " | " + compiled.key() + " | " + choice.text() +
           (compiled == verified ? "" : " | as " + verified.key());
  }
};

inline Recorded parse(const std::string& line) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 3) {
    end = line.find(" | ", begin);
    parts.push_back(line.substr(begin, end - begin));
  }
  const size_t space = parts[0].find(' ');
  if (parts.size() < 4 || parts.size() > 5 || (parts.size() == 5 && !parts[4].starts_with("as ")) ||
      space == std::string::npos)
    throw Error("not a recorded verdict", line);
  Recorded r;
  r.status = parts[0].substr(0, space), r.error = std::strtod(parts[0].c_str() + space, nullptr);
  r.arch = parts[1], r.compiled = r.verified = Problem::parse(parts[2]);
  const size_t name = parts[3].find(' ');
  r.choice = {parts[3].substr(0, name), Config::parse(parts[3].substr(name + 1))};
  if (parts.size() == 5) r.verified = Problem::parse(parts[4].substr(3));
  return r;
}

inline std::vector<Recorded> read(const std::string& path) {
  std::vector<Recorded> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) all.push_back(parse(line));
  return all;
}

/// What differs; empty: nothing. The record has four digits of an error, and the reference's f64 a host's
/// libm.
inline std::string difference(const Recorded& before, const Recorded& now) {
  constexpr double kSame = 1e-3;
  const bool same =
      before.status == now.status && std::fabs(before.error - now.error) <= kSame * before.error;
  return same ? "" : "recorded: " + before.text() + "\n     now: " + now.text() + "\n";
}

/// Another function of the sums, with the operands and arguments of `p`.
inline Problem other_function(Gemm p) {
  using enum EpilogueOp;
  constexpr EpilogueOp kGates[] = {relu, gelu, silu, gelu_tanh, sigmoid};
  if (p.gate)
    p.gate = kGates[(std::find(std::begin(kGates), std::end(kGates), *p.gate) - std::begin(kGates) + 1) %
                    std::ssize(kGates)];
  else if (p.has(relu))
    std::erase(p.epilogue, relu);
  else
    p.epilogue.push_back(relu);
  return p;
}

inline Problem other_function(Rows p) {
  constexpr RowsKind kOthers[] = {RowsKind::log_softmax, RowsKind::softmax, RowsKind::rms_norm,
                                  RowsKind::layer_norm};
  p.kind = kOthers[size_t(p.kind)];
  return p;
}

inline Problem other_function(Attention p) {
  p.mask = p.mask == AttentionMask::none ? AttentionMask::causal : AttentionMask::none;
  return p;
}

inline Problem other_function(const Problem& p) {
  return std::visit([](const auto& x) { return other_function(x); }, p.which());
}

inline bool asked_for(const std::string& what) {
  const char* value = std::getenv("VERDICTS");
  return value && value == what;
}

/// Compiles and verifies.
using Verify = std::function<Recorded(Recorded)>;

/// Every `each`-th line of the file, or all, against what `verify` says now. `draw`: for a new file.
inline void expect_as_recorded(const std::string& path, size_t count, size_t each,
                               const std::function<std::vector<Recorded>()>& draw, const Verify& verify) {
  if (asked_for("record")) {
    std::string text = "# See tests/verdicts.h.\n";
    for (const Recorded& r : draw()) text += verify(r).text() + "\n";
    write_atomically(path, text);
  }
  const std::vector<Recorded> all = read(path);
  ASSERT_EQ(all.size(), count);
  std::map<std::string, size_t> of;
  for (const Recorded& r : all) ++of[r.status];
  EXPECT_GE(of["ok"], count * 3 / 4);
  EXPECT_GE(of["wrong"], count / 8);
  std::string differences;
  for (size_t i = 0; i < all.size(); i += asked_for("all") ? 1 : each)
    differences += difference(all[i], verify(all[i]));
  EXPECT_EQ(differences, "");
}

/// That a verdict, an error, a blind verification and a broken kernel would each be found.
inline void expect_changes_to_be_found(const std::string& path, const Verify& verify) {
  const std::vector<Recorded> all = read(path);
  for (const char* status : {"ok", "wrong"}) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Recorded& r) { return r.status == status; });
    ASSERT_NE(found, all.end());
    const Recorded before = *found, now = verify(before);
    EXPECT_EQ(difference(before, now), "");
    Recorded changed = now;
    changed.error *= 1.01;
    EXPECT_NE(difference(before, changed), "") << "as by a tolerance of 1 % less";
    changed = now, changed.status = "out_of_bounds";
    EXPECT_NE(difference(before, changed), "");
    // As if a wrong kernel were taken for right, and as if a right one computed something else.
    changed = before;
    changed.verified = before.compiled == before.verified ? other_function(before.compiled) : before.compiled;
    EXPECT_NE(difference(before, verify(changed)), "");
  }
}

} // namespace deepgen::verdicts
