// plan
#include "base/files/files.h"
#include "base/search/decide.h"
#include "base/search/finalists.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/cli/search_flags.h"
#include "generator/cli/try_command.h"
#include "generator/lock/exchange.h"
#include "generator/lock/final_log.h"
#include "generator/lock/lock.h"
#include "generator/search/ranged_search.h"
#include "generator/space/space.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

namespace deepgen {
namespace {

struct PlanOptions {
  std::string problem, arch = "cpu", device, lock, output, commands;
  int round = 0;
  size_t slots = 32;
  std::vector<std::string> records;
  SearchFlags search;
  bool dry_run = false, end_early = false;
};

/// What the logs' measurements can tell apart; 0 when one was disturbed, and says nothing about what is to be
/// gained.
double least_gain_of(const std::vector<std::string>& logs) {
  double gain = threshold_of(0);
  for (const std::string& path : logs) {
    const RecordLog log = RecordLog::read(path);
    if (!log.stable) return 0;
    gain = std::max(gain, log.environment.value("least_noise", 0.0));
  }
  return gain;
}

/// Whether a round has used up what the search may measure, but its finals: nothing more is compiled then.
bool rounds_are_over(const std::vector<std::string>& logs) {
  return std::any_of(logs.begin(), logs.end(),
                     [](const std::string& path) { return !out_of_time(RecordLog::read(path)).empty(); });
}

/// The lock's config, if it can be tried here; a config for a better device than this one cannot.
std::optional<Choice> incumbent(const PlanOptions& o, const ProblemFile& file, const Device& device) {
  if (o.lock.empty()) return std::nullopt;
  const Lock lock = Lock::read(o.lock);
  const LockEntry* entry = lock.find(file.problem.key(), o.arch, device);
  if (!entry) return std::nullopt;
  std::string why = why_stale(*entry);
  if (why.empty()) why = why_illegal(file.problem, o.arch, device, entry->choice);
  if (why.empty()) return entry->choice;
  if (o.round == 0)
    std::cerr << "deepgen: " << file.label() << ": the locked config is not tried: " << why << "\n";
  return std::nullopt;
}

SearchInput search_input(const PlanOptions& o, const ProblemFile& file) {
  SearchInput in;
  in.problem = file.problem;
  in.arch = o.arch;
  in.device = device_of(o.device, o.arch);
  in.round = o.round;
  in.slots = o.slots;
  in.options = search_options(o.search, in.problem, in.arch);
  in.points = file.points;
  if (!in.problem.ranged()) in.incumbent = incumbent(o, file, in.device);
  require_logs(o.records);
  if (o.end_early) in.least_gain = least_gain_of(o.records);
  if (rounds_are_over(o.records)) in.slots = 0;
  for (LoggedRecord& r : read_logs(o.records)) in.records.push_back(std::move(r.record));
  return in;
}

void print_plan(const SearchInput& in, const Plan& plan, const Space& space) {
  std::printf("%s on %s, %s: round %d\n%4s  %-10s %12s  config\n", in.problem.key().c_str(), in.arch.c_str(),
              in.device.name.c_str(), plan.round, "slot", "origin", "estimate/s");
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const PlanSlot& slot = plan.slots[i];
    const std::string name = slot.choice.text();
    if (const auto rank = space.rank(slot.choice))
      std::printf("%4zu  %-10s %12.3e  %s\n", i, slot.origin.c_str(), space.cost(*rank), name.c_str());
    else
      std::printf("%4zu  %-10s %12s  %s\n", i, slot.origin.c_str(), "-", name.c_str());
  }
  std::printf("%zu candidates of the %zu in the space\n", plan.slots.size(), space.size());
}

/// The lock's kernels that can be tried here.
std::vector<Choice> ranged_incumbents(const PlanOptions& o, const ProblemFile& file, const Device& device) {
  std::vector<Choice> out;
  const Lock lock = o.lock.empty() ? Lock() : Lock::read(o.lock);
  if (const LockEntry* entry = lock.find(file.problem.key(), o.arch, device)) {
    out.push_back(entry->choice);
    for (const LockedPart& part : entry->ranges) out.push_back(part.choice);
  }
  return out;
}

/// Of a batch invariant problem: which orders of sums are tried, each by how many candidates.
void print_orders(const Plan& plan) {
  if (!plan.problem.batch_invariant()) return;
  std::map<std::string, size_t> orders;
  for (const PlanSlot& slot : plan.slots)
    ++orders[find_template(slot.choice.template_name).sum_order(plan.problem, plan.arch, slot.choice.config)];
  for (const auto& [order, count] : orders) std::printf("%zu of them: %s\n", count, order.c_str());
}

void run_ranged_plan(const PlanOptions& o, const ProblemFile& file, const SearchInput& in) {
  const Plan plan = next_ranged_plan(in, ranged_incumbents(o, file, in.device));
  if (o.dry_run) {
    for (size_t i = 0; i < plan.slots.size(); ++i)
      std::printf("%4zu  %-10s %s\n", i, plan.slots[i].origin.c_str(), plan.slots[i].choice.text().c_str());
    std::string points;
    for (const Sizes& at : plan.points.at) points += " " + point_text(plan.problem, at);
    std::printf("%zu candidates, for calls of%s; at most %zu kernels\n", plan.slots.size(), points.c_str(),
                plan.points.kernels);
    print_orders(plan);
    return;
  }
  write_if_changed(o.output, plan.serialize());
  if (!o.commands.empty()) write_if_changed(o.commands, candidate_commands(plan, o.problem, o.device));
}

void run_plan(const PlanOptions& o) {
  if (o.output.empty() && !o.dry_run)
    throw Error("plan needs -o, or --dry-run", "deepgen plan", "", "see `deepgen plan --help`");
  const ProblemFile file = ProblemFile::read(o.problem);
  const SearchInput in = search_input(o, file);
  if (in.problem.ranged()) return run_ranged_plan(o, file, in);
  const Space space(in.problem, in.arch, in.device, in.options, in.incumbent);
  const Plan plan = next_plan(in, space);
  if (o.round == 0) { // a search says once what cannot be
    for (const std::string& note : space.notes())
      std::cerr << "deepgen: " << file.label() << ": " << note << "\n";
    if (in.incumbent && !space.rank(*in.incumbent))
      std::cerr << "deepgen: " << file.label()
                << ": the locked config is not tried: the search file leaves it out\n";
  }
  if (o.round == 1 && nothing_to_gain(in, space))
    std::fprintf(stderr,
                 "deepgen: %s: the search ends after its first round, by which no config is faster than the "
                 "fastest so far by %.1f %%\n",
                 file.label().c_str(), 100 * in.least_gain);
  if (o.dry_run) return print_plan(in, plan, space);
  write_if_changed(o.output, plan.serialize());
  if (!o.commands.empty()) write_if_changed(o.commands, candidate_commands(plan, o.problem, o.device));
}

} // namespace

void add_plan_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* c = app.add_subcommand("plan", "choose the candidates of one round of a search");
  c->add_option("--problem", o->problem, "problem.json")->required();
  c->add_option("--arch", o->arch, "arch to plan for")->capture_default_str();
  c->add_option("--device", o->device, "device.json; this host's device if absent");
  c->add_option("--round", o->round, "0 for the first")->required()->check(CLI::NonNegativeNumber);
  c->add_option("--slots", o->slots, "number of candidates at most")->required();
  c->add_option("--lock", o->lock, "lock file, whose config becomes a candidate of round 0");
  c->add_option("--records", o->records, "record logs of the earlier rounds");
  add_search_flags(*c, o->search);
  c->add_flag("--end-early", o->end_early,
              "end after round 0 when that says that no config is faster than the fastest so far by more "
              "than can be measured");
  c->add_flag("--dry-run", o->dry_run, "print what would be compiled, and write nothing");
  c->add_option("--commands", o->commands,
                "file to write with a line for each candidate that rebuilds and times it");
  c->add_option("-o", o->output, "plan.json to write; left alone when unchanged");
  c->footer(
      "Example:\n  deepgen plan --problem problem.json --arch cpu --device device.json --round 1 --slots 12 "
      "--records r0/records.jsonl -o r1/plan.json");
  c->callback([o] { run_plan(*o); });
}

} // namespace deepgen
