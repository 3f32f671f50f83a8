#include "generator/lock/exchange.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

/// CMake writes these files, so there is no way back.
void run_problem(const std::string& input) {
  try {
    const ProblemFile file = ProblemFile::parse(input, "problem");
    fuzz::require(Problem::parse(file.problem.key()) == file.problem, "a problem's key is not the problem");
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
  }
}
const fuzz::Target problem_target("problem", run_problem);

} // namespace
} // namespace deepgen
