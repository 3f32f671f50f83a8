// `deepgen compile --choice` and `embed` with files that somebody has changed: in the cache, and in the build
// tree.
#include "base/files/cache.h"
#include "base/files/files.h"
#include "base/kernel/kernel.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/lock/exchange.h"
#include "generator/lock/lock.h"
#include "generator/space/space.h"
#include "templates/core/template.h"
#include "tests/unit/environment.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace deepgen::compile_command_test {
namespace {

namespace fs = std::filesystem;

class CompileCommandTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "compile_command_test_" + std::to_string(getpid());
    fs::create_directories(folder_);
    problem_ =
        Gemm::parse("gemm m=4 n=8 k=4 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
    device_.isa = 3, device_.name = "a CPU";
    config_ = Space(problem_, "cpu", device_).default_choice();
    const Json problem = {{"schema", "deepgen.problem/1"}, {"target", "kernels"},       {"name", "f"},
                          {"namespace", "kernels"},        {"problem", problem_.key()}, {"untuned", false}};
    write_atomically(folder_ + "/problem.json", problem.dump());
    write_choice("default", "");
    EXPECT_EQ(compile("first.dgk"), 0);
    good_ = read_file(folder_ + "/first.dgk");
    sha256_ = KernelFile::parse(good_, "x").kernels[0].sha256;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write_choice(const std::string& origin, const std::string& sha256) {
    ChoiceFile c;
    c.function = "kernels f", c.problem = problem_, c.origin = origin;
    c.main = {config_, find_template(config_.template_name).revision(), sha256, sha256.empty() ? "" : "tools",
              ""};
    write_atomically(folder_ + "/choice.json", c.serialize());
  }
  void write_lock(const std::string& sha256) {
    Lock lock;
    lock.put({problem_.key(), "cpu", device_, config_, find_template(config_.template_name).revision(),
              sha256, "tools", Json::object()});
    write_atomically(folder_ + "/deepgen.lock.json", lock.serialize());
  }
  int tool(std::vector<std::string> words) {
    words.insert(words.begin(), "deepgen");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    const int status = deepgen_main(int(argv.size()), argv.data());
    said_ = testing::internal::GetCapturedStderr();
    return status;
  }
  int compile(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"compile",          "--choice", folder_ + "/choice.json", "--cache",
                                      folder_ + "/cache", "-o",       folder_ + "/" + output};
    words.insert(words.end(), more.begin(), more.end());
    return tool(words);
  }
  int embed(const std::string& kernel) {
    return tool({"embed", "--target", "kernels", "--header", folder_ + "/kernels.h", "--source",
                 folder_ + "/kernels.cpp", "--locked-by", folder_ + "/deepgen.lock.json", "--problem",
                 folder_ + "/problem.json", "--kernel", folder_ + "/" + kernel});
  }
  /// Another byte in the code of the main kernel, with all hashes as they should be.
  static std::string poisoned(const std::string& bytes) {
    KernelFile file = KernelFile::parse(bytes, "x");
    file.kernels[0].code.back() ^= 1;
    return file.serialize();
  }
  std::string cache_entry() {
    for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/cache/kernel"))
      if (entry.is_regular_file()) return entry.path();
    return "";
  }
  /// What an attacker stores who can write to the cache: its checksum is right, too.
  void poison_cache() {
    const std::string content = read_file(cache_entry());
    const size_t line = content.find('\n'), key_bytes = std::stoul(content.substr(content.find(' ')));
    const std::string key = content.substr(line + 1, key_bytes), value = content.substr(line + 1 + key_bytes);
    Cache cache({folder_ + "/cache", 1 << 30});
    ASSERT_TRUE(cache.find(CacheKind::kernel, key));
    cache.store(CacheKind::kernel, key, poisoned(value));
  }

  // The suite's environment turns the cache off.
  Environment on_{"DEEPGEN_CACHE", "on"};
  std::string folder_, good_, sha256_, said_;
  Gemm problem_;
  Device device_;
  Choice config_;
};

/// Origins differ: this is the first file's, and the others are of the lock.
std::string kernels_of(const std::string& bytes) {
  KernelFile file = KernelFile::parse(bytes, "x");
  file.origin.clear();
  return file.serialize();
}

TEST_F(CompileCommandTest, APoisonedEntryOfTheCacheIsRecomputedAndReplaced) {
  write_choice("lock", sha256_);
  fs::remove_all(folder_ + "/cache"); // the entry of SetUp() has another key
  ASSERT_EQ(compile("locked.dgk"), 0);
  poison_cache();
  EXPECT_EQ(compile("winner.dgk"), 0);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(kernels_of(read_file(folder_ + "/winner.dgk")), kernels_of(good_));
  const std::string entry = read_file(cache_entry());
  EXPECT_NE(entry.find(sha256_), std::string::npos) << "and the cache has the right one again";
}

TEST_F(CompileCommandTest, OtherCodeThanTheLocksIsSaidWithTheFunctionsName) {
  write_choice("lock", std::string(64, '0'));
  EXPECT_EQ(compile("winner.dgk"), 0);
  EXPECT_NE(said_.find("kernels f on cpu: same config, other code than in the lock"), std::string::npos)
      << said_;
  EXPECT_EQ(compile("frozen.dgk", {"--frozen"}), 1);
  EXPECT_NE(said_.find("kernels f"), std::string::npos) << said_;
  EXPECT_FALSE(file_exists(folder_ + "/frozen.dgk"));
}

TEST_F(CompileCommandTest, FrozenLibrariesHaveTheLocksCodeAlone) {
  write_lock(sha256_);
  write_choice("lock", sha256_);
  ASSERT_EQ(compile("winner.dgk", {"--frozen"}), 0) << said_;
  EXPECT_EQ(embed("winner.dgk"), 0) << said_;
  fs::remove(folder_ + "/kernels.cpp");
  std::string damaged = read_file(folder_ + "/winner.dgk");
  damaged.back() ^= 1; // in the code of the last fallback
  write_atomically(folder_ + "/damaged.dgk", damaged);
  EXPECT_EQ(embed("damaged.dgk"), 1);
  EXPECT_NE(said_.find("changed since it was written"), std::string::npos) << said_;
  write_atomically(folder_ + "/poisoned.dgk", poisoned(read_file(folder_ + "/winner.dgk")));
  EXPECT_EQ(embed("poisoned.dgk"), 1);
  EXPECT_NE(said_.find("not those of the lock"), std::string::npos) << said_;
  EXPECT_FALSE(file_exists(folder_ + "/kernels.cpp"));
}

TEST_F(CompileCommandTest, ACacheThatOthersCanWriteToIsNotUsedAndSaidSo) {
  chmod((folder_ + "/cache").c_str(), 0777);
  EXPECT_EQ(tool({"--codegen-id", "-o", folder_ + "/codegen.id", "--cache", folder_ + "/cache"}), 0);
  EXPECT_NE(said_.find("is not used: others can write to it (mode 0777)"), std::string::npos) << said_;
  EXPECT_EQ(compile("again.dgk"), 0) << said_;
  EXPECT_EQ(read_file(folder_ + "/again.dgk"), good_) << "the build goes on";
}

} // namespace
} // namespace deepgen::compile_command_test
