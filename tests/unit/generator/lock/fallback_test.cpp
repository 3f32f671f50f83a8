// What a lock, a choice and a generated library say of a vendor's call in place of a kernel.
#include "base/json/json.h"
#include "base/problem/lt_fusion.h"
#include "base/search/vendor_choice.h"
#include "generator/embed/embed.h"
#include "generator/lock/lock_merge.h"
#include "generator/lock/select.h"
#include "generator/space/space.h"
#include "tests/unit/generator/embed/embed_library.h"

#include <gtest/gtest.h>

namespace deepgen::fallback_test {
namespace {

const std::string kHash(64, '5');
const std::string kAlgorithm(128, 'e');
const VendorCall kBlas{"openblas", "0.3.21", "", "", 0, "a CPU"};
const VendorCall kHip{"hipblaslt", "1.2.3", kAlgorithm, "", 4096, "AMD Instinct MI300X"};
const VendorCall kLt{"cublaslt", "13.1.0", kAlgorithm, "id 66, tile 20", 1 << 20, "NVIDIA H100"};

Gemm problem(std::vector<EpilogueOp> epilogue = {}, Type type = Type::f32) {
  Gemm p;
  p.m = 64, p.n = 128, p.k = 32, p.a = p.b = p.d = type, p.layout = Layout::nt;
  p.epilogue = std::move(epilogue);
  complete(p);
  return p;
}

LockEntry entry(const Gemm& p, const std::string& arch, const std::string& device,
                std::optional<VendorCall> call) {
  Device d = generic_device(arch);
  d.name = device;
  const Choice choice = Space(p, arch, d).default_choice();
  LockEntry e{p.key(), arch,    d, choice, find_template(choice.template_name).revision_for(p, choice.config),
              kHash,   "tools", {}};
  if (call) call->device = device;
  e.vendor = std::move(call);
  return e;
}
LockEntry on_cpu(std::optional<VendorCall> call = kBlas) { return entry(problem(), "cpu", "a CPU", call); }

std::string text_of(const LockEntry& e) {
  Lock lock;
  lock.put(e);
  return lock.serialize();
}

TEST(FallbackLock, RoundTrips) {
  for (const LockEntry& e :
       {on_cpu(), entry(problem({EpilogueOp::bias}, Type::bf16), "sm_90a", "NVIDIA H100", kLt)}) {
    EXPECT_EQ(why_stale(e), "");
    const std::string text = text_of(e);
    const Lock lock = Lock::parse(text, "lock");
    EXPECT_EQ(lock.entries().at(0).vendor, e.vendor);
    EXPECT_EQ(lock.serialize(), text);
  }
  EXPECT_EQ(text_of(on_cpu(std::nullopt)).find("\"vendor\""), std::string::npos);
}

TEST(FallbackLock, IsAPartOfTheDecision) {
  Lock lock;
  EXPECT_TRUE(lock.put(on_cpu(std::nullopt)));
  EXPECT_TRUE(lock.put(on_cpu()));
  EXPECT_FALSE(lock.put(on_cpu()));
  VendorCall other = kBlas;
  other.version = "0.3.22";
  EXPECT_TRUE(lock.put(on_cpu(other)));
}

TEST(FallbackLock, WhatCannotBeCalledMakesTheEntryStale) {
  const auto stale = [](LockEntry e, auto change) {
    change(*e.vendor);
    return why_stale(Lock::parse(text_of(e), "lock").entries().at(0));
  };
  const LockEntry gpu = entry(problem({EpilogueOp::bias}, Type::bf16), "sm_90a", "NVIDIA H100", kLt);
  EXPECT_NE(stale(gpu, [](auto& c) { c.algorithm = c.algorithm.substr(2); }).find("128"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.algorithm += "00"; }).find("128"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.algorithm.clear(); }).find("128"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.algorithm[3] = 'g'; }).find("128"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.workspace = int64_t(1) << 40; }).find("workspace"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.version = "13;"; }).find("version"), std::string::npos);
  EXPECT_NE(stale(gpu, [](auto& c) { c.library = "rocblas"; }).find("rocblas"), std::string::npos);
  EXPECT_NE(stale(on_cpu(), [](auto& c) { c.algorithm = kAlgorithm; }).find("algorithm"), std::string::npos);
  EXPECT_NE(stale(on_cpu(), [](auto& c) { c.version = ""; }).find("version"), std::string::npos);
  const LockEntry silu = entry(problem({EpilogueOp::silu}, Type::bf16), "sm_90a", "NVIDIA H100", kLt);
  EXPECT_NE(why_stale(silu).find("silu"), std::string::npos) << why_stale(silu);
}

TEST(FallbackLock, DamageIsNamed) {
  const std::string good = text_of(on_cpu());
  const auto error = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    try {
      Lock::parse(text, "lock");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error("\"vendor\":{", "\"vendor\":[],\"x\":{").find("library"), std::string::npos);
  EXPECT_NE(error("\"version\":\"0.3.21\"", "\"version\":321").find("version"), std::string::npos);
  EXPECT_NE(error("\"version\":\"0.3.21\"", "\"version\":\"0.3.21\",\"workspace\":-1").find("workspace"),
            std::string::npos);
}

RecordLog holdout(const std::string& verdict, const std::string& of_default, const Json& more) {
  RecordLog log;
  log.environment["holdout"] = {
      {"sha256", kHash},
      {"vendor", {{"verdict", verdict}, {"default_verdict", of_default}, {"ratio", {1, 1, 1}}}}};
  log.environment["holdout"]["vendor"].update(more);
  return log;
}

TEST(FallbackChoice, IsByTheHoldoutOfWhatIsLocked) {
  const Json call = {{"call", to_json(kBlas)}};
  Decision confirmed, fell_back;
  confirmed.winner.sha256 = kHash, fell_back.winner.sha256 = std::string(64, '6');
  EXPECT_EQ(vendor_choice(holdout("loss", "win", call), confirmed, "a CPU").call, kBlas);
  EXPECT_EQ(vendor_choice(holdout("power-limited loss", "win", call), confirmed, "a CPU").call, kBlas);
  for (const char* verdict : {"win", "tie", "AMBG", "power-limited win"})
    EXPECT_FALSE(vendor_choice(holdout(verdict, "loss", call), confirmed, "").call) << verdict;
  EXPECT_TRUE(vendor_choice(holdout("win", "loss", call), fell_back, "").call);
  EXPECT_FALSE(vendor_choice(holdout("loss", "tie", call), fell_back, "").call);
  EXPECT_FALSE(vendor_choice(RecordLog(), confirmed, "").call);
  const auto behind = [&](double median) {
    Json more = call;
    more["ratio"] = {0.97, median, 1.04}, more["default_ratio"] = {0.97, 2 - median, 1.04};
    return holdout("AMBG", "AMBG", more);
  };
  EXPECT_TRUE(vendor_choice(behind(1.011), confirmed, "").call) << "doubt is not the kernel's";
  EXPECT_FALSE(vendor_choice(behind(1.009), confirmed, "").call);
  EXPECT_FALSE(vendor_choice(behind(1.011), fell_back, "").call) << "the default is ahead";
  EXPECT_TRUE(vendor_choice(behind(0.989), fell_back, "").call);
  const VendorChoice none =
      vendor_choice(holdout("loss", "", {{"no_call", "it has no gates"}}), confirmed, "");
  EXPECT_FALSE(none.call);
  EXPECT_EQ(none.why_not, "it has no gates");
}

TEST(FallbackChoice, WhatLibrariesDoInOneCall) {
  const auto why = [](const Gemm& p, const char* arch) { return why_no_call(p, arch); };
  EXPECT_EQ(why(problem({EpilogueOp::clamp, EpilogueOp::silu}), "cpu"), "");
  EXPECT_NE(why(problem({}, Type::bf16), "cpu").find("oneDNN"), std::string::npos);
  EXPECT_EQ(
      why(problem({EpilogueOp::bias, EpilogueOp::residual, EpilogueOp::gelu_tanh}, Type::bf16), "sm_90a"),
      "");
  EXPECT_NE(why(problem({EpilogueOp::gelu}, Type::bf16), "sm_90a").find("gelu"), std::string::npos);
  EXPECT_EQ(why(problem({EpilogueOp::bias, EpilogueOp::relu}, Type::bf16), "gfx942"), "");
  EXPECT_NE(why(problem({EpilogueOp::silu}, Type::bf16), "gfx942").find("hipBLASLt needs a kernel"),
            std::string::npos);
  Gemm sums = problem({}, Type::i8);
  sums.d = Type::i8;
  EXPECT_EQ(why(sums, "sm_90a"), "");
  EXPECT_NE(why(sums, "gfx942").find("conversion"), std::string::npos);
  Gemm gated = problem();
  gated.gate = EpilogueOp::silu;
  EXPECT_NE(why(gated, "cpu").find("gates"), std::string::npos);
  Gemm ranged = problem();
  ranged.least[0] = 1;
  EXPECT_NE(why(ranged, "cpu").find("range"), std::string::npos);
  EXPECT_NE(why_no_call(Rows(), "cpu"), "");
}

TEST(FallbackChoice, EachArchHasItsLibrary) {
  const Gemm p = problem({}, Type::bf16);
  EXPECT_EQ(why_unusable(kHip, p, "gfx942"), "");
  EXPECT_EQ(why_unusable(kLt, p, "sm_90a"), "");
  EXPECT_NE(why_unusable(kLt, p, "gfx942").find("not of hipblaslt"), std::string::npos);
  EXPECT_NE(why_unusable(kHip, p, "sm_90a").find("not of cublaslt"), std::string::npos);
}

Selected selected(Mode mode, const std::vector<LockEntry>& entries, bool fallback) {
  Lock lock;
  for (const LockEntry& e : entries) lock.put(e);
  ProblemFile file;
  file.target = "t", file.name = "f", file.ns = "n", file.problem = Problem::parse(entries[0].problem);
  file.fallback = fallback;
  return select(mode, lock, "lock", {{file, entries[0].arch, entries[0].device, {}}}).front();
}

TEST(FallbackSelect, IsForFunctionsThatAskForIt) {
  EXPECT_EQ(selected(Mode::lock, {on_cpu()}, true).choice.main.vendor, kBlas);
  EXPECT_EQ(selected(Mode::frozen, {on_cpu()}, true).choice.main.vendor, kBlas);
  EXPECT_FALSE(selected(Mode::frozen, {on_cpu()}, false).choice.main.vendor);
  EXPECT_FALSE(selected(Mode::frozen, {on_cpu(std::nullopt)}, true).choice.main.vendor);
  VendorCall bad = kBlas;
  bad.version = "new";
  EXPECT_THROW(selected(Mode::frozen, {on_cpu(bad)}, true), Error);
  EXPECT_EQ(selected(Mode::lock, {on_cpu(bad)}, true).choice.origin, "default");
}

TEST(FallbackSelect, EachDeviceHasItsOwn) {
  const Gemm p = problem({}, Type::bf16);
  const LockEntry h100 = entry(p, "sm_90a", "NVIDIA H100", kLt),
                  h200 = entry(p, "sm_90a", "NVIDIA H200", std::nullopt);
  const ChoiceFile with = selected(Mode::frozen, {h100, h200}, true).choice;
  ASSERT_EQ(with.devices.size(), 1u) << "of one config, and one of them falls back";
  ASSERT_EQ(with.calls().size(), 1u);
  EXPECT_EQ(with.calls()[0].device, "");
  EXPECT_EQ(with.calls()[0].call.device, "NVIDIA H100");
  EXPECT_TRUE(selected(Mode::frozen, {h100, h200}, false).choice.devices.empty());
  const ChoiceFile again = ChoiceFile::parse(with.serialize(), "choice");
  EXPECT_EQ(again.serialize(), with.serialize());
  EXPECT_EQ(again.main.vendor, with.main.vendor);
}

TEST(FallbackSelect, ProblemFilesSayIt) {
  const auto file = [](const std::string& field) {
    return ProblemFile::parse(
        R"({"schema":"deepgen.problem/1","target":"t","name":"f","namespace":"n","problem":")" +
            problem().key() + R"(","untuned":false)" + field + "}",
        "problem.json");
  };
  EXPECT_FALSE(file("").fallback);
  EXPECT_TRUE(file(R"(,"fallback":"vendor")").fallback);
  EXPECT_THROW(file(R"(,"fallback":"other")"), Error);
}

TEST(FallbackMerge, AFasterKernelThatIsSlowerThanTheLibraryReplacesNoFallback) {
  const auto with = [](LockEntry e, double to_vendor) {
    e.evidence = {{"vendor", {"openblas 0.3.21", to_vendor}},
                  {"vendor_ratio", {to_vendor * 0.99, to_vendor, to_vendor * 1.01}},
                  {"noise_floor", 0.01}};
    return e;
  };
  const auto merged = [&](const LockEntry& ours, LockEntry theirs) {
    theirs.sha256 = std::string(64, '7');
    Lock lock, other;
    lock.put(ours), other.put(theirs);
    return merge_locks(lock, other, MergeForce::none).at(0);
  };
  const LockEntry ours = with(on_cpu(), 1.5);
  EXPECT_EQ(merged(ours, with(on_cpu(std::nullopt), 1.2)).outcome, MergeOutcome::kept);
  EXPECT_EQ(merged(ours, with(on_cpu(), 1.2)).outcome, MergeOutcome::replaced);
  EXPECT_EQ(merged(ours, with(on_cpu(std::nullopt), 0.9)).outcome, MergeOutcome::replaced);
  EXPECT_EQ(merged(with(on_cpu(std::nullopt), 1.5), with(on_cpu(std::nullopt), 1.2)).outcome,
            MergeOutcome::replaced);
}

class FallbackEmbed : public EmbedGpuTest {};

TEST_F(FallbackEmbed, TheCallStandsBesideItsKernel) {
  Library l = library();
  l.functions[0].calls = {{"cpu", "", kBlas}};
  write(l);
  const std::string source = embed_source(l);
  EXPECT_NE(source.find("\"openblas 0.3.21, then bias+gelu\""), std::string::npos);
  EXPECT_NE(source.find("DEEPGEN_LIBRARY_OPENBLAS, 0u | DEEPGEN_VENDOR_B_TRANSPOSED"), std::string::npos);
  EXPECT_NE(source.find("_steps[] = {0, 3, };"), std::string::npos);
  EXPECT_NE(source.find("runs instead, on a CPU, where that version is installed"), std::string::npos);
  EXPECT_EQ(compile("c++ -std=c++17", "my-kernels.cpp"), 0);
  EXPECT_TRUE(!has_clang() || compile("clang++ -std=c++17", "my-kernels.cpp") == 0);
  l.functions[0].calls.clear();
  EXPECT_EQ(embed_source(l).find("deepgen_vendor_call"), std::string::npos);
}

TEST_F(FallbackEmbed, OfAGpuWithWhatTheLibraryFuses) {
  Library l = gpu_library(false);
  LibraryFunction& f = l.functions[0];
  const Gemm p = problem({EpilogueOp::bias, EpilogueOp::residual, EpilogueOp::relu}, Type::bf16);
  f.file.problem = p;
  for (KernelFile& file : f.kernels) {
    file.problem = p;
    for (Kernel& k : file.kernels) k.problem = p;
  }
  VendorCall h200 = kLt;
  h200.device = "NVIDIA H200";
  f.calls = {{"sm_90a", "NVIDIA H200", h200}};
  write(l);
  const std::string source = embed_source(l);
  EXPECT_NE(source.find(
                "DEEPGEN_VENDOR_BIAS | DEEPGEN_VENDOR_RESIDUAL | DEEPGEN_VENDOR_RELU, {0xeeeeeeeeeeeeeeeeu,"),
            std::string::npos);
  EXPECT_NE(source.find("\"cublaslt 13.1.0, id 66, tile 20\", \"13.1.0\", \"NVIDIA H200\""),
            std::string::npos);
  EXPECT_EQ(source.find("_vendor}"), source.rfind("_vendor}")) << "one kernel has it";
  EXPECT_EQ(compile("c++ -std=c++17", "my-kernels.cpp"), 0);
  f.calls[0].call.algorithm = "00";
  EXPECT_THROW(embed_source(l), Error);
}

} // namespace
} // namespace deepgen::fallback_test
