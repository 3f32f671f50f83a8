#include "base/files/lock_folder.h"

#include "base/text/error.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::lock_folder_test {
namespace {

class LockFolders : public testing::Test {
protected:
  LockFolders() {
    std::string name = (fs::temp_directory_path() / "deepgen-places-XXXXXX").string();
    root = mkdtemp(name.data());
  }
  ~LockFolders() override { fs::remove_all(root); }
  /// A place in a folder of its own.
  std::string place(const std::string& name) const {
    fs::create_directory(root + "/" + name);
    return root + "/" + name + "/deepgen";
  }
  std::string root;
};

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(LockFolders, TheFirstGoodPlaceIsTaken) {
  const LockFolder found = find_lock_folder({root + "/absent/deepgen", place("a"), place("b")});
  EXPECT_EQ(found.path, root + "/a/deepgen");
  EXPECT_EQ(found.refused, "") << "what is not there is nobody's fault";
  EXPECT_EQ(mode_of(found.path), mode_t(0700));
  EXPECT_FALSE(fs::exists(root + "/b/deepgen"));
  chmod(found.path.c_str(), 0777);
  EXPECT_EQ(find_lock_folder({found.path}).path, found.path);
  EXPECT_EQ(mode_of(found.path), mode_t(0700)) << "others are shut out again";
}

/// Somebody else got there first: with a link to a folder of ours, with a file, in a folder where all may
/// rename, and, where this test can make it, with a folder of theirs. Nobody can hold up a build that way.
TEST_F(LockFolders, APlaceThatIsNotOursIsPassedOverWithAWord) {
  fs::create_directory(root + "/ours");
  fs::create_directory_symlink(root + "/ours", place("link"));
  std::ofstream(place("file")) << "x";
  place("open");
  chmod((root + "/open").c_str(), 0777);
  std::vector<std::string> places = {place("link"), place("file"), root + "/open/deepgen"};
  if (geteuid() == 0) {
    fs::create_directory(place("theirs"));
    ASSERT_EQ(chown(place("theirs").c_str(), 12345, 12345), 0);
    places.push_back(place("theirs"));
  }
  places.push_back(place("good"));
  const LockFolder found = find_lock_folder(places);
  EXPECT_EQ(found.path, places.back());
  EXPECT_EQ(std::count(found.refused.begin(), found.refused.end(), '\n'), std::ptrdiff_t(places.size()) - 2);
  for (const char* why :
       {"link/deepgen: it is a link", "file/deepgen: it is no folder", "open/deepgen: others can replace"})
    EXPECT_NE(found.refused.find(why), std::string::npos) << found.refused;
  if (geteuid() == 0) {
    EXPECT_NE(found.refused.find("theirs/deepgen: it belongs to the user with the number 12345"),
              std::string::npos);
  }
  places.pop_back();
  try {
    find_lock_folder(places);
    FAIL() << "there is no good one";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("it is a link"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("set XDG_RUNTIME_DIR or TMPDIR"), std::string::npos) << e.what();
  }
}

TEST_F(LockFolders, TheEnvironmentNamesThePlaces) {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR", "DEEPGEN_CACHE_DIR"})
    setenv(name, (root + "/" + name).c_str(), 1);
  unsetenv("DEEPGEN_CACHE");
  const std::string user = std::to_string(geteuid());
  const fs::path before = fs::current_path();
  fs::create_directories(root + "/build/below");
  std::ofstream(root + "/build/CMakeCache.txt") << "";
  fs::current_path(root + "/build/below");
  const std::vector<std::string> places = lock_places();
  fs::current_path(before);
  EXPECT_EQ(places,
            (std::vector<std::string>{root + "/XDG_RUNTIME_DIR/deepgen", "/run/user/" + user + "/deepgen",
                                      root + "/TMPDIR/deepgen-" + user, "/tmp/deepgen-" + user,
                                      root + "/DEEPGEN_CACHE_DIR/locks", root + "/build/deepgen-locks"}));
  setenv("TMPDIR", "relative", 1);
  for (const std::string& place : lock_places()) EXPECT_EQ(place[0], '/') << place;
}

} // namespace
} // namespace deepgen::lock_folder_test
