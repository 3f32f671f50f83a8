// The cache between builds: entries that are torn, writers that are killed, clocks that go back, disks that
// are full.
#include "base/files/cache.h"
#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "tests/unit/environment.h"
#include "tests/unit/sanitized.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::cache_test {
namespace {

constexpr CacheKind kKernel = CacheKind::kernel, kTime = CacheKind::time;

/// A folder of its own, removed at the end.
class CacheTest : public testing::Test {
protected:
  CacheTest() {
    std::string name = (fs::temp_directory_path() / "deepgen-cache-XXXXXX").string();
    folder = mkdtemp(name.data());
    chmod(folder.c_str(), 0755);
  }
  ~CacheTest() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  CacheSettings settings(int64_t limit = 1 << 20) const { return {folder + "/cache", limit}; }
  std::vector<fs::path> files(const std::string& part) const {
    std::vector<fs::path> found;
    if (fs::exists(folder + "/cache/" + part))
      for (const auto& entry : fs::recursive_directory_iterator(folder + "/cache/" + part))
        if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  /// The exit status of `body` in a child process; a signal counts as -1.
  static int in_child(const std::function<int()>& body) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body());
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string folder;
};

TEST(Sha256, GivesTheStandardsExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_hex(std::string(64, '\xff')),
            "8667e718294e9e0df1d30600ba3eeb201f764aad2dad72748643e4a285e1d1f7");
}

/// What is found is read whole.
TEST_F(CacheTest, KeepsNothingAboveTheBoundOfAFile) {
  Cache cache(settings(int64_t(1) << 30));
  cache.store(kKernel, "large", std::string(size_t(kMostBytes), 'x'));
  EXPECT_FALSE(cache.find(kKernel, "large"));
  EXPECT_TRUE(files("").empty() || cache.stats().entries() == 0);
  cache.store(kKernel, "key", "small");
  ASSERT_EQ(files("kernel").size(), 1u);
  fs::resize_file(files("kernel").front(), uintmax_t(kMostBytes) + 1); // as somebody else's would be
  EXPECT_FALSE(cache.find(kKernel, "key"));
  EXPECT_TRUE(files("kernel").empty());
}

TEST_F(CacheTest, FindsWhatWasStored) {
  Cache cache(settings());
  EXPECT_FALSE(cache.find(kKernel, "key"));
  const std::string binary("line\nnothing\0more", 17);
  cache.store(kKernel, "key", binary);
  cache.store(kKernel, "key\nof two lines", "");
  Cache other(settings());
  EXPECT_EQ(other.find(kKernel, "key"), binary);
  EXPECT_EQ(other.find(kKernel, "key\nof two lines"), "");
  EXPECT_FALSE(other.find(kTime, "key")) << "kinds have nothing in common";
  other.store(kKernel, "key", "other");
  EXPECT_EQ(cache.find(kKernel, "key"), "other");

  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.counters.kinds[0].hits, 3);
  EXPECT_EQ(stats.counters.kinds[0].misses, 1);
  EXPECT_EQ(stats.counters.kinds[0].stored, 3);
  EXPECT_EQ(stats.counters.kinds[2].misses, 1);
  EXPECT_EQ(stats.entries(), 2);
  EXPECT_EQ(stats.bytes(), 2 * 4096);
  cache.clear();
  EXPECT_EQ(cache.stats().entries(), 0);
  EXPECT_EQ(cache.stats().counters.kinds[0].hits, 0);
  EXPECT_FALSE(cache.find(kKernel, "key"));
}

TEST_F(CacheTest, AnEntryThatIsNotAsItWasWrittenIsRemoved) {
  Cache cache(settings());
  cache.store(kKernel, "the key", "the value");
  const std::string path = files("kernel").at(0), good = read_file(path);
  int64_t damaged = 0;
  const auto expect_removed = [&](const std::string& content, const std::string& what) {
    write_atomically(path, content);
    EXPECT_FALSE(cache.find(kKernel, "the key")) << what;
    EXPECT_FALSE(fs::exists(path)) << what;
    EXPECT_EQ(cache.stats().counters.damaged, ++damaged) << what;
  };
  for (size_t size = 0; size < good.size(); ++size)
    expect_removed(good.substr(0, size), "the first " + std::to_string(size) + " bytes");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 1);
    expect_removed(bad, "another byte at " + std::to_string(i));
  }
  expect_removed(good + "x", "a byte more");
  write_atomically(path, good);
  EXPECT_EQ(cache.find(kKernel, "the key"), "the value");
  cache.store(kKernel, "another key", "x");
  fs::copy_file(path, files("kernel").at(0) == path ? files("kernel").at(1) : files("kernel").at(0),
                fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache.find(kKernel, "another key")) << "an entry in the place of another key's";
}

mode_t mode_of(const fs::path& path) {
  struct stat info = {};
  lstat(path.c_str(), &info);
  return info.st_mode & 07777;
}

TEST_F(CacheTest, IsItsOwnersAlone) {
  const mode_t before = umask(0);
  Cache cache(settings());
  cache.store(kKernel, "key", "value");
  Cache tried({folder + "/tried", 1 << 20});
  EXPECT_EQ(tried.why_no_store(), "");
  umask(before);
  EXPECT_EQ(mode_of(folder + "/cache"), 0700u);
  EXPECT_EQ(mode_of(folder + "/tried"), 0700u);
  EXPECT_EQ(mode_of(files("kernel").at(0)), 0600u);
  EXPECT_EQ(mode_of(folder + "/cache/counters"), 0600u);
}

TEST_F(CacheTest, AFolderThatOthersCanWriteToIsNotUsed) {
  Cache(settings()).store(kKernel, "key", "value");
  for (mode_t mode : {0777, 0770, 01777, 0702}) {
    chmod((folder + "/cache").c_str(), mode);
    Cache cache(settings());
    EXPECT_FALSE(cache.on());
    EXPECT_NE(cache.why_refused().find("others can write to it"), std::string::npos) << cache.why_refused();
    EXPECT_FALSE(cache.find(kKernel, "key"));
    cache.store(kKernel, "other", "value");
    EXPECT_EQ(files("kernel").size(), 1u);
  }
  chmod((folder + "/cache").c_str(), 0755);
  EXPECT_EQ(Cache(settings()).find(kKernel, "key"), "value");
  if (geteuid() != 0) return; // only root can give the folder away
  ASSERT_EQ(chown((folder + "/cache").c_str(), 12345, 12345), 0);
  EXPECT_EQ(in_child([&] {
              return seteuid(54321) == 0 &&
                             Cache(settings()).why_refused().find("user 12345") != std::string::npos
                         ? 0
                         : 1;
            }),
            0);
}

TEST_F(CacheTest, AnEntryThatOthersCouldHaveWrittenIsRemoved) {
  Cache cache(settings());
  const auto expect_removed = [&](const std::string& what,
                                  const std::function<void(const std::string&)>& change) {
    cache.store(kKernel, "key", "value");
    const std::string path = files("kernel").at(0);
    change(path);
    EXPECT_FALSE(cache.find(kKernel, "key")) << what;
    struct stat info;
    EXPECT_NE(lstat(path.c_str(), &info), 0) << what;
  };
  expect_removed("others can write", [](const std::string& path) { chmod(path.c_str(), 0666); });
  expect_removed("a link", [&](const std::string& path) {
    fs::rename(path, folder + "/elsewhere");
    fs::create_symlink(folder + "/elsewhere", path);
  });
  expect_removed("a pipe, which would not end", [&](const std::string& path) {
    fs::remove(path);
    mkfifo(path.c_str(), 0600);
  });
  cache.store(kKernel, "key", "value");
  EXPECT_EQ(cache.find(kKernel, "key"), "value");
}

TEST_F(CacheTest, EvictsWhatWasUsedLongestAgo) {
  Cache cache(settings(10 * 4096));
  for (int i = 0; i < 10; ++i) cache.store(kTime, std::to_string(i), "x");
  for (int i : {0, 3}) EXPECT_TRUE(cache.find(kTime, std::to_string(i)));
  cache.store(kTime, "10", "x"); // too many by one: two go, so that there is room
  for (int i = 0; i <= 10; ++i) EXPECT_EQ(bool(cache.find(kTime, std::to_string(i))), i != 1 && i != 2) << i;
  EXPECT_EQ(cache.stats().counters.evicted, 2);
  EXPECT_EQ(cache.stats().counters.bytes, cache.stats().bytes());
  cache.store(kKernel, "large", std::string(10 * 4096, 'x'));
  EXPECT_FALSE(cache.find(kKernel, "large")) << "an entry that would push out all others";
  EXPECT_TRUE(cache.find(kTime, "10"));
}

int64_t now_for_test = 0;

TEST_F(CacheTest, EvictsInTheOrderOfUseWhateverTheClockDoes) {
  Cache cache(settings(10 * 4096), [] { return now_for_test; });
  const int64_t start = Cache::wall_clock(), hour = 3600 * int64_t(1000000000);
  for (int i = 0; i < 10; ++i) {
    now_for_test = start - i * hour; // every use looks older than the one before
    cache.store(kTime, std::to_string(i), "x");
  }
  now_for_test = 0;
  EXPECT_TRUE(cache.find(kTime, "0"));
  cache.store(kTime, "10", "x");
  for (int i = 0; i <= 10; ++i) EXPECT_EQ(bool(cache.find(kTime, std::to_string(i))), i != 1 && i != 2) << i;
  now_for_test = start + 1000 * hour; // and forth, and back again
  cache.store(kTime, "11", "x");
  now_for_test = start;
  cache.store(kTime, "12", "x");
  cache.store(kTime, "13", "x");
  EXPECT_TRUE(cache.find(kTime, "12"));
  EXPECT_TRUE(cache.find(kTime, "13"));
}

TEST_F(CacheTest, LostCountersAreCountedAgain) {
  Cache cache(settings());
  for (int i = 0; i < 9; ++i) cache.store(kTime, std::to_string(i), "x");
  for (const char* damage :
       {"", "deepgen.cache-counters/1\n", "deepgen.cache-counters/9\n1 1 1 1 1 1 1 1 1 1 1 1 1", "x"}) {
    write_atomically(folder + "/cache/counters", damage);
    cache.store(kTime, std::string("new ") + damage, "x");
    EXPECT_EQ(cache.stats().counters.bytes, cache.stats().bytes()) << damage;
  }
}

/// Keys and values of the tests with many processes: a value can be told from its key.
std::string value_of(int key) {
  return std::string(size_t(100 + key * 977 % 20000), char('a' + key % 26)) + std::to_string(key);
}

/// What is in a new cache has to be counted first.
TEST_F(CacheTest, WhoBeginsACacheBesideAnotherStoresToo) {
  fs::create_directories(folder + "/cache");
  const int other = open((folder + "/cache/eviction").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  std::thread ends([other] {
    usleep(50000);
    close(other);
  });
  Cache cache(settings());
  cache.store(kKernel, "key", "value");
  ends.join();
  EXPECT_EQ(cache.find(kKernel, "key"), "value");
}

TEST_F(CacheTest, WritersAndReadersAtOnceSeeWholeEntries) {
  constexpr int kProcesses = 8, kUses = 300, kKeys = 40;
  const CacheSettings small = settings(200 * 1000); // so that there is eviction all the time
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t pid = fork();
    if (pid == 0) {
      Cache cache(small);
      for (int i = 0; i < kUses; ++i) {
        const int key = (process * 7 + i * 13) % kKeys;
        const auto found = cache.find(kKernel, std::to_string(key));
        if (found && *found != value_of(key)) _exit(1);
        if (!found) cache.store(kKernel, std::to_string(key), value_of(key));
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const CacheStats stats = Cache(small).stats();
  const CacheCounters::Kind& counts = stats.counters.kinds[0];
  EXPECT_EQ(counts.hits + counts.misses, kProcesses * kUses) << "no use is lost";
  EXPECT_LE(counts.stored, counts.misses) << "nothing is stored while another process evicts";
  EXPECT_GT(counts.stored, kKeys);
  EXPECT_EQ(stats.counters.damaged, 0);
  EXPECT_GT(stats.counters.evicted, 0);
  EXPECT_GT(counts.hits, 0);
  EXPECT_LE(stats.bytes(), small.limit + kProcesses * 24576) << "but for what was being written";
  EXPECT_TRUE(files("tmp").empty());
}

TEST_F(CacheTest, KilledWritersLeaveNothingThatIsRead) {
  constexpr int kKills = 40, kKeys = 30;
  unsigned random = 12345;
  const auto empty = [&] { return Cache(settings()).stats().bytes() == 0; };
  for (int i = 0; i < kKills || (i < 5 * kKills && empty());
       ++i) { // a busy host stores nothing in so short a time
    const pid_t pid = fork();
    if (pid == 0) {
      Cache cache(settings());
      for (int key = i;; ++key) cache.store(kKernel, std::to_string(key % kKeys), value_of(key % kKeys));
    }
    random = random * 1664525 + 1013904223;
    usleep((500 + random % 4000) * (kSanitized ? 8 : 1) *
           unsigned(1 + i / kKills)); // it starts more slowly, too
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  Cache cache(settings());
  int found = 0;
  for (int key = 0; key < kKeys; ++key)
    if (const auto value = cache.find(kKernel, std::to_string(key))) {
      EXPECT_EQ(*value, value_of(key));
      ++found;
    }
  EXPECT_GT(found, 0);
  EXPECT_EQ(cache.stats().counters.damaged, 0);
  EXPECT_GE(cache.stats().counters.bytes, cache.stats().bytes());
  // What a writer left is not taken from one that lives.
  write_atomically(folder + "/cache/tmp/0123456789abcdef", "half an ent");
  const std::string busy = folder + "/cache/tmp/fedcba9876543210";
  const FileLock living(busy, FileLock::kExclusive);
  cache.clear();
  EXPECT_EQ(files("tmp"), (std::vector<fs::path>{busy}));
}

/// Root may write anywhere.
void give_up_privileges() {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
}

TEST_F(CacheTest, AReadOnlyFolderIsReadAndLeftAlone) {
  Cache writer(settings());
  writer.store(kKernel, "key", "value");
  const auto all = {folder + "/cache", folder + "/cache/kernel", folder + "/cache/tmp"};
  for (const std::string& path : all) chmod(path.c_str(), 0555);
  chmod((folder + "/cache/counters").c_str(), 0444);
  for (const fs::path& entry : files("kernel")) { // root shares what it has made
    chmod(entry.c_str(), 0444);
    chmod(entry.parent_path().c_str(), 0555);
  }
  EXPECT_EQ(in_child([&] {
              give_up_privileges();
              Cache cache(settings());
              if (cache.find(kKernel, "key") != "value") return 1;
              cache.store(kKernel, "other", "value");
              if (cache.find(kKernel, "other")) return 2;
              cache.clear();
              if (cache.find(kKernel, "key") != "value") return 3;
              return cache.why_no_store().empty() ? 4 : 0;
            }),
            0);
  for (const std::string& path : all) chmod(path.c_str(), 0755);
  EXPECT_EQ(writer.why_no_store(), "");
  const Cache nowhere({"/dev/null/cache", 1 << 20});
  Cache copy = nowhere;
  copy.store(kKernel, "key", "value");
  EXPECT_FALSE(copy.find(kKernel, "key"));
  EXPECT_NE(copy.why_no_store(), "");
}

TEST_F(CacheTest, AFullDiskKeepsWhatIsThere) {
  Cache cache(settings());
  cache.store(kKernel, "small", "value");
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN); // write(2) then fails as on a full disk, in the middle of a file
              const rlimit limit = {8192, 8192};
              setrlimit(RLIMIT_FSIZE, &limit);
              Cache full(settings());
              full.store(kKernel, "large", std::string(100000, 'x'));
              if (full.find(kKernel, "large")) return 1;
              full.store(kKernel, "small too", "value"); // not tried again in this process
              if (full.find(kKernel, "small too")) return 2;
              return full.find(kKernel, "small") == "value" ? 0 : 3;
            }),
            0);
  EXPECT_EQ(cache.find(kKernel, "small"), "value");
  EXPECT_TRUE(files("tmp").empty());
}

TEST_F(CacheTest, SettingsComeFromTheEnvironment) {
  const Environment use("DEEPGEN_CACHE", nullptr), size("DEEPGEN_CACHE_SIZE", nullptr),
      dir("DEEPGEN_CACHE_DIR", nullptr), xdg("XDG_CACHE_HOME", nullptr), home("HOME", "/home/me");
  const auto where = [](const char* option = "") { return CacheSettings::from_environment(option).folder; };
  EXPECT_EQ(where(), "/home/me/.cache/deepgen");
  EXPECT_EQ(CacheSettings::from_environment().limit, int64_t(2) << 30);
  const Environment relative("XDG_CACHE_HOME", "not/absolute");
  EXPECT_EQ(where(), "/home/me/.cache/deepgen");
  const Environment caches("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(where(), "/caches/deepgen");
  const Environment own("DEEPGEN_CACHE_DIR", "/own");
  EXPECT_EQ(where(), "/own");
  EXPECT_EQ(where("/option"), "/option");
  EXPECT_THROW(where("option"), Error);
  const std::pair<const char*, int64_t> sizes[] = {
      {"0", 0}, {"4096", 4096}, {"1.5K", 1536}, {"500M", int64_t(500) << 20}, {"1T", int64_t(1) << 40}};
  for (const auto& [text, bytes] : sizes) {
    const Environment limit("DEEPGEN_CACHE_SIZE", text);
    EXPECT_EQ(CacheSettings::from_environment().limit, bytes) << text;
  }
  for (const char* bad : {"many", "-1", "1MB", "1 M", "1e30", "nan"}) {
    const Environment limit("DEEPGEN_CACHE_SIZE", bad);
    EXPECT_THROW(where(), Error) << bad;
  }
  const Environment off("DEEPGEN_CACHE", "off");
  EXPECT_EQ(where("/option"), "");
  Cache cache(CacheSettings::from_environment());
  cache.store(kKernel, "key", "value");
  EXPECT_FALSE(cache.find(kKernel, "key"));
  const Environment bad("DEEPGEN_CACHE", "maybe");
  EXPECT_THROW(where(), Error);
}

} // namespace
} // namespace deepgen::cache_test
