#include "base/files/files.h"

#include "base/json/json.h"
#include "base/search/record.h"
#include "base/text/error.h"

#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::files_test {
namespace {

class Files : public testing::Test {
protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "deepgen-files-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~Files() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return folder + "/" + name; }
  size_t count() const {
    return size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  std::string folder;
};

/// As a process leaves it that was killed before this one began.
void leave(const std::string& name) {
  write_atomically(name, "hal");
  fs::last_write_time(name, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST_F(Files, WhatAKilledWriterLeftIsRemovedByTheNext) {
  leave(path("plan.json.tmp0badcafe"));
  leave(path("other.json.tmp0badcafe"));
  EXPECT_TRUE(write_if_changed(path("plan.json"), "all"));
  EXPECT_FALSE(file_exists(path("plan.json.tmp0badcafe")));
  EXPECT_TRUE(file_exists(path("other.json.tmp0badcafe")));
  leave(path("plan.json.tmp0badcafe"));
  EXPECT_FALSE(write_if_changed(path("plan.json"), "all"));
  EXPECT_FALSE(file_exists(path("plan.json.tmp0badcafe")));
}

TEST_F(Files, OtherPeoplesFilesStay) {
  const std::vector<std::string> foreign = {"report.html.tmpl",         "report.html.tmp-before-merge",
                                            "report.html.tmp",          "report.html.tmp0badcaf",
                                            "report.html.tmp0badcafe5", "report.html.tmp0BADCAFE",
                                            "report.html.tmp0badcafg"};
  for (const std::string& name : foreign) leave(path(name));
  write_atomically(path("report.html.tmp00000001"), "another process may be about to lock it");
  fs::create_directory(path("report.html.tmp00000002"));
  fs::last_write_time(path("report.html.tmp00000002"),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  write_atomically(path("report.html"), "all");
  EXPECT_FALSE(write_if_changed(path("report.html"), "all"));
  for (const std::string& name : foreign) EXPECT_TRUE(file_exists(path(name))) << name;
  EXPECT_TRUE(file_exists(path("report.html.tmp00000001"))) << "it is younger than this process";
  EXPECT_TRUE(file_exists(path("report.html.tmp00000002"))) << "it is a folder";
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
      _exit(text.find(path("lock.json")) != std::string::npos && text.find("free space") != std::string::npos
                ? 0
                : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path("lock.json")), "old");
  EXPECT_EQ(count(), 1u);
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// Each of them, read as what it is not: named, within a bound, and at once.
TEST_F(Files, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(path("folder"));
  for (const auto& [name, kind] : {std::pair<std::string, std::string>{path("pipe"), "a pipe"},
                                   {"/dev/zero", "a device"},
                                   {path("folder"), "a folder"}}) {
    const std::string message = refusal([&, file = name] { read_file(file); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find(kind), std::string::npos) << message;
    EXPECT_NE(refusal([&, file = name] { write_atomically(file, "x"); }).find(kind), std::string::npos)
        << name;
  }
  EXPECT_NE(refusal([&] { read_file(path("absent")); }).find("No such file"), std::string::npos);
  write_atomically(path("empty"), "");
  EXPECT_EQ(read_file(path("empty")), "");
}

TEST_F(Files, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  write_atomically(path("lock.json"), "{}");
  fs::resize_file(path("lock.json"), size_t(kMostBytes) + 1);
  const std::string message = refusal([&] { read_json(path("lock.json")); });
  EXPECT_NE(message.find("more than 64 MiB"), std::string::npos) << message;
  fs::resize_file(path("lock.json"), size_t(kMostBytes));
  EXPECT_EQ(read_file(path("lock.json")).size(), size_t(kMostBytes));
  EXPECT_EQ(refusal([&] { read_file(path("lock.json"), 1 << 20); }).substr(0, 16), "cannot read file");
}

/// Reading the memory of this process at address 0 is an I/O error, as of a failing disk: part of a file is
/// no file.
TEST_F(Files, AnErrorWhileReadingIsNoEndOfTheFile) {
  const std::string message = refusal([] { read_file("/proc/self/mem"); });
  EXPECT_NE(message.find("Input/output error"), std::string::npos) << message;
  EXPECT_EQ(message.find("delete"), std::string::npos) << "the file may be good: " << message;
  EXPECT_NE(refusal([] { RecordLog::read("/proc/self/mem"); }).find("Input/output error"), std::string::npos);
  EXPECT_NE(refusal([] { read_json("/proc/self/mem"); }).find("Input/output error"), std::string::npos);
}

TEST_F(Files, WhatCannotBeLookedAtIsNotAbsent) {
  EXPECT_FALSE(file_exists(path("absent")));
  write_atomically(path("file"), "");
  EXPECT_FALSE(file_exists(path("file/below")));
  fs::create_symlink("nowhere", path("dangling"));
  EXPECT_FALSE(file_exists(path("dangling")));
  fs::create_symlink("loop", path("loop"));
  EXPECT_NE(refusal([&] { file_exists(path("loop")); }).find("symbolic links"), std::string::npos);
  EXPECT_NE(refusal([&] { file_exists(path(std::string(300, 'x'))); }).find("too long"), std::string::npos);
}

TEST_F(Files, ModeAndGroupOfAFileStay) {
  const std::string name = path("lock.json");
  write_atomically(name, "old");
  chmod(name.c_str(), 0664);
  std::vector<gid_t> groups(size_t(std::max(0, getgroups(0, nullptr))));
  groups.resize(size_t(std::max(0, getgroups(int(groups.size()), groups.data()))));
  if (geteuid() == 0) groups.push_back(4); // it may give files away
  for (gid_t group : groups) ASSERT_EQ(chown(name.c_str(), uid_t(-1), group), 0);
  struct stat before = {}, after = {};
  ASSERT_EQ(stat(name.c_str(), &before), 0);
  write_atomically(name, "new");
  ASSERT_EQ(stat(name.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 07777, mode_t(0664));
  EXPECT_EQ(after.st_gid, before.st_gid);
  const mode_t mask = umask(002);
  write_atomically(path("fresh"), "new");
  umask(mask);
  ASSERT_EQ(stat(path("fresh").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 07777, mode_t(0664)) << "the umask decides";
}

} // namespace
} // namespace deepgen::files_test
