// deepgen-measure: devices, verification, timing. Needs the device, and no compiler.
#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/failure.h"
#include "base/text/numbers.h"
#include "base/text/text.h"
#include "measure/commands/compare.h"
#include "measure/commands/environment.h"
#include "measure/commands/run.h"
#include "measure/commands/vendor_facts.h"
#include "measure/commands/verify_linked.h"
#include "measure/devices/devices.h"
#include "measure/devices/rocm_libraries.h"
#include "measure/process/sandbox.h"
#include "measure/race/race.h"
#include "measure/worker_command.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

namespace {

using namespace deepgen;

void add_measure_options(CLI::App& app, MeasureOptions& o) {
  app.add_option("--seconds", o.seconds, "time budget; waiting for the machine is not counted")
      ->envname("DEEPGEN_MEASURE_SECONDS")
      ->check(within(0.1, 86400))
      ->capture_default_str();
  app.add_option(
         "--most", o.most,
         "seconds that all rounds and the playoff of this search may take, whatever happens: as the logs of\n"
         "earlier rounds say what these have taken; a playoff that has no time for the fewest rounds "
         "decides\n"
         "nothing. 0: no bound")
      ->check(within(0, 86400000))
      ->capture_default_str();
  app.add_option("--timeout", o.call_seconds,
                 "seconds after which a kernel call hangs (more for large problems)")
      ->envname("DEEPGEN_MEASURE_TIMEOUT")
      ->check(within(0.05, 3600))
      ->capture_default_str();
  app.add_option(
         "--devices", o.devices,
         "GPUs that may be used, of those that CUDA_VISIBLE_DEVICES leaves: UUIDs, beginnings of them, "
         "names, or\n"
         "numbers, with commas between; default: all of the model of --device. A free one of them is taken")
      ->envname("DEEPGEN_DEVICES");
  app.add_option("--seed", o.seed, "seed of the data, the order of rounds and the bootstrap")
      ->capture_default_str();
  app.add_option("--caches", o.caches,
                 "what a call on a GPU finds in the caches: nothing, all but B, or all that fits")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Caches>{
          {"cold", Caches::cold}, {"weights-cold", Caches::weights_cold}, {"warm", Caches::warm}}))
      ->option_text("cold|weights-cold|warm [cold]");
  app.add_option("--regime", o.regime,
                 "what is tuned for on a GPU: calls that go on and on, a few after a rest, or both")
      ->transform(CLI::CheckedTransformer(std::map<std::string, TunedFor>{
          {"sustained", TunedFor::sustained}, {"burst", TunedFor::burst}, {"balanced", TunedFor::balanced}}))
      ->option_text("sustained|burst|balanced [sustained]");
  app.add_option("--warmup", o.warmup, "calls of each candidate (on a GPU: samples) before its first sample")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
}

struct DevicesCommand {
  std::string arch = "cpu", output, around;
  bool list = false;
};

/// Whether the file is of this device, or of another one of its model: which of them was found first is no
/// reason to measure again.
bool describes(const std::string& path, Device device) {
  if (device.is_cpu() || !device.present || !file_exists(path)) return false;
  try {
    const Device old = Device::read(path);
    device.uuid = old.uuid;
    return old == device;
  } catch (const Error&) { // damaged, or of another version
    return false;
  }
}

void devices(const DevicesCommand& command) {
  if (command.list) {
    for (const std::string& line : list_devices()) std::puts(line.c_str());
    return;
  }
  const Device device = find_device(command.arch);
  if (!command.around.empty()) write_if_changed(command.around, surroundings_text(device));
  const std::string text = device.to_json().dump(1) + "\n";
  if (command.output.empty())
    std::fputs(text.c_str(), stdout);
  else if (!describes(command.output, device))
    write_if_changed(command.output, text);
}

void add_devices(CLI::App& app, DevicesCommand& c) {
  auto* sub = app.add_subcommand("devices", "Describe the device of an arch, or list what is attached");
  sub->add_option("--arch", c.arch, "cpu, sm_<number> or gfx<number>")->capture_default_str();
  sub->add_option("-o", c.output, "write the description here, if it changed (default: standard output)");
  sub->add_option("--around", c.around,
                  "write what times on it depend on besides its model: driver and power limit");
  sub->add_flag("--list", c.list, "one line for people about each attached device");
  sub->footer("Example:\n  deepgen-measure devices --arch cpu -o device.json");
  sub->callback([&c] { devices(c); });
}

void add_run(CLI::App& app, RunCommand& c) {
  auto* sub = app.add_subcommand("run", "Verify and time the candidates of one round; one record for each");
  sub->add_option("--plan", c.plan, "the round's plan.json")->required();
  sub->add_option("--kernels", c.kernels, "folder with s00.dgk, s01.dgk, ...")->required();
  sub->add_option("--slots", c.slots, "how many there are")->required()->check(CLI::Range(1, 1000000));
  sub->add_option("--device", c.device, "device.json")->required();
  sub->add_option("--anchor", c.anchor,
                  "kernel that ratios are taken against; default: slot 0 of this round");
  sub->add_option("--records", c.records,
                  "logs of earlier rounds, the best of which are timed again beside this round's")
      ->expected(1, 1000);
  sub->add_option("--cache", c.cache, "folder of the cache; else DEEPGEN_CACHE_DIR or the user's");
  sub->add_option("--label", c.label,
                  "name of the function: nothing is printed but, with this name, what went wrong");
  sub->add_option("-o", c.output, "records.jsonl")->required();
  add_measure_options(*sub, c.options);
  sub->footer(
      "Example:\n  deepgen-measure run --plan r1/plan.json --kernels r1 --slots 12 --device device.json \\\n"
      "    --anchor r0/s00.dgk --records r0/records.jsonl -o r1/records.jsonl");
  sub->callback([&c] { run(c); });
}

void add_playoff(CLI::App& app, PlayoffCommand& c) {
  auto* sub = app.add_subcommand(
      "playoff",
      "Time the best of all rounds against the default and the vendor library, on a quiet machine.\n"
      "Takes 11 to 60 interleaved rounds, as many as the time budget has room for; after 15 the closest go "
      "on alone, for up to 60;\n"
      "as many again at most in a new process for the winner alone");
  sub->add_option("--records", c.records, "logs of the rounds")->required()->expected(1, 1000);
  sub->add_option(
         "--awkward", c.awkward,
         "what `deepgen compile --finalist` wrote: kernels of the finalists for awkward shapes, to\n"
         "be verified before anything is timed; needed where the rounds' kernel files have none (GPUs)")
      ->expected(1, 1000);
  sub->add_option("--device", c.device, "device.json")->required();
  sub->add_option("--label", c.label, "name of the function: prints one line about its search");
  sub->add_option("--searches", c.searches,
                  "searches.txt of a build tree: the line says how many of them are done");
  sub->add_option("-o", c.output, "final.jsonl")->required();
  sub->add_option("--samples", c.options.samples, "rounds at most")
      ->check(CLI::Range(11, 10000))
      ->capture_default_str();
  sub->add_flag("!--no-vendor", c.options.vendor, "do not time the vendor library");
  sub->add_option("--extra", c.extra,
                  "on GPUs, in the hold-out time the winner, the default and the vendor's best in these "
                  "regimes, too, 3 s each:\n"
                  "bursts (a millisecond of calls after a rest of 30 ms), serial (each launch waits for the "
                  "one before)")
      ->delimiter(',')
      ->check(CLI::IsMember({to_string(Regime::bursts), to_string(Regime::serial)}));
  add_measure_options(*sub, c.options);
  sub->footer("Example:\n  deepgen-measure playoff --device device.json --records r0/records.jsonl "
              "r1/records.jsonl \\\n"
              "    -o final.jsonl");
  sub->callback([&c] { playoff(c); });
}

void add_verify(CLI::App& app, VerifyCommand& command, int& status) {
  auto* sub = app.add_subcommand(
      "verify", "Verify kernels on the device that they are for; a line each, and of GPUs a summary.\n"
                "Exit status 1 when one is not ok");
  cuda::VerifyCommand& c = command.gpu;
  sub->add_option("-o", command.output,
                  "for a build, of one file: verified.json with the hashes of what is right; fails when a "
                  "kernel is wrong");
  sub->add_flag("--unproven", command.unproven,
                "leave out what a search has verified, and what would take minutes");
  sub->add_flag("--any-host", command.any_host,
                "with -o: list also what this CPU is too old for, so that every host writes the same");
  sub->add_option("--device", command.device,
                  "with -o, for a GPU: device.json; one without the device verifies nothing");
  sub->add_option("--devices", command.devices, "GPUs that may be used, as in `run`")
      ->envname("DEEPGEN_DEVICES");
  sub->add_option("--cache", command.cache, "folder of the cache; else DEEPGEN_CACHE_DIR or the user's");
  sub->add_flag("--no-cache", command.no_cache, "neither look for earlier verdicts nor keep these")
      ->excludes("--cache");
  sub->add_option("files", c.files, "kernel files that `deepgen compile` made")->required();
  sub->add_option("--gpu", c.options.ordinal, "which one, as CUDA_VISIBLE_DEVICES shows them")
      ->capture_default_str();
  sub->add_option("--timeout", c.options.call_seconds,
                  "seconds after which a call hangs (more for large problems)")
      ->envname("DEEPGEN_MEASURE_TIMEOUT")
      ->check(within(0.05, 3600))
      ->capture_default_str();
  sub->add_option("--seed", c.options.seed, "seed of the data")->capture_default_str();
  sub->add_option(
         "--zone", c.options.zone,
         "bytes of canaries around every operand; 0 under compute-sanitizer, which then sees stray reads")
      ->check(CLI::IsMember({0, 256, 4096, 65536}))
      ->capture_default_str();
  sub->footer("Example:\n  deepgen-measure verify r0/*.dgk");
  sub->callback([&command, &status] { status = verify(command) ? 0 : 1; });
}

void add_compare(CLI::App& app, CompareCommand& c) {
  auto* sub = app.add_subcommand("compare", "Time kernels of one problem against the first, all in one "
                                            "process: time / its time, 95 % interval, verdict");
  sub->add_option("files", c.files, "kernel files that `deepgen compile` made")->required();
  sub->add_option("--device", c.device, "device.json")->required();
  sub->add_option("-o", c.output, "the same as JSON");
  sub->add_option(
      "--at", c.at,
      "sizes of the calls, of those that kernels have a range of: \"m=64\"; else the largest. Kernels "
      "for these sizes alone may be among the files");
  sub->add_flag("--vendor", c.vendor, "beside them the vendor's library, with the best of its algorithms");
  sub->add_flag("--serial", c.serial, "on a GPU: every launch waits for the end of the one before");
  add_measure_options(*sub, c.options);
  sub->footer("Example:\n  deepgen-measure compare --device device.json r0/s00.dgk r1/s03.dgk");
  sub->callback([&c] { compare(c); });
}

void add_noise(CLI::App& app, NoiseCommand& c) {
  auto* sub = app.add_subcommand(
      "noise", "What a kernel differs from itself on this machine, timed as candidates are");
  sub->add_option("file", c.file, "kernel file; default: a loop on the CPU, reading memory on a GPU");
  sub->add_option("--device", c.device, "device.json");
  sub->add_option("--arch", c.arch, "instead: the first device of this arch")->capture_default_str();
  sub->add_option("-o", c.output, "the same as JSON");
  add_measure_options(*sub, c.options);
  sub->footer("Example:\n  deepgen-measure noise --arch sm_90a");
  sub->callback([&c] { noise(c); });
}

void add_sandbox(CLI::App& app) {
  auto* sub = app.add_subcommand(
      "sandbox", "What of the sandbox around CPU candidates is in force on this machine, in one line");
  sub->footer("Example:\n  deepgen-measure sandbox");
  sub->callback(
      [] { std::printf("%-14s candidates on the CPU: %s\n", "sandbox", sandbox::probe().text().c_str()); });
}

void add_rocm(CLI::App& app) {
  auto* sub = app.add_subcommand("rocm", "Which of ROCm's libraries are found, a line each");
  sub->footer("Example:\n  deepgen-measure rocm");
  sub->callback([] {
    for (const LibraryFound& library : rocm_libraries())
      std::printf("%-14s %s\n", library.name.c_str(), library.where.c_str());
  });
}

void add_cudnn(CLI::App& app) {
  auto* sub = app.add_subcommand("cudnn", "Where cuDNN is found, the baseline of attention, in a line");
  sub->footer("Example:\n  deepgen-measure cudnn");
  sub->callback([] { std::printf("%-14s %s\n", "cuDNN", cudnn_text().c_str()); });
}

void add_worker(CLI::App& app, bool& id, int& status) {
  auto* sub = app.add_subcommand(
      "worker", "Measure for another host: one request by standard input, its answer by standard output");
  sub->add_flag("--id", id, "print what this worker is: requests for another one are refused");
  sub->footer("Example:\n  ssh host /opt/deepgen/bin/deepgen-measure worker --id");
  sub->callback([&id, &status] { status = serve_measuring(id); });
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures GEMM kernels that `deepgen compile` made: verifies them against an f64 reference in a\n"
      "worker process, and times them against each other.");
  app.set_version_flag("--version", "deepgen-measure " DEEPGEN_VERSION);
  app.require_subcommand(1);
  app.footer("Example:\n  deepgen-measure devices --list\nEvery command has its own --help.");
  DevicesCommand devices_command;
  RunCommand run_command;
  PlayoffCommand playoff_command;
  VerifyCommand verify_command;
  CompareCommand compare_command;
  NoiseCommand noise_command;
  int status = 0;
  add_devices(app, devices_command);
  add_run(app, run_command);
  add_playoff(app, playoff_command);
  add_verify(app, verify_command, status);
  add_compare(app, compare_command);
  add_noise(app, noise_command);
  add_sandbox(app);
  add_rocm(app);
  add_cudnn(app);
  bool worker_id = false;
  add_worker(app, worker_id, status);
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "deepgen-measure: error: %s\n", visible(describe(e)).c_str());
    return 1;
  }
}
