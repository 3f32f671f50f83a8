// sweep plan, sweep pack, replay
#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "base/text/numbers.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/replay/replay.h"
#include "generator/replay/sweep.h"
#include "generator/search/strategy.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

namespace deepgen {
namespace {

struct SweepCommand {
  std::string problem, arch = "cpu", device, output;
  SweepOptions sweep;
  std::vector<std::string> records;
  int64_t planned = 0;
};

void plan_sweep(const SweepCommand& c) {
  const Problem problem = problem_of(c.problem);
  const Device device = device_of(c.device, c.arch);
  const std::vector<Plan> plans = sweep_plans(problem, c.arch, device, c.sweep, logs_of(c.records));
  size_t configs = 0;
  for (const Plan& plan : plans) {
    char folder[32];
    std::snprintf(folder, sizeof folder, "/r%04d", plan.round);
    write_if_changed(c.output + folder + "/plan.json", plan.serialize());
    configs += plan.slots.size();
  }
  std::printf("%zu configs in %zu plans\n", configs, plans.size());
}

void pack_sweep(const SweepCommand& c) {
  const RecordedSpace space =
      pack(problem_of(c.problem), device_of(c.device, c.arch), logs_of(c.records), c.planned);
  space.write(c.output);
  size_t timed = 0;
  for (const RecordedConfig& config : space.configs) timed += config.timed();
  std::printf("%zu configs, %zu of them timed\n", space.configs.size(), timed);
  if (space.cut_off())
    std::printf("the sweep is not complete: %lld of its %lld configs are measured\n",
                static_cast<long long>(space.measured), static_cast<long long>(space.planned));
}

struct ReplayCommand {
  std::string space;
  ReplayOptions options;
  int64_t trials = 200;
  bool json = false, incomplete = false;
};

Json to_json(const ReplayCommand& c, const Replay& replay, const ReplaySummary& summary) {
  Json points = Json::array();
  for (const RegretPoint& p : summary.points)
    points.push_back({{"trials", p.trials},
                      {"median", p.median},
                      {"p90", p.p90},
                      {"within_half_percent", p.within_half},
                      {"within_two_percent", p.within_two}});
  return {{"schema", "deepgen.replay/1"},
          {"space", c.space},
          {"complete", !replay.cut_off()},
          {"configs", replay.space().size()},
          {"no_longer_legal", replay.illegal()},
          {"default_regret", replay.default_ratio() / replay.best_ratio() - 1},
          {"best_by_estimate", replay.best_rank()},
          {"strategy", c.options.search.strategy},
          {"seeds", c.options.seeds},
          {"trials", summary.trials},
          {"regret", points}};
}

void print(const ReplayCommand& c, const Replay& replay, const ReplaySummary& summary) {
  std::printf(
      "%zu recorded configs; the default is %.2f %% slower than the best, whose estimate is number %zu\n",
      replay.space().size(), 100 * (replay.default_ratio() / replay.best_ratio() - 1),
      replay.best_rank() + 1);
  if (replay.cut_off()) std::printf("the sweep is not complete: the best of the space may be another one\n");
  if (replay.illegal()) std::printf("%zu more are no longer legal and left out\n", replay.illegal());
  std::printf("strategy %s, %lld seeds, %.0f trials (median)\n", c.options.search.strategy.c_str(),
              static_cast<long long>(c.options.seeds), summary.trials);
  std::printf("%8s  %14s  %10s  %14s  %12s\n", "trials", "regret: median", "p90", "within 0.5 %",
              "within 2 %");
  for (const RegretPoint& p : summary.points)
    std::printf("%8zu  %12.2f %%  %8.2f %%  %12.0f %%  %10.0f %%\n", p.trials, 100 * p.median, 100 * p.p90,
                100 * p.within_half, 100 * p.within_two);
}

RecordedSpace space_of(const ReplayCommand& c) {
  require_file(
      c.space, "the recorded space does not exist",
      "correct the path, or record one with scripts/sweep.sh; benchmarks/search of the source has some");
  const RecordedSpace space = RecordedSpace::read(c.space);
  if (space.cut_off() && !c.incomplete)
    throw Error("the sweep of this space is not complete", c.space,
                std::to_string(space.measured) + " of its " + std::to_string(space.planned) +
                    " configs are measured, and the best one may be among the others",
                "let scripts/sweep.sh go on, or pass --incomplete");
  return space;
}

void run_replay(const ReplayCommand& c) {
  const Replay replay(space_of(c));
  ReplayOptions options = c.options;
  options.search.trials = c.trials;
  std::vector<ReplayedSearch> searches;
  for (int64_t i = 0; i < options.seeds; ++i)
    searches.push_back(replay.run(options, options.search.seed + uint64_t(i)));
  const ReplaySummary summary = summarize(replay, searches);
  if (c.json)
    std::cout << to_json(c, replay, summary).dump() << "\n";
  else
    print(c, replay, summary);
}

void add_target(CLI::App& app, SweepCommand& c) {
  app.add_option("--problem", c.problem, "problem key or problem.json")->required();
  app.add_option("--arch", c.arch, "arch")->capture_default_str();
  app.add_option("--device", c.device, "device.json; this host's device if absent");
}

} // namespace

void add_sweep_command(CLI::App& app, CliContext&) {
  CLI::App* sweep = app.add_subcommand("sweep", "record a whole space, to replay searches on it");
  sweep->require_subcommand(1);
  sweep->footer("scripts/sweep.sh does all of it.");
  auto c = std::make_shared<SweepCommand>();

  CLI::App* plan =
      sweep->add_subcommand("plan", "plans of the whole space in random order, as FOLDER/rNNNN/plan.json");
  add_target(*plan, *c);
  plan->add_option("--include", c->sweep.search.include,
                   "regular expression that a config's text must match");
  plan->add_option("--exclude", c->sweep.search.exclude, "regular expression that it must not match");
  plan->add_option("--chunk", c->sweep.chunk, "configs in a plan")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  plan->add_option("--seed", c->sweep.seed, "of the order")->capture_default_str();
  plan->add_option("--again", c->records,
                   "record logs of the sweep: plans only the best of them, to time these again");
  plan->add_option("--within", c->sweep.within,
                   "with --again: up to so much slower than the best, 0.05 is 5 %")
      ->capture_default_str()
      ->check(within(0, 1000));
  plan->add_option("--first", c->sweep.first_round, "number of the first plan")->capture_default_str();
  plan->add_option("-o", c->output, "folder to write to")->required();
  plan->footer("Example:\n  deepgen sweep plan --problem problem.json --device device.json --include 'isa=4' "
               "-o sweep");
  plan->callback([c] { plan_sweep(*c); });

  CLI::App* pack = sweep->add_subcommand("pack", "record logs into one compressed recorded space");
  add_target(*pack, *c);
  pack->add_option("--records", c->records, "the record logs")->required();
  pack->add_option("--planned", c->planned,
                   "configs of the sweep, as `sweep plan` prints them: tells whether it is complete")
      ->check(CLI::PositiveNumber);
  pack->add_option("-o", c->output, "file to write (.space.zst)")->required();
  pack->footer("Example:\n  deepgen sweep pack --problem problem.json --device device.json --records "
               "sweep/r*/records.jsonl "
               "-o ffn.space.zst");
  pack->callback([c] { pack_sweep(*c); });
}

void add_replay_command(CLI::App& app, CliContext&) {
  auto c = std::make_shared<ReplayCommand>();
  SearchOptions& search = c->options.search;
  CLI::App* r =
      app.add_subcommand("replay", "run a search strategy against a recorded space and print its regret");
  r->add_option("space", c->space, "a recorded space")->required();
  std::string strategies_text;
  for (const Strategy& s : strategies()) strategies_text += std::string("\n  ") + s.name + ": " + s.what;
  r->add_option("--strategy", search.strategy, "one of:" + strategies_text)->capture_default_str();
  r->add_option("--seeds", c->options.seeds, "searches, each with a seed of its own")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  r->add_option("--seed", search.seed, "the first seed")->capture_default_str();
  r->add_option("--trials", c->trials, "of each search, at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  r->add_option("--patience", search.patience, "trials without progress that end a search; 0: none do")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* slots =
      r->add_option("--slots", c->options.slots, "of each round, as in CMake: --slots 32 12 4")
          ->check(CLI::Range(1, 1000));
  r->add_option("--batch", c->options.batch, "slots of every round, as many rounds as there are trials for")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->excludes(slots);
  r->add_flag("--incomplete", c->incomplete, "take also a space whose sweep was cut off");
  r->add_flag("--json", c->json, "print JSON");
  r->footer(
      "Regret is how much slower the best found is than the best of the whole space.\n"
      "Example:\n  deepgen replay benchmarks/search/cpu_f32_128_nn.space.zst --strategy gbt --seeds 50");
  r->callback([c] { run_replay(*c); });
}

} // namespace deepgen
