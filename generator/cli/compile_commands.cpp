// compile, dump
#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/kernel/device.h"
#include "base/kernel/vouched.h"
#include "base/search/names.h"
#include "base/search/plan.h"
#include "base/text/error.h"
#include "base/text/memory.h"
#include "base/text/numbers.h"
#include "generator/cli/cli.h"
#include "generator/cli/compile_one.h"
#include "generator/cli/inputs.h"
#include "generator/cli/isolate.h"
#include "generator/codegen/cache_key.h"
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"
#include "generator/lock/exchange.h"
#include "generator/lock/take_all.h"
#include "generator/remote/candidate.h"
#include "generator/space/space.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

namespace deepgen {
namespace {

constexpr size_t kLongestDetail = 2000;

struct CompileOptions {
  std::string plan, choice, output, cache;
  std::vector<std::string> records;
  size_t slot = 0, count = 0, finalist = 0;
  bool frozen = false, no_awkward = false;
  double timeout = 60;
};

KernelFile failed(const CompileJob& c, const std::string& detail) {
  KernelFile file;
  file.status = "failed";
  file.detail = detail.substr(0, kLongestDetail);
  file.problem = c.problem;
  file.arch = c.arch;
  file.choice = c.choice;
  file.revision = revision_of(c.problem, c.choice);
  return file;
}

/// What compile_candidate() gives, serialized. In a child process: a code generator that aborts or hangs on a
/// candidate is that candidate's failure. What the host could not do is not: the command fails then, and
/// nothing is written.
KernelFile compile_isolated(const CompileJob& c, const CompiledParts& parts, double timeout) {
  const Turn turn = Turn::compile_turn();
  auto work = [&] {
    return (parts.main
                ? compile_candidate(c.problem, c.arch, c.choice, parts.awkward, parts.fallbacks, c.reject())
                : compile_awkward(c.problem, c.arch, c.choice))
        .serialize();
  };
  Isolated isolated = run_isolated(work, timeout);
  if (isolated.killed || !isolated.host.empty()) isolated = run_isolated(work, timeout); // it may be over
  if (!isolated.host.empty()) throw HostFault(isolated.host + "\n  in:     compiling " + c.choice.text());
  if (isolated.killed)
    throw HostFault("the compiler was killed from elsewhere, twice", c.choice.text(),
                    "by the kernel for lack of memory, perhaps: it had " + bytes_text(isolated.peak_bytes) +
                        "; " + memory_text(),
                    "see the kernel's log (dmesg), free memory or build with fewer jobs (ninja -j), and "
                    "build again: it goes on here");
  if (isolated.failure.empty()) return KernelFile::parse(isolated.result, "the compiler's result");
  return failed(c, isolated.threw ? isolated.errors
                                  : "the compiler " + isolated.failure + ": " + isolated.errors);
}

/// From the cache, or compiled; the bytes are the same, as both are parsed and written by the same code. A
/// frozen build shows what this toolchain makes, so it takes nothing that an earlier one has made.
KernelFile compile_one(const CompileJob& c, const CompiledParts& parts, const CompileOptions& o,
                       const std::string& expected = "") {
  Cache cache(o.frozen ? CacheSettings() : CacheSettings::from_environment(o.cache));
  const std::string key = cache.on() ? cache_key(c, parts) : "";
  std::optional<KernelFile> file = find_cached(cache, key, c, expected);
  if (!file) {
    file = compile_isolated(c, parts, o.timeout);
    if (worth_caching(*file)) cache.store(CacheKind::kernel, key, file->serialize());
  }
  file->origin = c.origin;
  return *file;
}

KernelFile slot_file(const CompileOptions& o, const Plan& plan, size_t slot) {
  if (slot >= plan.slots.size()) return empty_slot(plan.problem, plan.arch);
  return compile_one(CompileJob::of_slot(plan, slot), {.awkward = !o.no_awkward}, o);
}

void compile_slot(const CompileOptions& o) {
  write_if_changed(o.output, slot_file(o, Plan::read(o.plan), o.slot).serialize());
}

/// Many slots in one process, for projects with so many problems that an edge a slot would burden every
/// build. The list names the kernel files and what they hold: it changes with any of them, and is what
/// measuring depends on.
void compile_slots(const CompileOptions& o) {
  const Plan plan = Plan::read(o.plan);
  std::string list;
  for (size_t slot = o.slot; slot < o.slot + o.count; ++slot) {
    const std::string name = slot_file_name(int64_t(slot)), bytes = slot_file(o, plan, slot).serialize();
    write_if_changed((std::filesystem::path(o.output).parent_path() / name).string(), bytes);
    list += list_line(bytes, name);
  }
  write_if_changed(o.output, list);
}

/// Candidates of the rounds are compiled for their problem alone, where assemblers are slow; what goes into
/// the finals is verified on an awkward shape, too.
void compile_finalist(const CompileOptions& o) {
  const FinalistJob finalist = finalist_job(o.records, o.finalist);
  const KernelFile file =
      finalist.job ? compile_one(*finalist.job, {.main = false, .awkward = true}, o) : finalist.none;
  write_if_changed(o.output, file.serialize());
}

/// Returns whether the code is the lock's, where the choice is.
bool check_hash(const CompileOptions& o, const ChoiceFile& file, const LockedChoice& choice,
                const Kernel& main) {
  if (file.origin != "lock" || choice.expect_sha256 == main.sha256) return true;
  const std::string why = "locked by " + choice.toolchain + ", sha256 " + choice.expect_sha256 +
                          "; compiled by " + toolchain(file.arch) + ", sha256 " + main.sha256;
  const std::string assembler = is_gpu(file.arch) ? " (DEEPGEN_PTXAS names its ptxas)" : "";
  if (o.frozen)
    throw Error("the compiled kernel is not the one that was locked",
                file.function + ": " + file.problem.key() + " on " + file.arch, why,
                "build with the lock's toolchain" + assembler + ", or run `ninja tune` and commit the lock");
  const std::string unsound = why_rejected(main);
  std::cerr << "deepgen: " << file.function << " on " << file.arch
            << ": same config, other code than in the lock (" << why << (unsound.empty() ? "" : "; ")
            << unsound << "): run `ninja tune` to verify it again\n";
  return false;
}

/// Compiles the choice with what is linked beside it; a file that cannot be compiled says so.
KernelFile compile_main(const CompileOptions& o, const ChoiceFile& choice) {
  const std::string origin = choice.origin;
  KernelFile file = compile_one({choice.problem, choice.arch, choice.main.choice, origin},
                                {.fallbacks = true}, o, choice.main.expect_sha256);
  for (const Choice& other : choice.instead) {
    if (file.status == "ok") break;
    std::cerr << "deepgen: " << choice.function << " on " << choice.arch << ": not " << file.choice.text()
              << " (" << first_line(file.detail) << ") but " << other.text() << "\n";
    file = compile_one({choice.problem, choice.arch, other, origin}, {.fallbacks = true}, o);
  }
  return file;
}

const Kernel& main_of(const KernelFile& file, const CompileOptions& o, const ChoiceFile& choice) {
  if (file.status != "ok")
    throw Error("the chosen config cannot be compiled",
                choice.function + ": " + choice.problem.key() + ", " + file.choice.text(), file.detail,
                "run `ninja tune` to choose another one");
  const Kernel* main = file.find("main");
  if (!main) throw Error("the compiler made no main kernel", o.choice, file.choice.text());
  return *main;
}

void check_revision(const Problem& problem, const LockedChoice& choice, const std::string& path) {
  const Template& t = find_template(choice.choice.template_name);
  const int64_t revision = t.revision_for(problem, choice.choice.config);
  if (revision != choice.revision)
    throw Error("the choice is for another revision of template " + t.name(), path,
                std::to_string(choice.revision) + " instead of " + std::to_string(revision),
                "run `deepgen select` again (delete the file and build)");
}

/// Adds a kernel that is linked beside the main one; whether its code is the lock's.
bool add_kernel(const CompileOptions& o, const ChoiceFile& choice, const LockedChoice& part,
                KernelFile& file) {
  check_revision(choice.problem, part, o.choice);
  const CompileJob candidate{choice.problem, choice.arch, part.choice, choice.origin};
  const KernelFile other = compile_one(candidate, {}, o, part.expect_sha256);
  Kernel kernel = main_of(other, o, choice);
  const bool same = check_hash(o, choice, part, kernel);
  kernel.device = part.device, kernel.taken = part.taken;
  file.kernels.push_back(std::move(kernel));
  return same;
}

void compile_choice(const CompileOptions& o) {
  const ChoiceFile choice = ChoiceFile::read(o.choice);
  check_revision(choice.problem, choice.main, o.choice);
  KernelFile file = compile_main(o, choice);
  bool same = check_hash(o, choice, choice.main, main_of(file, o, choice));
  for (Kernel& k : file.kernels)
    if (k.role == "main") k.taken = choice.main.taken;
  for (const auto* parts : {&choice.ranges, &choice.devices})
    for (const LockedChoice& part : *parts) same &= add_kernel(o, choice, part, file);
  let_one_take_all(file);
  if (!same) file.origin = kOtherCode;
  write_if_changed(o.output, file.serialize());
}

} // namespace

KernelFile compile_for_linking(const CompileForLinking& c) {
  CompileOptions o;
  o.cache = c.cache, o.timeout = c.timeout;
  return compile_one({c.problem, c.arch, c.choice, "lock"}, {.fallbacks = c.fallbacks}, o, c.expected_sha256);
}

void add_compile_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<CompileOptions>();
  CLI::App* c =
      app.add_subcommand("compile", "compile one candidate of a plan, or a chosen config with its fallbacks");
  CLI::Option* plan =
      c->add_option("--plan", o->plan, "plan.json; a bad candidate gives a file that says so, not an error");
  CLI::Option* slot = c->add_option("--slot", o->slot, "index of the candidate");
  CLI::Option* choice = c->add_option("--choice", o->choice, "choice.json; fails when it cannot be compiled");
  CLI::Option* count =
      c->add_option("--count", o->count,
                    "so many slots from --slot on, as sNN.dgk beside -o, which becomes a list of them");
  count->needs(slot)->check(CLI::Range(size_t(1), size_t(1000)));
  plan->needs(slot)->excludes(choice);
  slot->needs(plan);
  c->add_flag("--no-awkward", o->no_awkward,
              "with --plan: without the kernel for an awkward shape, which finalists need")
      ->needs(plan);
  CLI::Option* finalist = c->add_option(
      "--finalist", o->finalist,
      "a number from 0: compiles that finalist of --records for an awkward shape, and nothing else");
  CLI::Option* records =
      c->add_option("--records", o->records, "with --finalist: record logs of all rounds of one search");
  finalist->needs(records)->excludes(plan)->excludes(choice);
  records->needs(finalist);
  c->add_flag("--frozen", o->frozen, "with --choice: fail when the code is not the locked one")
      ->needs(choice);
  c->add_option("--timeout", o->timeout, "seconds for the compiler")
      ->capture_default_str()
      ->check(within(0.001, 86400));
  c->add_option("--cache", o->cache,
                "folder of the cache; else DEEPGEN_CACHE_DIR or the user's. Not used with --frozen");
  c->add_option("-o", o->output, ".dgk file (with --count, list) to write; left alone when unchanged")
      ->required();
  c->footer("Examples:\n  deepgen compile --plan r0/plan.json --slot 3 -o r0/s03.dgk\n"
            "  deepgen compile --finalist 0 --records r0/records.jsonl r1/records.jsonl -o final/f0.dgk\n"
            "  deepgen compile --choice choice.json --frozen -o winner.dgk");
  c->callback([o] {
    if (o->plan.empty() && o->choice.empty() && o->records.empty())
      throw Error("compile needs --plan and --slot, --finalist and --records, or --choice", "deepgen compile",
                  "", "see `deepgen compile --help`");
    o->count             ? compile_slots(*o)
    : !o->plan.empty()   ? compile_slot(*o)
    : !o->choice.empty() ? compile_choice(*o)
                         : compile_finalist(*o);
  });
}

void add_dump_command(CLI::App& app, CliContext&) {
  struct Options {
    std::string problem, arch = "cpu", device, config, stage = "mlir", output;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("dump", "print one candidate at a stage of the compiler");
  c->add_option("--problem", o->problem, "problem key or problem.json")->required();
  c->add_option("--arch", o->arch, "arch of the candidate")->capture_default_str();
  c->add_option("--device", o->device, "device.json for the default config; this host's device if absent");
  c->add_option("--config", o->config, "\"template parameter=value ...\"; the default config if absent");
  c->add_option("--stage", o->stage, "what to print")
      ->capture_default_str()
      ->check(CLI::IsMember({"mlir", "lowered", "llvm", "optimized", "asm", "ptx"}));
  c->add_option("-o", o->output, "file to write instead of standard output");
  c->footer(
      "Example:\n  deepgen dump --problem problem.json --config \"cpu_tile isa=4 mr=14 ...\" --stage asm");
  c->callback([o] {
    const Problem problem = problem_of(o->problem);
    const Choice choice = o->config.empty()
                              ? Space(problem, o->arch, device_of(o->device, o->arch)).default_choice()
                              : choice_of(o->config, problem, o->arch);
    const std::string text = dump_stage(problem, o->arch, choice, o->stage);
    if (o->output.empty())
      std::cout << text;
    else
      write_atomically(o->output, text);
  });
}

} // namespace deepgen
