// space list, count, explain
#include "base/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/space.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

namespace deepgen {
namespace {

struct SpaceOptions {
  std::string problem, arch = "cpu", device, config;
  size_t limit = 20;
};

struct Target {
  Problem problem;
  Device device;
};

Target target_of(const SpaceOptions& o) { return {problem_of(o.problem), device_of(o.device, o.arch)}; }

void print_list(const SpaceOptions& o) {
  const Target target = target_of(o);
  const Space space(target.problem, o.arch, target.device);
  const size_t count = o.limit == 0 ? space.size() : std::min(o.limit, space.size());
  std::printf("%6s  %12s  config\n", "rank", "estimate/s");
  for (size_t i = 0; i < count; ++i)
    std::printf("%6zu  %12.3e  %s\n", i, space.cost(i), space.choice(i).text().c_str());
  if (count < space.size())
    std::printf("... %zu of %zu; --limit 0 shows all\n", count, space.size());
}

void print_count(const SpaceOptions& o) {
  const Target target = target_of(o);
  const Space space(target.problem, o.arch, target.device);
  for (const Family& f : space.families())
    std::cout << f.source->name() << ": " << f.legal << " legal of " << f.raw << "\n";
  std::cout << "total: " << space.size() << "\n";
}

void print_parameters(const Target& target, const std::string& arch) {
  for (const Template* t : templates()) {
    const std::string why = t->why_not(target.problem, arch);
    std::cout << t->name() << ", revision " << t->revision() << (why.empty() ? "" : ": not served: " + why)
              << "\n";
    if (!why.empty())
      continue;
    for (const Parameter& p : t->parameters(target.problem, target.device)) {
      std::cout << "  " << p.name << ": " << p.doc << "\n   ";
      for (int64_t value : p.values)
        std::cout << " " << value;
      std::cout << "\n";
    }
  }
}

void print_explanation(const SpaceOptions& o) {
  const Target target = target_of(o);
  if (o.config.empty())
    return print_parameters(target, o.arch);
  const Choice choice = choice_of(o.config, target.problem, o.arch);
  const std::string why = why_illegal(target.problem, o.arch, target.device, choice);
  if (!why.empty()) {
    std::cout << "illegal: " << why << "\n";
    return;
  }
  const Space space(target.problem, o.arch, target.device);
  const auto rank = space.rank(choice);
  if (!rank)
    throw Error("a legal config is missing from the space", choice.text(), "a defect of its template");
  std::printf("legal: rank %zu of %zu, estimated %.3e s\n", *rank, space.size(), space.cost(*rank));
}

CLI::App* add(CLI::App& space, const char* name, const char* text, const std::shared_ptr<SpaceOptions>& o) {
  CLI::App* c = space.add_subcommand(name, text);
  c->add_option("--problem", o->problem, "problem key or problem.json")->required();
  c->add_option("--arch", o->arch, "arch")->capture_default_str();
  c->add_option("--device", o->device, "device.json; this host's device if absent");
  return c;
}

} // namespace

void add_space_command(CLI::App& app, CliContext&) {
  CLI::App* space = app.add_subcommand("space", "the legal configs of a problem");
  space->require_subcommand(1);
  space->footer("Example:\n  deepgen space count --problem problem.json");
  auto o = std::make_shared<SpaceOptions>();

  CLI::App* list = add(*space, "list", "the configs, best estimate first", o);
  list->add_option("--limit", o->limit, "how many; 0 for all")->capture_default_str();
  list->footer("Example:\n  deepgen space list --problem problem.json --limit 5");
  list->callback([o] { print_list(*o); });

  CLI::App* count = add(*space, "count", "how many configs each template offers and how many are legal", o);
  count->footer("Example:\n  deepgen space count --problem problem.json --device device.json");
  count->callback([o] { print_count(*o); });

  CLI::App* explain =
      add(*space, "explain", "which constraint a config breaks; without --config the parameters", o);
  explain->add_option("--config", o->config, "\"template parameter=value ...\"");
  explain->footer("Example:\n  deepgen space explain --problem problem.json --config \"isa=4 mr=31 nr=64\"");
  explain->callback([o] { print_explanation(*o); });
}

} // namespace deepgen
