#include "base/files.h"

#include "base/error.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

class Files : public testing::Test {
protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "deepgen-files-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~Files() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return folder + "/" + name; }
  size_t count() const { return size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator())); }
  std::string folder;
};

TEST_F(Files, WhatAKilledWriterLeftIsRemovedByTheNext) {
  write_atomically(path("plan.json.tmp0badcafe"), "hal");
  write_atomically(path("other.json.tmp0badcafe"), "hal");
  EXPECT_TRUE(write_if_changed(path("plan.json"), "all"));
  EXPECT_FALSE(file_exists(path("plan.json.tmp0badcafe")));
  EXPECT_TRUE(file_exists(path("other.json.tmp0badcafe")));
  write_atomically(path("plan.json.tmp0badcafe"), "hal");
  EXPECT_FALSE(write_if_changed(path("plan.json"), "all"));
  EXPECT_FALSE(file_exists(path("plan.json.tmp0badcafe")));
}

TEST_F(Files, WhatALiveWriterHoldsStays) {
  const std::string name = path("plan.json.tmp0badcafe");
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  write_atomically(path("plan.json"), "all");
  EXPECT_TRUE(file_exists(name));
  close(fd);
}

TEST_F(Files, WritersOfOneFileDoNotDisturbEachOther) {
  auto write = [&](char letter) {
    for (int i = 0; i < 300; ++i) write_atomically(path("lock.json"), std::string(size_t(1000 + i), letter));
  };
  std::thread other(write, 'b');
  EXPECT_NO_THROW(write('a'));
  other.join();
  const std::string text = read_file(path("lock.json"));
  EXPECT_EQ(text, std::string(1299, text[0]));
  EXPECT_EQ(count(), 1u);
}

/// A limit on the size of files stands for a full disk.
TEST_F(Files, AFullDiskLeavesTheOldFile) {
  write_atomically(path("lock.json"), "old");
  std::string message;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_atomically(path("lock.json"), std::string(2000, 'n'));
    } catch (const Error& e) {
      const std::string text = e.what();
      _exit(text.find(path("lock.json")) != std::string::npos && text.find("free space") != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path("lock.json")), "old");
  EXPECT_EQ(count(), 1u);
}

} // namespace
} // namespace deepgen
