#include "remote/sites.h"

#include "remote/board.h"
#include "remote/call.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace deepgen::sites_test {
namespace {

Json site(const Json& more) {
  Json json = {{"name", "h200"}, {"arch", "sm_90a"}, {"measure", {"srun"}}, {"worker", "/opt/bin/deepgen"}};
  for (const auto& [key, value] : more.items()) json[key] = value;
  return json;
}

std::string text_of(const Json& one) { return Json{{"schema", "deepgen.sites/1"}, {"sites", {one}}}.dump(); }

Site parsed(const Json& more) { return Sites::parse(text_of(site(more)), "sites.json").sites.front(); }

std::string refusal(const Json& more) {
  try {
    parsed(more);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Sites, SayWhatIsDoneWhere) {
  const Site s =
      parsed({{"compile", {"srun", "-c1"}}, {"compile_jobs", 16}, {"batch", 8}, {"measure_jobs", 2}});
  EXPECT_EQ(s.archs, std::vector<std::string>{"sm_90a"});
  EXPECT_EQ(s.launcher(Task::compile).words, (std::vector<std::string>{"srun", "-c1"}));
  EXPECT_EQ(s.compile.jobs, 16);
  EXPECT_EQ(s.batch, 8);
  EXPECT_EQ(s.measure.jobs, 2);
  EXPECT_EQ(s.measurer, "/opt/bin/deepgen-measure");
  EXPECT_EQ(s.retry_seconds, (std::vector<double>{1, 10, 60}));
  EXPECT_TRUE(parsed({}).compile.here);
  EXPECT_FALSE(parsed({{"compile", Json::array()}}).compile.here) << "a worker here is a worker";
}

TEST(Sites, ErrorsNameSiteAndField) {
  for (const auto& [field, value] : {std::pair<const char*, Json>{"arch", "sm_x"},
                                     {"arch", Json::array()},
                                     {"compile", "srun"},
                                     {"compile", {"a\nb"}},
                                     {"compile_jobs", 0},
                                     {"batch", 65},
                                     {"batch", 1.5},
                                     {"send", 1},
                                     {"leave_out", "--exclude"},
                                     {"run_seconds", -1},
                                     {"retry_seconds", "1"},
                                     {"retry_seconds", {1, "2"}},
                                     {"meassure", Json::array()},
                                     {"worker", ""},
                                     {"shell", "yes"}}) {
    Json more = {{field, value}};
    if (std::string(field) == "compile_jobs") more["compile"] = Json::array();
    const std::string text = refusal(more);
    EXPECT_NE(text.find("site 'h200': field '" + std::string(field) + "'"), std::string::npos)
        << field << ": " << text;
  }
  EXPECT_NE(refusal({{"compile_jobs", 3}}).find("field 'compile_jobs' is there without 'compile'"),
            std::string::npos);
  EXPECT_NE(refusal({{"name", "a/b"}}).find("field 'name'"), std::string::npos);
  EXPECT_NE(refusal({{"send", true}}).find("'worker' is there beside 'send'"), std::string::npos);
}

TEST(Sites, AFileWithoutSitesOrWithOneTwiceIsRefused) {
  EXPECT_THROW(Sites::parse("{\"schema\":\"deepgen.sites/1\",\"sites\":[]}", "f"), Error);
  EXPECT_THROW(Sites::parse("{\"schema\":\"deepgen.sites/2\",\"sites\":[{}]}", "f"), Error);
  const Json twice = {{"schema", "deepgen.sites/1"}, {"sites", {site({}), site({})}}};
  EXPECT_THROW(Sites::parse(twice.dump(), "f"), Error);
  EXPECT_THROW(Sites::parse(text_of(site({})), "f").find("other", "f"), Error);
}

TEST(Sites, WordsThatStartAWorker) {
  const Site s = parsed({{"leave_out", "--exclude={nodes}"}});
  EXPECT_EQ(worker_words(s, Task::measure, {}, {}),
            (std::vector<std::string>{"srun", "/opt/bin/deepgen-measure", "worker"}));
  EXPECT_EQ(worker_words(s, Task::measure, {}, {"n1", "n2"}),
            (std::vector<std::string>{"srun", "--exclude=n1,n2", "/opt/bin/deepgen-measure", "worker"}));
  const Site ssh = parsed({{"measure", {"ssh", "h"}}, {"shell", true}, {"worker", "/opt/a b/deepgen"}});
  EXPECT_EQ(worker_words(ssh, Task::measure, {}, {}),
            (std::vector<std::string>{"ssh", "h", "'/opt/a b/deepgen-measure'", "worker"}));
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(quoted(""), "''");
}

class BoardTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("deepgen board " + std::to_string(getpid()))).string();
  const Board board_{folder_};
};

TEST_F(BoardTest, ANodeThatFailsThreeTimesInARowIsLeftOut) {
  EXPECT_FALSE(board_.count_failure("s", "n1"));
  EXPECT_FALSE(board_.count_failure("s", "n1"));
  EXPECT_FALSE(board_.count_failure("s", "n2"));
  EXPECT_TRUE(board_.count_failure("s", "n1"));
  EXPECT_FALSE(board_.count_failure("other", "n1"));
  ASSERT_EQ(board_.nodes("s").size(), 2u);
  EXPECT_TRUE(board_.nodes("s")[0].left_out(unix_time()));
  EXPECT_FALSE(board_.nodes("s")[0].left_out(unix_time() + Board::kLeftOutSeconds)) << "not for ever";
  EXPECT_FALSE(board_.nodes("s")[1].left_out(unix_time()));
  board_.count_success("s", "n1");
  EXPECT_EQ(board_.nodes("s").size(), 1u);
}

TEST_F(BoardTest, ShowsWhatRunsWhileItRuns) {
  {
    Board::Notice notice(folder_, {"s", "compile", "r0/s00.list", "", "", 1, 7});
    notice.change({"s", "compile", "r0/s00.list", "n1", "3.1", 2, 8});
    const auto running = board_.running();
    ASSERT_EQ(running.size(), 1u);
    EXPECT_EQ(running[0].node, "n1");
    EXPECT_EQ(running[0].attempt, 2);
  }
  EXPECT_TRUE(board_.running().empty());
  board_.add_failure({"s", "measure", "final.jsonl", "n1", "", 1, 5}, "no answer\nand more");
  ASSERT_EQ(board_.failures().size(), 1u);
  EXPECT_EQ(board_.failures()[0].why, "no answer\nand more");
}

TEST(Board, WithoutAFolderNothingIsKept) {
  const Board board{""};
  EXPECT_FALSE(board.count_failure("s", "n"));
  EXPECT_TRUE(board.nodes("s").empty());
  Board::Notice notice("", {});
}

} // namespace
} // namespace deepgen::sites_test
