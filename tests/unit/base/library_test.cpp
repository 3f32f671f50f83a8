// A library that is not there, one that does not load, and a host that cannot load one now are three things.
#include "base/files/library.h"
#include "base/text/error.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::library_test {
namespace {

class LibraryTest : public testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::temp_directory_path() / ("deepgen_library_" + std::to_string(getpid()));
  const std::string absent_ = (folder_ / "libabsent.so").string();
};

TEST_F(LibraryTest, OneThatIsNotThereHasNoWords) {
  const OpenedLibrary found = open_library({absent_, "libdeepgen-has-none.so.7"});
  EXPECT_FALSE(found);
  EXPECT_EQ(found.why, "");
  EXPECT_EQ(found.absence("install it"), "install it");
}

TEST_F(LibraryTest, OneThatDoesNotLoadIsNotMissing) {
  const std::string text = (folder_ / "libtext.so").string();
  std::ofstream(text) << std::string(1000, 'x');
  const OpenedLibrary found = open_library({absent_, text, absent_ + ".1"});
  EXPECT_FALSE(found);
  EXPECT_EQ(found.why, text + ": invalid ELF header");
  EXPECT_EQ(found.absence("install it"), "cannot load " + text + ": invalid ELF header");
  EXPECT_TRUE(open_library({text, "libc.so.6"})) << "a later name serves";
}

/// glibc's words.
TEST_F(LibraryTest, TellsTheLoadersWordsApart) {
  const std::string name = "libopenblas.so.0", opened = ": cannot open shared object file: ";
  EXPECT_EQ(load_failure(name, name + opened + "No such file or directory"), LoadFailure::absent);
  EXPECT_EQ(load_failure(name, "libgfortran.so.5" + opened + "No such file or directory"),
            LoadFailure::broken);
  EXPECT_EQ(load_failure(name, name + opened + "Permission denied"), LoadFailure::broken);
  EXPECT_EQ(load_failure(name, name + ": file too short"), LoadFailure::broken);
  EXPECT_EQ(load_failure(name, name + ": undefined symbol: gotoblas"), LoadFailure::broken);
  EXPECT_EQ(load_failure(name, name + ": cannot allocate memory in static TLS block"), LoadFailure::broken);
  EXPECT_EQ(load_failure(name, name + opened + "Too many open files"), LoadFailure::host);
  EXPECT_EQ(load_failure(name, name + ": failed to map segment from shared object"), LoadFailure::host);
  EXPECT_EQ(load_failure(name, name + ": cannot create shared object descriptor: Cannot allocate memory"),
            LoadFailure::host);
}

/// A copy of libstdc++, as that is large and surely there.
TEST_F(LibraryTest, LackOfMemoryIsTheHostsFault) {
  Dl_info place = {};
  void* terminate = dlsym(RTLD_DEFAULT, "_ZSt9terminatev");
  if (!terminate || !dladdr(terminate, &place) ||
      !fs::path(place.dli_fname).filename().string().starts_with("lib"))
    GTEST_SKIP() << "no shared libstdc++";
  const std::string copy = (folder_ / "libcopy.so").string();
  fs::copy_file(fs::canonical(place.dli_fname), copy);
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream pages("/proc/self/statm");
    rlim_t in_use = 0;
    pages >> in_use;
    const rlim_t bytes = in_use * rlim_t(sysconf(_SC_PAGESIZE)) + (rlim_t(1) << 20);
    const rlimit limit = {bytes, bytes};
    int code = 1;
    if (setrlimit(RLIMIT_AS, &limit) == 0) try {
        open_library({copy});
      } catch (const HostFault& e) {
        code = std::string(e.what()).find("failed to map") != std::string::npos ? 0 : 2;
      }
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
} // namespace deepgen::library_test
