// Kernels that are kept beside the lock: what is refused, what is linked, and that the folder follows the
// lock.
#include "generator/lock/vendored_state.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "tests/unit/generator/embed/embed_library.h"

namespace deepgen::vendored_test {
namespace {

class VendoredTest : public EmbedGpuTest {
protected:
  void SetUp() override {
    EmbedGpuTest::SetUp();
    lock_ = folder_ + "/deepgen.lock.json";
  }

  /// The entry whose kernels `file` has.
  static LockEntry entry_of(const KernelFile& file, const std::string& device, int64_t isa) {
    LockEntry e;
    e.problem = file.problem.key(), e.arch = file.arch, e.device.name = device, e.device.isa = isa;
    e.device.arch = file.arch;
    e.choice = file.choice, e.revision = file.revision;
    e.sha256 = file.find("main")->sha256, e.toolchain = "tools";
    return e;
  }
  static KernelFile cpu_file(const std::string& code = "\xc3\xc3\xc3\xc3") {
    KernelFile file = library().functions[0].kernels[0];
    file.kernels[1].code = std::string(20, '\x90') + code;
    return KernelFile::parse(file.serialize(), "file"); // with its hashes
  }
  static KernelFile gpu(const std::string& arch, const std::string& code) {
    KernelFile file = gpu_file(cpu_file().problem, arch, false);
    for (Kernel& k : file.kernels) k.entry = 0;
    file.kernels[0].code = code;
    file.choice = file.kernels[0].choice;
    return KernelFile::parse(file.serialize(), "file");
  }
  VendoredKernels keep(const KernelFile& file, const std::string& device = "cpu", int64_t isa = 4) {
    const LockEntry e = entry_of(file, device, isa);
    merge_into_lock(lock_, {e});
    const VendoredKernels v{file, {file.kernels[0].sha256}};
    EXPECT_EQ(keep_vendored(lock_, {{e, v}}).entries, 1u);
    return v;
  }
  LockEntry only_entry() const { return Lock::read(lock_).entries().at(0); }
  std::string path() const { return vendored_path(lock_, only_entry().kernels); }
  std::string error() const {
    try {
      read_vendored(lock_, only_entry());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  ProblemFile function() const {
    ProblemFile f;
    f.target = "kernels", f.name = "up", f.problem = cpu_file().problem;
    return f;
  }

  std::string lock_;
};

TEST_F(VendoredTest, FoldersOfLocksDiffer) {
  EXPECT_EQ(vendored_folder("/a/deepgen.lock.json"), "/a/deepgen.kernels");
  EXPECT_EQ(vendored_folder("/a/deepgen.json"), "/a/deepgen.json-kernels");
  EXPECT_EQ(vendored_folder("deepgen"), "deepgen-kernels");
}

TEST_F(VendoredTest, WhatIsKeptIsWhatWasMade) {
  const VendoredKernels v = keep(cpu_file());
  const LockEntry e = only_entry();
  EXPECT_EQ(e.kernels, sha256_hex(v.serialize()));
  const VendoredKernels back = read_vendored(lock_, e);
  EXPECT_EQ(back.serialize(), v.serialize());
  EXPECT_EQ(back.verified, v.verified);
  EXPECT_EQ(Lock::parse(read_file(lock_), "lock").entries()[0].kernels, e.kernels);
  EXPECT_EQ(read_file(vendored_folder(lock_) + "/.gitattributes"), "*.zst -text -diff\n");
}

TEST_F(VendoredTest, EveryAlteredByteIsRefusedOrChangesNothing) {
  const VendoredKernels v = keep(cpu_file());
  const std::string good = read_file(path());
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (const int bit : {1, 16, 128}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ bit);
      write_atomically(path(), bad);
      try {
        ASSERT_EQ(read_vendored(lock_, only_entry()).serialize(), v.serialize()) << i << " " << bit;
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 2 * good.size()); // a flag of zstd's may say the same in two ways
  for (size_t size = 0; size < good.size(); ++size) {
    write_atomically(path(), good.substr(0, size));
    EXPECT_THROW(read_vendored(lock_, only_entry()), Error) << size;
  }
}

TEST_F(VendoredTest, ErrorsSayWhatIsWrong) {
  merge_into_lock(lock_, {entry_of(cpu_file(), "cpu", 4)});
  EXPECT_NE(error().find("the lock names no vendored kernels"), std::string::npos) << error();
  keep(cpu_file());
  const std::string good = read_file(path());
  std::filesystem::remove(path());
  EXPECT_NE(error().find("vendored kernels are missing"), std::string::npos) << error();
  write_atomically(path(), packed(unpacked(good, "") + " "));
  EXPECT_NE(error().find("vendored kernels were altered"), std::string::npos) << error();
  write_atomically(path(), "no frame of zstd");
  EXPECT_NE(error().find("cannot be unpacked"), std::string::npos) << error();
}

/// Somebody who can write the lock names other kernels there: they must at least be of the entry.
TEST_F(VendoredTest, KernelsOfAnotherEntryAreRefused) {
  keep(cpu_file());
  const LockEntry e = only_entry();
  const auto refused = [&](KernelFile file) {
    const VendoredKernels v{KernelFile::parse(file.serialize(), "file"), {}};
    LockEntry other = e;
    other.kernels = sha256_hex(v.serialize());
    write_atomically(vendored_path(lock_, other.kernels), packed(v.serialize()));
    EXPECT_THROW(read_vendored(lock_, other), Error);
  };
  refused(cpu_file("other code"));
  KernelFile file = cpu_file();
  file.revision = 9;
  refused(file);
  file = cpu_file();
  file.choice.config = Config::parse("isa=4 mr=99");
  refused(file);
  file = cpu_file();
  file.problem = Problem::parse(
      "gemm m=9 n=2048 k=64 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4");
  refused(file);
  file = cpu_file();
  file.status = "failed";
  refused(file);
}

TEST_F(VendoredTest, TheHighestLevelIsLinked) {
  keep(cpu_file("level three"), "a", 3);
  keep(cpu_file("level four"), "z", 4);
  keep(cpu_file("level four, too"), "y", 4);
  const VendoredKernels v = vendored_for(Lock::read(lock_), lock_, function(), "cpu");
  EXPECT_EQ(v.kernels.find("main")->code.substr(20), "level four, too") << "then the first by name";
  EXPECT_EQ(v.kernels.kernels.size(), 3u);
  EXPECT_EQ(v.kernels.origin, "lock");
  EXPECT_THROW(vendored_for(Lock::read(lock_), lock_, function(), "sm_90a"), Error);
}

TEST_F(VendoredTest, AllDevicesOfAGpuAreLinked) {
  keep(gpu("sm_90a", "code of H100"), "NVIDIA H100", 0);
  keep(gpu("sm_90a", "code of H200"), "NVIDIA H200", 0);
  keep(gpu("sm_90a", "code of H100"), "NVIDIA H800", 0); // as the general one
  const VendoredKernels v = vendored_for(Lock::read(lock_), lock_, function(), "sm_90a");
  ASSERT_EQ(v.kernels.kernels.size(), 3u);
  EXPECT_EQ(v.kernels.kernels[0].code, "code of H100");
  EXPECT_EQ(v.kernels.kernels[0].device, "");
  EXPECT_EQ(v.kernels.kernels[1].role, "fallback");
  EXPECT_EQ(v.kernels.kernels[2].code, "code of H200");
  EXPECT_EQ(v.kernels.kernels[2].device, "NVIDIA H200");
  Library l = library();
  l.functions.pop_back();
  l.functions[0].kernels = {v.kernels};
  validate(l);
  EXPECT_NE(embed_source(l).find("sm_90a: from the lock"), std::string::npos);
}

TEST_F(VendoredTest, TheFolderFollowsTheLock) {
  keep(cpu_file("first"));
  const std::string first = path();
  const std::string foreign = vendored_folder(lock_) + "/notes.txt";
  write_atomically(foreign, "not ours");
  VendoredState state = vendored_state(Lock::read(lock_), lock_);
  EXPECT_TRUE(state.used);
  EXPECT_EQ(state.sizes.size(), 1u);
  EXPECT_EQ(state.sizes[0].kernels, 3u);
  EXPECT_EQ(state.extra, std::vector<std::string>{foreign});
  EXPECT_TRUE(state.faults.empty());

  merge_into_lock(lock_, {entry_of(cpu_file("second"), "cpu", 4)});
  EXPECT_EQ(only_entry().kernels, "") << "another decision";
  EXPECT_EQ(to_be_vendored(Lock::read(lock_), lock_).size(), 1u);
  const Lock changed = Lock::read(lock_);
  state = vendored_state(changed, lock_);
  EXPECT_EQ(state.without.size(), 1u);
  EXPECT_EQ(state.extra.size(), 2u);
  EXPECT_EQ(keep_vendored(lock_, {{entry_of(cpu_file("first"), "cpu", 4), {cpu_file("first"), {}}}}).entries,
            0u)
      << "the entry has become another one";
  keep(cpu_file("second"));
  EXPECT_FALSE(file_exists(first));
  EXPECT_TRUE(file_exists(foreign)) << "what is not ours stays";
  EXPECT_TRUE(to_be_vendored(Lock::read(lock_), lock_).empty());

  const std::string text = read_file(lock_);
  EXPECT_FALSE(merge_into_lock(lock_, {entry_of(cpu_file("second"), "cpu", 4)}));
  EXPECT_EQ(read_file(lock_), text) << "the same decision keeps its kernels";
  std::filesystem::remove(path());
  EXPECT_EQ(to_be_vendored(Lock::read(lock_), lock_).size(), 1u);
  const Lock missing = Lock::read(lock_);
  EXPECT_EQ(vendored_state(missing, lock_).faults.size(), 1u);
}

TEST_F(VendoredTest, ALockWithoutThemIsWrittenAsBefore) {
  merge_into_lock(lock_, {entry_of(cpu_file(), "cpu", 4)});
  EXPECT_EQ(read_file(lock_).find("kernels\":"), std::string::npos);
  const Lock lock = Lock::read(lock_);
  EXPECT_FALSE(vendored_state(lock, lock_).used);
}

} // namespace
} // namespace deepgen::vendored_test
