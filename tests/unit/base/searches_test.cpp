#include "base/search/searches.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::searches_test {
namespace {

TEST(Searches, TimeLeftIsTheMiddleGapForEachThatIsMissing) {
  EXPECT_EQ(seconds_left({100, 130, 160, 190}, 5), 150);
  EXPECT_EQ(seconds_left({190, 100, 160, 130}, 5), 150) << "in any order";
  EXPECT_EQ(seconds_left({100, 130, 90000, 90030, 90060}, 2), 60) << "a night between two of them";
  EXPECT_EQ(seconds_left({100, 130}, 5), -1) << "the gap may be that night";
  EXPECT_EQ(seconds_left({}, 5), -1);
  EXPECT_EQ(seconds_left({100, 130, 160}, 0), 0);
}

class SearchesTest : public testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  /// An empty log of the search `name`, written `seconds` after a fixed time.
  void end(const std::string& name, const std::string& log, int seconds) {
    const fs::path path = folder_ / name / log;
    fs::create_directories(path.parent_path());
    std::ofstream(path).close();
    fs::last_write_time(path, fs::file_time_type(std::chrono::seconds(1000000 + seconds)));
  }
  std::string log(const std::string& name) const { return (folder_ / name / "final.jsonl").string(); }

  const fs::path folder_ = fs::temp_directory_path() / ("deepgen searches " + std::to_string(getpid()));
};

TEST_F(SearchesTest, CountsThoseOfTheBuildOrAll) {
  const std::vector<PlannedSearch> all =
      parse_searches("build " + log("a") + "\nbuild " + log("b") + "\ntune " + log("c") + "\nbuild " +
                     log("d") + "\nbuild " + log("e") + "\n");
  ASSERT_EQ(all.size(), 5u);
  end("a", "final.jsonl", 0);
  EXPECT_EQ(searches_done(all, log("a")), "; 1 of 4 problems searched");
  end("b", "final.jsonl", 40);
  end("d", "final.jsonl", 80);
  EXPECT_EQ(searches_done(all, log("d")), "; 3 of 4 problems searched, about 40 s left");
  EXPECT_EQ(searches_done(all, log("c")), "; 3 of 5 problems searched, about 80 s left")
      << "only tuning searches it";
  end("b", "r0/records.jsonl", 90); // is searched again
  EXPECT_EQ(searches_done(all, log("d")), "; 2 of 4 problems searched");
  EXPECT_EQ(searches_done(all, log("other")), "");
  EXPECT_EQ(searches_done({}, log("a")), "");
}

TEST_F(SearchesTest, SaysMinutesWhereSecondsAreMany) {
  std::string text;
  for (char c = 'a'; c <= 'z'; ++c) text += "build " + log(std::string(1, c)) + "\n";
  for (char c = 'a'; c <= 'd'; ++c) end(std::string(1, c), "final.jsonl", 60 * (c - 'a'));
  EXPECT_EQ(searches_done(parse_searches(text), log("d")), "; 4 of 26 problems searched, about 22 min left");
}

} // namespace
} // namespace deepgen::searches_test
