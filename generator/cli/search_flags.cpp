#include "generator/cli/search_flags.h"

#include "base/text/error.h"
#include "generator/cli/inputs.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace deepgen {

void add_search_file(CLI::App& app, SearchFlags& f) {
  app.add_option("--search", f.file, "search file: what may be tried (docs/reference/formats.md)");
}

void add_search_flags(CLI::App& app, SearchFlags& f) {
  add_search_file(app, f);
  app.add_option("--strategy", f.strategy, "how candidates are chosen")
      ->check(CLI::IsMember(search_strategies()));
  app.add_option("--seed", f.seed, "seed of what is chosen at random (default: 1)");
  app.add_option("--trials", f.trials, "candidates in all rounds together, at most")
      ->check(CLI::Range(1, 100000));
  app.add_option("--patience", f.patience,
                 "the search ends after so many, behind round 0 and in two rounds at least, that were no "
                 "faster; 0: never (default: 64)")
      ->check(CLI::Range(0, 100000));
}

SearchOptions search_options(const SearchFlags& f, const Problem& problem, const std::string& arch) {
  if (!f.file.empty())
    require_file(
        f.file, "the search file does not exist",
        "correct the path of --search, or leave it out; \"Search files\" in docs/search.md has an example");
  SearchOptions o = f.file.empty() ? SearchOptions() : SearchOptions::read(f.file);
  o.strategy = f.strategy.value_or(o.strategy);
  o.seed = f.seed.value_or(o.seed);
  o.patience = f.patience.value_or(o.patience);
  if (f.trials) o.trials = f.trials;
  if (o.space.empty()) return o;
  const std::string path = std::filesystem::path(f.file).parent_path() / o.space;
  require_file(path, "the saved space does not exist",
               "correct 'space' in " + f.file +
                   ", whose folder the path is relative to, or save one with `deepgen space save`");
  o.configs = SavedSpace::read(path).configs_for(problem.key(), arch);
  if (o.configs.empty())
    throw Error("the saved space has no config for this problem", path, problem.key() + " on " + arch,
                "save one with `deepgen space save` or `deepgen top`, or remove 'space' from " + f.file);
  return o;
}

} // namespace deepgen
