// cache stats, cache clear
#include "base/files/cache.h"
#include "base/json/json.h"
#include "base/kernel/config.h"
#include "generator/cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

namespace deepgen {
namespace {

struct CacheOptions {
  std::string folder;
  bool json = false;
};

Json to_json(const CacheSettings& settings, const CacheStats& stats) {
  Json kinds = Json::object();
  int64_t hits = 0, misses = 0;
  for (size_t i = 0; i < kCacheKinds.size(); ++i) {
    const CacheCounters::Kind& counts = stats.counters.kinds[i];
    kinds[kCacheKinds[i]] = {{"entries", stats.kinds[i].entries},
                             {"bytes", stats.kinds[i].bytes},
                             {"hits", counts.hits},
                             {"misses", counts.misses},
                             {"stored", counts.stored}};
    hits += counts.hits, misses += counts.misses;
  }
  return {{"schema", "deepgen.cache-stats/1"},
          {"folder", settings.folder},
          {"limit", settings.limit},
          {"entries", stats.entries()},
          {"bytes", stats.bytes()},
          {"hits", hits},
          {"misses", misses},
          {"evicted", stats.counters.evicted},
          {"damaged", stats.counters.damaged},
          {"kinds", kinds}};
}

std::string size_text(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double number = double(bytes);
  size_t unit = 0;
  for (; number >= 1024 && unit + 1 < std::size(units); ++unit) number /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
  return text;
}

void print_table(const CacheSettings& settings, const CacheStats& stats) {
  std::printf("%s: %s of %s\n", settings.folder.c_str(), size_text(stats.bytes()).c_str(),
              size_text(settings.limit).c_str());
  std::printf("%-8s %9s %12s %9s %9s %9s\n", "", "entries", "size", "hits", "misses", "stored");
  for (size_t i = 0; i < kCacheKinds.size(); ++i) {
    const CacheCounters::Kind& counts = stats.counters.kinds[i];
    std::printf("%-8s %9lld %12s %9lld %9lld %9lld\n", kCacheKinds[i],
                static_cast<long long>(stats.kinds[i].entries), size_text(stats.kinds[i].bytes).c_str(),
                static_cast<long long>(counts.hits), static_cast<long long>(counts.misses),
                static_cast<long long>(counts.stored));
  }
  std::printf("evicted %lld, damaged %lld\n", static_cast<long long>(stats.counters.evicted),
              static_cast<long long>(stats.counters.damaged));
}

/// What a person should know who looks at a cache that is off, or cannot keep anything.
std::string note(Cache& cache) {
  if (!cache.why_refused().empty())
    return "the cache " + cache.settings().folder + " is not used: " + cache.why_refused();
  if (!cache.on()) return "the cache is off: DEEPGEN_CACHE=off, or there is no home folder";
  const std::string why = cache.why_no_store();
  return why.empty() ? "" : "nothing new is kept in " + cache.settings().folder + ": " + why;
}

void show(Cache& cache, bool json) {
  if (const std::string text = note(cache); !text.empty()) std::cerr << "deepgen: " << text << "\n";
  const CacheStats stats = cache.stats();
  if (json)
    std::cout << to_json(cache.settings(), stats).dump() << "\n";
  else if (cache.on())
    print_table(cache.settings(), stats);
}

CLI::App* add(CLI::App& parent, const char* name, const char* text, const std::shared_ptr<CacheOptions>& o) {
  CLI::App* c = parent.add_subcommand(name, text);
  c->add_option("--cache", o->folder, "folder of the cache; else DEEPGEN_CACHE_DIR or the user's");
  c->add_flag("--json", o->json, "print one line of JSON");
  return c;
}

} // namespace

void add_cache_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<CacheOptions>();
  CLI::App* c = app.add_subcommand("cache", "what builds have kept for later ones: kernels, verdicts, times");
  c->require_subcommand(1);
  c->footer("Example:\n  deepgen cache stats --json");
  add(*c, "stats", "entries, their size, and how often they were found", o)->callback([o] {
    Cache cache(CacheSettings::from_environment(o->folder));
    show(cache, o->json);
  });
  add(*c, "clear", "remove all entries and set the counts to 0; prints the stats from before", o)
      ->callback([o] {
        Cache cache(CacheSettings::from_environment(o->folder));
        show(cache, o->json);
        cache.clear();
        if (!o->json && cache.on()) std::printf("all of it is removed\n");
      });
}

} // namespace deepgen
