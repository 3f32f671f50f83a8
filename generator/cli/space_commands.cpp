// space list, count, explain, save; top
#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/cli/search_flags.h"
#include "generator/space/space.h"
#include "generator/space/space_rules.h"
#include "generator/space/top.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

namespace deepgen {
namespace {

struct SpaceOptions {
  std::string problem, arch = "cpu", device, config, output;
  size_t limit = 20;
  SearchFlags search;
};

struct Target {
  Problem problem;
  Device device;
};

Target target_of(const SpaceOptions& o) { return {problem_of(o.problem), device_of(o.device, o.arch)}; }

Space space_of(const SpaceOptions& o, const Target& target) {
  Space space(target.problem, o.arch, target.device, search_options(o.search, target.problem, o.arch));
  for (const std::string& note : space.notes()) std::cerr << "deepgen: " << note << "\n";
  return space;
}

void print_list(const SpaceOptions& o) {
  const Space space = space_of(o, target_of(o));
  space.default_choice(); // throws, with what leaves nothing
  const size_t count = o.limit == 0 ? space.size() : std::min(o.limit, space.size());
  std::printf("%6s  %12s  config\n", "rank", "estimate/s");
  for (size_t i = 0; i < count; ++i)
    std::printf("%6zu  %12.3e  %s\n", i, space.cost(i), space.choice(i).text().c_str());
  if (count < space.size()) std::printf("... %zu of %zu; --limit 0 shows all\n", count, space.size());
}

void print_count(const SpaceOptions& o) {
  const Space space = space_of(o, target_of(o));
  for (const Family& f : space.families())
    std::cout << f.source->name() << ": " << f.legal << " legal of " << f.raw << "\n";
  std::cout << "total: " << space.size() << "\n";
}

void print_parameters(const Target& target, const std::string& arch) {
  for (const Template* t : templates()) {
    const std::string why = t->why_not(target.problem, arch);
    std::cout << t->name() << ", revision " << t->revision() << (why.empty() ? "" : ": not served: " + why)
              << "\n";
    if (!why.empty()) continue;
    for (const Parameter& p : t->parameters(target.problem, target.device))
      std::cout << "  " << p.name << ": " << p.doc << "\n    " << values_text(p) << "\n";
  }
}

void print_legality(const Target& target, const SpaceOptions& o, const Choice& choice) {
  const std::string why = why_illegal(target.problem, o.arch, target.device, choice);
  if (!why.empty()) {
    std::cout << "illegal: " << why << "\n";
    return;
  }
  const Space space(target.problem, o.arch, target.device, {}, choice);
  const auto rank = space.rank(choice);
  if (!rank && target.problem.ranged()) { // the space is that of the largest call
    std::cout << "legal: for calls smaller than the largest\n";
    return;
  }
  if (!rank)
    throw Error("a legal config is missing from the space", choice.text(), "a defect of its template");
  std::printf("legal: rank %zu of %zu, estimated %.3e s\n", *rank, space.size(), space.cost(*rank));
  std::fflush(stdout);
}

void print_explanation(const SpaceOptions& o) {
  const Target target = target_of(o);
  if (o.config.empty()) return print_parameters(target, o.arch);
  const Choice choice = choice_of(o.config, target.problem, o.arch);
  print_legality(target, o, choice);
  const Template& family = find_template(choice.template_name);
  std::cout << "revision " << family.revision_for(target.problem, choice.config) << " of " << family.name()
            << "\n";
}

void save(const SpaceOptions& o) {
  const Target target = target_of(o);
  const Space space = space_of(o, target);
  space.default_choice(); // throws when no config is legal
  const size_t count = o.limit == 0 ? space.size() : std::min(o.limit, space.size());
  SavedSpace saved;
  for (size_t i = 0; i < count; ++i) saved.entries.push_back({target.problem.key(), o.arch, space.choice(i)});
  write_if_changed(o.output, saved.serialize());
  std::cerr << "deepgen: " << count << " of " << space.size() << " configs in " << o.output << "\n";
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
  add_search_file(*list, o->search);
  list->footer("Example:\n  deepgen space list --problem problem.json --limit 5");
  list->callback([o] { print_list(*o); });

  CLI::App* count = add(*space, "count", "how many configs each template offers and how many are legal", o);
  add_search_file(*count, o->search);
  count->footer("Example:\n  deepgen space count --problem problem.json --device device.json");
  count->callback([o] { print_count(*o); });

  CLI::App* explain =
      add(*space, "explain", "which constraint a config breaks; without --config the parameters", o);
  explain->add_option("--config", o->config, "\"template parameter=value ...\"");
  explain->footer("Example:\n  deepgen space explain --problem problem.json --config \"isa=4 mr=31 nr=64\"");
  explain->callback([o] { print_explanation(*o); });

  CLI::App* saving =
      add(*space, "save", "write what a search file leaves as a space that a search file can name", o);
  saving->add_option("--limit", o->limit, "the best so many by estimate; 0 for all (default: 0)");
  add_search_file(*saving, o->search);
  saving->add_option("-o", o->output, "space.json to write")->required();
  saving->footer("Example:\n  deepgen space save --problem problem.json --search search.json --limit 1000 -o "
                 "space.json");
  saving->callback([o, saving] {
    if (saving->count("--limit") == 0) o->limit = 0;
    save(*o);
  });
}

void add_top_command(CLI::App& app, CliContext&) {
  struct Options {
    std::vector<std::string> records;
    std::string output;
    size_t count = 8;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      app.add_subcommand("top", "write the best configs of searches as a space, to be tested again");
  c->add_option("--records", o->records, "record logs of searches, any number")->required();
  c->add_option("-k", o->count, "how many of each problem and arch, beside the default config")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  c->add_option("-o", o->output, "space.json to write")->required();
  c->footer(
      "Example:\n  deepgen top --records r0/records.jsonl r1/records.jsonl final.jsonl -k 8 -o top.json");
  c->callback([o] {
    const SavedSpace space = top_of(logs_of(o->records), o->count);
    if (space.entries.empty())
      throw Error("no correct and timed config in the records", o->records.front(), "",
                  "let the search finish");
    write_if_changed(o->output, space.serialize());
    std::cerr << "deepgen: " << space.entries.size() << " configs in " << o->output << "\n";
  });
}

} // namespace deepgen
