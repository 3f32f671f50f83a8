// Kernel files that are not as they were written, and kernels that are not those of the lock.
#include "base/kernel/kernel.h"
#include "base/kernel/kernel_call.h"

#include "base/kernel/seal.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "generator/lock/locked.h"
#include "tests/unit/generator/fake_template.h"

#include <gtest/gtest.h>

namespace deepgen::kernel_test {
namespace {

Kernel kernel(const std::string& role, const std::string& code) {
  Kernel k;
  k.role = role, k.choice = fake_choice(4, 4, 32, 0), k.code = code, k.args = {"a", "b", "d"};
  k.sha256 = sha256_hex(code);
  return k;
}

KernelFile file() {
  KernelFile f;
  f.arch = "fake", f.choice = fake_choice(4, 4, 32, 0), f.revision = 3, f.origin = "lock";
  f.kernels = {kernel("main", "the main kernel"), kernel("fallback", "a lesser one")};
  return f;
}

KernelFile gpu_file() {
  KernelFile f = file();
  f.arch = "sm_90a";
  for (Kernel& k : f.kernels) {
    k.target = "sm_90a", k.ptx = "// PTX", k.workspace = 4096, k.align_a = 16;
    k.launches = {{"entry", {3, 2, 1}, {}, {128, 1, 1}, {1, 1, 1}, 1024}};
    k.maps = {{"b", 64, 128, 128, 256, {}}};
  }
  return f;
}

TEST(KernelFiles, AreReadAsTheyWereWritten) {
  for (const KernelFile& f : {file(), gpu_file()}) {
    const std::string bytes = f.serialize();
    const KernelFile read = KernelFile::parse(bytes, "x");
    EXPECT_EQ(read.serialize(), bytes);
    EXPECT_EQ(read.kernels[0].sha256, sha256_hex("the main kernel"));
  }
}

TEST(KernelFiles, RulesAndSizesOfRangesAreKept) {
  KernelFile f = gpu_file();
  Kernel& k = f.kernels[0];
  k.tile_rules[1] = {2, {0, 48, 0, 0}}, k.workspace_fixed = 256, k.workspace_rule = {64, {8, 0, 0, 1}};
  k.taken = SizeSpan{{1, 7, 7, 1}, {16, 7, 7, 1}};
  k.launches[0].grid_rules[2] = {1, {0, 0, 0, 1}};
  k.cut = 3;
  const Kernel read = KernelFile::parse(f.serialize(), "x").kernels[0];
  EXPECT_EQ(read.cut, 3);
  EXPECT_EQ(read.tile_rules, k.tile_rules);
  EXPECT_EQ(read.workspace_rule, k.workspace_rule);
  EXPECT_EQ(read.workspace_fixed, 256);
  EXPECT_EQ(read.taken, k.taken);
  EXPECT_EQ(read.launches, k.launches);
  EXPECT_EQ(k.workspace_rule.at({17, 7, 7, 2}), 64 * 3 * 2);
  EXPECT_TRUE(k.taken->holds({0, 7, 7, 1})) << "0 is in each range";
  EXPECT_FALSE(k.taken->holds({17, 7, 7, 1}));
  k.taken->least.m = 17;
  EXPECT_THROW(KernelFile::parse(f.serialize(), "x"), Error) << "an empty range";
}

TEST(KernelFiles, MapsOfLastBoxesTellTheirSize) {
  KernelFile f = gpu_file();
  Gemm p = f.kernels[0].problem.gemm();
  p.m = 8192, p.least[size_t(Size::m)] = 1;
  f.kernels[0].problem = p;
  f.kernels[0].maps = {{"a", 64, 104, 128, 256, {}}, {"a", 64, 104, 128, 256, {}, Size::m}};
  const Kernel k = KernelFile::parse(f.serialize(), "x").kernels[0];
  EXPECT_EQ(k.maps, f.kernels[0].maps);
  Sizes call = p.sizes();
  const std::pair<int64_t, int64_t> rows[] = {{1, 8}, {104, 104}, {105, 8}, {291, 88}, {416, 104}};
  for (const auto& [m, last] : rows) {
    call.m = m;
    const Kernel here = kernel_in_call(k, call);
    EXPECT_EQ(here.maps[0].box_rows, 104) << m;
    EXPECT_EQ(here.maps[1].box_rows, last) << m;
    EXPECT_FALSE(here.maps[1].rest_of) << m;
  }
}

/// A kernel's argument is the first of them: it would take another operand's map for the second.
TEST(KernelFiles, TensorMapsOfOneOperandStandTogether) {
  KernelFile f = gpu_file();
  const auto read = [&](const std::vector<std::string>& operands) -> std::string {
    f.kernels[0].maps.clear();
    for (const std::string& x : operands) f.kernels[0].maps.push_back({x, 64, 128, 128, 256, {}});
    try {
      KernelFile::parse(f.serialize(), "x");
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(read({"a", "a", "b", "b", "d"}), "");
  EXPECT_EQ(read({"b", "a", "a"}), "");
  const std::string words = read({"a", "b", "b", "a"});
  EXPECT_NE(words.find("tensor maps 0 and 3 are of one operand, 'a'"), std::string::npos) << words;
  EXPECT_NE(words.find("build again"), std::string::npos) << words;
  EXPECT_NE(read({"a", "b", "a", "b"}), "");
  EXPECT_NE(read({"a", "b", "d", "b"}), "");
}

/// Code of the main kernel and of fallbacks, entry, workspace, launches, tensor maps, alignments: any byte
/// counts.
TEST(KernelFiles, AnyOtherByteIsRefused) {
  for (const KernelFile& f : {file(), gpu_file()}) {
    const std::string good = f.serialize();
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ 1);
      EXPECT_THROW(KernelFile::parse(bad, "x"), Error) << i;
    }
    EXPECT_THROW(KernelFile::parse(good + "x", "x"), Error);
    EXPECT_THROW(KernelFile::parse(good.substr(0, good.size() - 1), "x"), Error);
  }
}

TEST(KernelFiles, AHeadThatLiesAboutItsCodeIsRefused) {
  const std::string good = file().serialize();
  const size_t line = good.find('\n'), digest = good.find(",\"digest\"");
  std::string code = good.substr(line + 1);
  code[3] ^= 1;
  try {
    KernelFile::parse(seal(good.substr(0, digest) + "}", code), "x.dgk");
    FAIL() << "the head has the hash of other code";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("code is not that of its file's head"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(KernelFile::parse(good.substr(0, digest) + "}" + good.substr(line), "x"), Error)
      << "without a digest";
}

TEST(KernelFiles, TextsAreChecked) {
  KernelFile bad = gpu_file();
  bad.kernels[0].device = "a\nb";
  EXPECT_THROW(KernelFile::parse(bad.serialize(), "x"), Error);
  bad = gpu_file();
  bad.kernels[0].target = "sm_90\"";
  EXPECT_THROW(KernelFile::parse(bad.serialize(), "x"), Error);
  bad = gpu_file();
  bad.choice.template_name = "*/";
  EXPECT_THROW(KernelFile::parse(bad.serialize(), "x"), Error);
  KernelFile failed;
  failed.status = "failed", failed.detail = "\x1b[31mno registers\nleft";
  EXPECT_EQ(KernelFile::parse(failed.serialize(), "x").detail, "\\u001b[31mno registers\nleft");
}

class LockedTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }

  ChoiceFile choice() {
    ChoiceFile c;
    c.function = "kernels f", c.arch = "fake", c.origin = "lock";
    c.main = {file().choice, 3, sha256_hex("the main kernel"), "tools", ""};
    return c;
  }
  std::string error_of(const KernelFile& f, const ChoiceFile& c) {
    try {
      check_locked(f, c);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(LockedTest, OtherCodeThanTheLocksIsNotLinked) {
  EXPECT_EQ(error_of(file(), choice()), "");
  KernelFile other = file();
  other.kernels[0] = kernel("main", "another kernel"); // with digest and head as they should be
  EXPECT_NE(error_of(KernelFile::parse(other.serialize(), "x"), choice()).find("kernels f on fake"),
            std::string::npos);
  other = file();
  other.kernels.push_back(kernel("main", "one more"));
  EXPECT_NE(error_of(other, choice()).find("the lock has no kernel"), std::string::npos);
  other = file();
  other.kernels[0].choice = fake_choice(4, 2, 32, 0);
  EXPECT_NE(error_of(other, choice()), "");
  other = file();
  other.revision = 2;
  EXPECT_NE(error_of(other, choice()), "");
  other = file();
  other.problem.gemm().m = 7;
  EXPECT_NE(error_of(other, choice()), "");
  ChoiceFile untuned = choice();
  untuned.origin = "default", untuned.main.expect_sha256 = "";
  other = file();
  other.kernels[0] = kernel("main", "whatever the compiler makes");
  EXPECT_EQ(error_of(other, untuned), "");
}

TEST_F(LockedTest, EachDeviceHasItsKernel) {
  ChoiceFile both = choice();
  both.devices = {{fake_choice(4, 8, 16, 0), 3, sha256_hex("tuned elsewhere"), "tools", "another device"}};
  EXPECT_NE(error_of(file(), both), "") << "it is missing";
  KernelFile f = file();
  f.kernels.push_back(kernel("main", "tuned elsewhere"));
  f.kernels.back().choice = fake_choice(4, 8, 16, 0);
  EXPECT_NE(error_of(f, both), "") << "for all devices";
  f.kernels.back().device = "another device";
  EXPECT_EQ(error_of(f, both), "");
}

} // namespace
} // namespace deepgen::kernel_test
