#include "generator/space/top.h"

#include "generator/cli/try_command.h"
#include "tests/unit/generator/fake_template.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace deepgen::top_test {
namespace {

Record record(const std::string& stage, const Choice& choice, double ratio,
              const std::string& origin = "model") {
  Record r;
  r.stage = stage, r.problem = "gemm a", r.arch = "fake", r.choice = choice, r.origin = origin;
  r.timing = Timing();
  r.timing->ratio = ratio;
  return r;
}

std::vector<Choice> choices(const SavedSpace& space) {
  std::vector<Choice> all;
  for (const SpaceEntry& e : space.entries) all.push_back(e.choice);
  return all;
}

TEST(Top, FastestFirstWithTheDefault) {
  const Choice standard = fake_choice(4, 1, 8, 0), fast = fake_choice(4, 2, 8, 0),
               lucky = fake_choice(4, 3, 8, 0), slow = fake_choice(4, 4, 8, 0),
               wrong = fake_choice(4, 5, 8, 0);
  RecordLog r0, final;
  r0.records = {record("r0", standard, 1, "default"), record("r0", fast, 0.8), record("r0", lucky, 0.5),
                record("r0", slow, 2), record("r0", wrong, 0.1)};
  r0.records.back().status = "wrong";
  final.records = {record("final", lucky, 0.9), record("final", {"vendor", {}}, 0.01)};
  // In whatever order the logs come, a ratio of the finals is the better one.
  for (const auto& logs : {std::vector<RecordLog>{r0, final}, {final, r0}}) {
    EXPECT_EQ(choices(top_of(logs, 2)), (std::vector<Choice>{fast, lucky, standard}));
    EXPECT_EQ(choices(top_of(logs, 1)), (std::vector<Choice>{fast, standard}));
    EXPECT_EQ(choices(top_of(logs, 99)), (std::vector<Choice>{fast, lucky, standard, slow}));
  }
  const SpaceEntry first = top_of({r0}, 1).entries.front();
  EXPECT_EQ(first.problem, "gemm a");
  EXPECT_EQ(first.arch, "fake");
}

TEST(Top, OfEachProblemAndArch) {
  RecordLog log;
  log.records = {record("r0", fake_choice(4, 1, 8, 0), 1), record("r0", fake_choice(4, 2, 8, 0), 0.9),
                 record("r0", fake_choice(4, 3, 8, 0), 0.7), record("r0", fake_choice(4, 4, 8, 0), 0.7)};
  log.records[1].problem = "gemm b";
  log.records[2].arch = "other";
  const SavedSpace top = top_of({log}, 1);
  EXPECT_EQ(top.configs_for("gemm a", "fake"), (std::vector<Choice>{fake_choice(4, 4, 8, 0)}));
  EXPECT_EQ(top.configs_for("gemm b", "fake"), (std::vector<Choice>{fake_choice(4, 2, 8, 0)}));
  EXPECT_EQ(top.configs_for("gemm a", "other"), (std::vector<Choice>{fake_choice(4, 3, 8, 0)}));
  EXPECT_TRUE(top_of({RecordLog()}, 4).entries.empty());
}

TEST(CandidateCommands, AreALineEachForAShell) {
  Plan plan;
  plan.arch = "fake";
  plan.slots = {{fake_choice(4, 1, 8, 0), "default"}, {fake_choice(4, 2, 8, 0), "model"}};
  const std::string text = candidate_commands(plan, "/it's here/problem.json", "/d.json");
  EXPECT_NE(text.find(" try --problem '/it'\\''s here/problem.json' --arch fake --device '/d.json' --config "
                      "'fake_tile isa=4 mr=2 nr=8 pack=0'\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << "a comment and two candidates";
}

} // namespace
} // namespace deepgen::top_test
