// Which of several GPUs is measured on.
#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/json/json.h"
#include "base/kernel/kernel.h"
#include "base/search/plan.h"
#include "base/search/record.h"
#include "base/text/error.h"
#include "measure/devices/cuda_take.h"
#include "tests/paths.h"
#include "tests/unit/environment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deepgen::cuda::cuda_take_test {
namespace {

Device device(const std::string& name, const std::string& uuid) {
  Device d = generic_gpu("sm_90");
  d.name = name, d.uuid = uuid, d.present = true;
  return d;
}

struct Nobody {};
/// Throws Nobody instead of waiting.
Taken try_take(const Device& model, const std::vector<Device>& attached, const std::string& allowed = "") {
  return take(model, attached, allowed, [] { throw Nobody(); });
}

TEST(Take, EveryEdgeADeviceOfItsOwn) {
  const std::string mine = "GPU-test-" + std::to_string(getpid()) + "-";
  const std::vector<Device> attached = {device("H100", mine + "1"), device("H200", mine + "2"),
                                        device("H100", mine + "3")};
  Device model = attached[0];
  model.arch = "sm_90a", model.uuid = "GPU-of-yesterday";
  std::optional<Taken> first = try_take(model, attached), second = try_take(model, attached);
  EXPECT_EQ(first->device.arch, "sm_90a");
  EXPECT_NE(first->device.uuid, second->device.uuid);
  for (const Taken* t : {&*first, &*second}) EXPECT_EQ(t->device.name, "H100");
  EXPECT_THROW(try_take(model, attached), Nobody) << "an H200 is free, and of another model";
  const std::string released = first->device.uuid;
  first.reset();
  EXPECT_EQ(try_take(model, attached).device.uuid, released);
  EXPECT_EQ(try_take(attached[1], attached).device.uuid, mine + "2");
  for (const Device& d : attached) unlink(("/tmp/" + lock_name(d)).c_str());
}

TEST(Take, NobodyHoldsUpABuildForEver) {
  const std::vector<Device> attached = {device("H100", "GPU-test-held-" + std::to_string(getpid()))};
  const std::string name = lock_name(attached[0]);
  std::optional<FileLock> held = FileLock::of_host(name);
  try {
    take(attached[0], attached, "", [] {}, 0.3);
    FAIL() << "it is held";
  } catch (const HostFault& e) {
    const std::string text = e.what();
    for (const std::string& part :
         {host_lock_path(name) + ": process " + std::to_string(getpid()) + " (cuda_measure_te) of user ",
          std::string("DEEPGEN_DEVICE_WAIT=<seconds>"), std::string("DEEPGEN_MODE=lock")})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  held.reset();
  EXPECT_EQ(take(attached[0], attached, "", [] {}, 0).device.uuid, attached[0].uuid);
  EXPECT_EQ(lock_holder(host_lock_path(name)), "");
  unlink(("/tmp/" + name).c_str());
  for (const char* bad : {"nan", "-1", "soon", "1e30"}) {
    const Environment wait("DEEPGEN_DEVICE_WAIT", bad);
    EXPECT_THROW(longest_hold(), Error) << bad;
  }
  const Environment wait("DEEPGEN_DEVICE_WAIT", "7");
  EXPECT_EQ(longest_hold(), 7);
}

/// Another user can put a link there, and nobody but that user can remove it.
TEST(Take, AFileThatCannotBeUsedIsReplacedWithAWord) {
  const Device one = device("H100", "GPU-test-link-" + std::to_string(getpid()));
  const std::string path = "/tmp/" + lock_name(one);
  ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
  testing::internal::CaptureStderr();
  std::optional<Taken> taken = try_take(one, {one});
  EXPECT_THROW(try_take(one, {one}), Nobody);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(path), std::string::npos) << text;
  EXPECT_NE(text.find("other users do not wait"), std::string::npos) << text;
  const std::string used = host_lock_path(lock_name(one));
  EXPECT_NE(used, path);
  unlink(path.c_str()), unlink(used.c_str());
}

TEST(Take, OnlyWhatIsAllowed) {
  const std::string mine = "GPU-" + std::to_string(getpid());
  const std::vector<Device> attached = {device("H100", mine + "-a"), device("H100", mine + "-b")};
  for (const std::string& allowed :
       {std::string("1"), mine + "-b", mine.substr(4) + "-b", "7," + mine + "-b"})
    EXPECT_EQ(try_take(attached[0], attached, allowed).device.uuid, mine + "-b") << allowed;
  EXPECT_EQ(try_take(attached[0], attached, "no such device," + attached[0].name).device.name,
            attached[0].name);
  EXPECT_THROW(try_take(attached[0], attached, "2"), Error);
  EXPECT_THROW(try_take(device("A100", ""), attached), Error);
  EXPECT_THROW(try_take(attached[0], {}), Error);
  for (const Device& d : attached) unlink(("/tmp/" + lock_name(d)).c_str());
}

/// What holds up whom, in a folder of locks of its own.
class Quiet : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "quiet_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    runtime_.emplace("XDG_RUNTIME_DIR", folder_.c_str());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// Whether it has to wait for `held`, which are given back then.
  static bool waits(std::vector<Turn> held, const std::function<Turn()>& other) {
    auto got = std::async(std::launch::async, [&] { const Turn turn = other(); });
    const bool waited = got.wait_for(std::chrono::milliseconds(150)) != std::future_status::ready;
    held.clear();
    got.get(); // now it has it, or this hangs
    return waited;
  }
  static std::vector<Turn> one_of(Turn turn) {
    std::vector<Turn> list;
    list.push_back(std::move(turn));
    return list;
  }
  static Turn shared() { return Turn::quiet_turn(FileLock::kShared); }
  static Turn alone() { return Turn::quiet_turn(); }
  static Turn compile() { return Turn::compile_turn(); }

  std::string folder_;
  std::optional<Environment> runtime_;
};

TEST_F(Quiet, NoCompileBesideAPlayoff) {
  EXPECT_TRUE(waits(one_of(shared()), compile));
  EXPECT_TRUE(waits(one_of(alone()), compile));
  EXPECT_TRUE(waits(one_of(compile()), shared));
  EXPECT_TRUE(waits(one_of(compile()), alone));
  EXPECT_TRUE(waits(one_of(shared()), alone));
  EXPECT_TRUE(waits(one_of(alone()), shared));
}

TEST_F(Quiet, CompilesShareTheMachineAndPlayoffsOnSeveralGpusTheQuiet) {
  std::vector<Turn> compiles = one_of(compile()), playoffs;
  compiles.push_back(compile()); // else this hangs
  EXPECT_TRUE(waits(std::move(compiles), shared));
  playoffs.push_back(shared());
  playoffs.push_back(shared());
  EXPECT_TRUE(waits(std::move(playoffs), compile));
}

/// deepgen-measure with a driver that has devices and runs nothing.
class TakeCommand : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "take_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    setenv("LD_LIBRARY_PATH", paths::fake_driver_folder, 1);
    setenv("FAKE_CUDA_MACHINE", std::to_string(getpid()).c_str(), 1); // other processes run these tests, too
    setenv("FAKE_CUDA_DEVICES", "9.0 H100;8.0 A100;9.0 H100", 1);
    measure({"devices", "--arch", "sm_90a", "-o", folder_ + "/device.json"});
    Plan plan;
    plan.problem =
        Gemm::parse("gemm m=8 n=8 k=8 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4");
    plan.arch = "sm_90a", plan.slots = {{{"simt", {}}, "default"}};
    KernelFile kernel;
    kernel.problem = plan.problem, kernel.arch = plan.arch, kernel.choice = plan.slots[0].choice;
    kernel.status = "failed", kernel.detail = "made so";
    write_atomically(folder_ + "/plan.json", plan.serialize());
    write_atomically(folder_ + "/s00.dgk", kernel.serialize());
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    for (int i : {1, 2, 3}) unlink(("/tmp/" + name_of(i)).c_str());
    for (const char* name : {"LD_LIBRARY_PATH", "FAKE_CUDA_MACHINE", "FAKE_CUDA_DEVICES", "DEEPGEN_DEVICES",
                             "FAKE_NVML_PROCESSES", "FAKE_NVML_INIT"})
      unsetenv(name);
  }

  static pid_t start(std::vector<std::string> words) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    words.insert(words.begin(), paths::measure);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  static int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static int measure(const std::vector<std::string>& words) { return end_of(start(words)); }

  pid_t start_run(const std::string& log) {
    return start({"run", "--plan", folder_ + "/plan.json", "--kernels", folder_, "--slots", "1", "--device",
                  folder_ + "/device.json", "-o", folder_ + "/" + log});
  }
  Json environment_of(const std::string& log) { return RecordLog::read(folder_ + "/" + log).environment; }
  /// The last digit of the UUID that a run measured on.
  std::string number(const std::string& log) {
    return environment_of(log)["device"]["uuid"].get<std::string>().substr(39);
  }
  static std::string name_of(int number) {
    char name[80];
    std::snprintf(name, sizeof name, "deepgen-GPU-%08x-0000-0000-0000-00000000000%d", unsigned(getpid()),
                  number);
    return name;
  }
  static FileLock hold(int number) { return FileLock::of_host(name_of(number)); }

  std::string folder_;
};

TEST_F(TakeCommand, AFreeDeviceOfTheModelOrNone) {
  std::optional<FileLock> first = hold(1), third = hold(3);
  const pid_t waiting = start_run("a.jsonl");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(waitpid(waiting, nullptr, WNOHANG), 0) << "the second device is free, and of another model";
  third.reset();
  EXPECT_EQ(end_of(waiting), 0);
  EXPECT_EQ(number("a.jsonl"), "3");
  EXPECT_EQ(end_of(start_run("b.jsonl")), 0);
  EXPECT_EQ(number("b.jsonl"), "3") << "the first one is still taken";
  third.emplace(hold(3));
  first.reset();
  EXPECT_EQ(end_of(start_run("c.jsonl")), 0);
  EXPECT_EQ(number("c.jsonl"), "1");
}

TEST_F(TakeCommand, RestrictionsHold) {
  setenv("DEEPGEN_DEVICES", "2", 1);
  EXPECT_EQ(end_of(start_run("a.jsonl")), 0);
  EXPECT_EQ(number("a.jsonl"), "3");
  setenv("DEEPGEN_DEVICES", "1", 1);
  EXPECT_EQ(end_of(start_run("b.jsonl")), 1) << "that one is of another model";
  EXPECT_FALSE(file_exists(folder_ + "/b.jsonl"));
}

TEST_F(TakeCommand, WhoElseComputesOnItIsRecorded) {
  setenv("FAKE_NVML_PROCESSES", "2", 1);
  EXPECT_EQ(end_of(start_run("a.jsonl")), 0);
  EXPECT_EQ(environment_of("a.jsonl")["other_processes"], 2);
  EXPECT_EQ(environment_of("a.jsonl")["driver"], "600.1");
  EXPECT_FALSE(environment_of("a.jsonl").contains("unwatched"));
}

TEST_F(TakeCommand, ThatNobodyWatchedIsRecorded) {
  setenv("FAKE_NVML_INIT", "18", 1);
  EXPECT_EQ(end_of(start_run("a.jsonl")), 0);
  EXPECT_EQ(environment_of("a.jsonl")["unwatched"], "NVML does not start: error 18");
  EXPECT_EQ(environment_of("a.jsonl")["other_processes"], 0);
}

TEST_F(TakeCommand, WhichOfThemWasFoundFirstIsNoReasonToMeasureAgain) {
  const std::string path = folder_ + "/device.json", before = read_file(path);
  Device other = Device::read(path);
  EXPECT_EQ(other.uuid.substr(39), "1");
  other.uuid = "GPU-another";
  write_atomically(path, other.to_json().dump(1));
  const std::string edited = read_file(path);
  EXPECT_EQ(measure({"devices", "--arch", "sm_90a", "-o", path}), 0);
  EXPECT_EQ(read_file(path), edited);
  setenv("FAKE_CUDA_DEVICES", "9.0 H200", 1);
  EXPECT_EQ(measure({"devices", "--arch", "sm_90a", "-o", path}), 0);
  EXPECT_EQ(Device::read(path).name, "H200");
}

} // namespace
} // namespace deepgen::cuda::cuda_take_test
