// plan, report
#include "base/error.h"
#include "base/files.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/exchange.h"
#include "generator/lock.h"
#include "generator/report.h"
#include "generator/search.h"
#include "generator/space.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

struct PlanOptions {
  std::string problem, arch = "cpu", device, lock, output;
  int round = 0;
  size_t slots = 32;
  std::vector<std::string> records;
  uint64_t seed = 1;
};

/// The lock's config, if it can be tried here; a config for a better device than this one cannot.
std::optional<Choice> incumbent(const PlanOptions& o, const ProblemFile& file, const Device& device) {
  if (o.lock.empty())
    return std::nullopt;
  const Lock lock = Lock::read(o.lock);
  const LockEntry* entry = lock.find(file.problem.key(), o.arch, device);
  if (!entry)
    return std::nullopt;
  std::string why = why_stale(*entry);
  if (why.empty())
    why = why_illegal(file.problem, o.arch, device, entry->choice);
  if (why.empty())
    return entry->choice;
  std::cerr << "deepgen: " << file.label() << ": the locked config is not tried: " << why << "\n";
  return std::nullopt;
}

void run_plan(const PlanOptions& o) {
  const ProblemFile file = ProblemFile::read(o.problem);
  SearchInput in;
  in.problem = file.problem;
  in.arch = o.arch;
  in.device = device_of(o.device, o.arch);
  in.round = o.round;
  in.slots = o.slots;
  in.options.seed = o.seed;
  if (o.round == 0)
    in.incumbent = incumbent(o, file, in.device);
  for (RecordLog& log : logs_of(o.records))
    in.records.insert(in.records.end(), log.records.begin(), log.records.end());
  write_if_changed(o.output, next_plan(in).serialize());
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
  c->add_option("--seed", o->seed, "seed of the random candidates")->capture_default_str();
  c->add_option("-o", o->output, "plan.json to write; left alone when unchanged")->required();
  c->footer(
      "Example:\n  deepgen plan --problem problem.json --arch cpu --device device.json --round 1 --slots 12 "
      "--records r0/records.jsonl -o r1/plan.json");
  c->callback([o] { run_plan(*o); });
}

void add_report_command(CLI::App& app, CliContext&) {
  auto records = std::make_shared<std::vector<std::string>>();
  CLI::App* c = app.add_subcommand("report", "show searches as tables: candidates, vendor library, winner");
  c->add_option("--records", *records, "record logs, any number")->required();
  c->footer("Ratios are times as fast as the default config; 95 % is the confidence interval.\n"
            "Example:\n  deepgen report --records r0/records.jsonl r1/records.jsonl final.jsonl");
  c->callback([records] { std::cout << report(logs_of(*records)); });
}

} // namespace deepgen
