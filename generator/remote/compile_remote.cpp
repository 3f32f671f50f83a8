#include "generator/remote/compile_remote.h"

#include "base/files/files.h"
#include "base/kernel/vouched.h"
#include "base/search/names.h"
#include "generator/codegen/cache_key.h"
#include "generator/codegen/compile.h"
#include "generator/lock/exchange.h"
#include "generator/remote/candidate.h"
#include "generator/remote/command_line.h"
#include "remote/call.h"

#include <filesystem>
#include <iostream>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kPlan = "plan.json";
constexpr const char* kList = "kernels.list";
constexpr double kCompileSeconds = 60, kMoreSeconds = 60;
constexpr double kMostSlots = 1000;
constexpr size_t kMostLinked = 16; ///< kernels of one function, for the time that they may take

const std::map<std::string, WordKind> kKinds = {
    {"--plan", WordKind::file},     {"--slot", WordKind::text},    {"--count", WordKind::text},
    {"--finalist", WordKind::text}, {"--records", WordKind::file}, {"--no-awkward", WordKind::flag},
    {"--choice", WordKind::file},   {"--frozen", WordKind::flag},  {"--timeout", WordKind::text},
    {"--cache", WordKind::dropped}, {"-o", WordKind::output}};

size_t whole_or(const CommandLine& line, const std::string& option, size_t otherwise) {
  return size_t(std::min(line.number_or(option, double(otherwise)), kMostSlots));
}

class RemoteCompile {
public:
  RemoteCompile(const RemoteOptions& o, const std::vector<std::string>& words)
      : o_(o), line_(words, kKinds), sites_(Sites::read(o.sites)), site_(sites_.find(o.site, o.sites)),
        cache_(CacheSettings::from_environment(line_.one_or("--cache", ""))) {}

  void run() { line_.has("--choice") ? linked() : line_.has("--finalist") ? finalist() : slots(); }

private:
  /// What the cache has of a job, as a compile would have written it.
  std::optional<std::string> found(const CompileJob& job, const CompiledParts& parts) {
    if (!cache_.on()) return std::nullopt;
    std::optional<KernelFile> file = find_cached(cache_, cache_key(job, parts), job);
    if (!file) return std::nullopt;
    file->origin = job.origin;
    return file->serialize();
  }

  /// Checks what came, and keeps it as this host's compiles are kept.
  std::string accepted(const Answer& answer, const std::string& name, const CompileJob& job,
                       const CompiledParts& parts) {
    const std::string where = "what node " + answer.where.node + " compiled";
    KernelFile file = KernelFile::parse(*answer.files.find(name), where);
    if (file.problem != job.problem || file.arch != job.arch || file.choice != job.choice)
      throw HostFault("a worker has sent another kernel than was asked for", where, file.choice.text(),
                      "report this: it is a defect");
    const std::string bytes = file.serialize();
    if (cache_.on() && worth_caching(file)) {
      file.origin = KernelFile().origin;
      cache_.store(CacheKind::kernel, cache_key(job, parts), file.serialize());
    }
    return bytes;
  }

  RemoteCall call_for(const std::string& arch, Request request, std::vector<BundleFile> files,
                      size_t jobs) const {
    request.arch = arch, request.id = compiler_id(arch);
    const double each = line_.number_or("--timeout", kCompileSeconds);
    return {site_,         Task::compile,   std::move(request), std::move(files),
            own_program(), line_.one("-o"), o_.board,           each * double(jobs) + kMoreSeconds};
  }

  void common_words(std::vector<std::string>& command) const {
    if (line_.has("--no-awkward")) command.push_back("--no-awkward");
    if (line_.has("--timeout")) command.insert(command.end(), {"--timeout", line_.one("--timeout")});
  }

  /// One request for all slots that the cache lacks: a plan of these alone.
  void slots() {
    const Plan plan = Plan::read(line_.one("--plan"));
    const size_t first = whole_or(line_, "--slot", 0), count = whole_or(line_, "--count", 1);
    const CompiledParts parts{.awkward = !line_.has("--no-awkward")};
    std::vector<std::string> bytes(count);
    std::vector<size_t> missing;
    for (size_t i = 0; i < count; ++i) {
      if (first + i >= plan.slots.size())
        bytes[i] = empty_slot(plan.problem, plan.arch).serialize();
      else if (auto known = found(CompileJob::of_slot(plan, first + i), parts))
        bytes[i] = *known;
      else
        missing.push_back(i);
    }
    if (!missing.empty()) fetch(plan, first, missing, parts, bytes);
    write(first, bytes);
  }

  void fetch(const Plan& plan, size_t first, const std::vector<size_t>& missing, const CompiledParts& parts,
             std::vector<std::string>& bytes) {
    Plan part = plan;
    part.slots.clear();
    Request request;
    for (const size_t i : missing) {
      request.outputs.push_back(slot_file_name(int64_t(part.slots.size())));
      part.slots.push_back(plan.slots[first + i]);
    }
    request.command = {"compile", "--plan", kPlan, "--slot", "0", "--count", std::to_string(missing.size()),
                       "-o",      kList};
    common_words(request.command);
    const RemoteCall c = call_for(plan.arch, request, {{kPlan, part.serialize()}}, missing.size());
    const Answer answer = call(c);
    std::cerr << answer.text;
    for (size_t n = 0; n < missing.size(); ++n)
      bytes[missing[n]] = accepted(answer, request.outputs[n], CompileJob::of_slot(part, n), parts);
  }

  void write(size_t first, const std::vector<std::string>& bytes) const {
    const std::string output = line_.one("-o");
    if (!line_.has("--count")) {
      write_if_changed(output, bytes.front());
      return;
    }
    std::string list;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::string name = slot_file_name(int64_t(first + i));
      write_if_changed((fs::path(output).parent_path() / name).string(), bytes[i]);
      list += list_line(bytes[i], name);
    }
    write_if_changed(output, list);
  }

  void finalist() {
    const CompiledParts parts{.main = false, .awkward = true};
    const size_t index = whole_or(line_, "--finalist", 0);
    const FinalistJob finalist = finalist_job(line_.many("--records"), index);
    std::string bytes = finalist.none.serialize();
    if (finalist.job) {
      if (const auto known = found(*finalist.job, parts)) {
        bytes = *known;
      } else {
        Request request;
        request.command = line_.words_in_bundle();
        request.outputs = {CommandLine::name_in_bundle(line_.one("-o"))};
        const RemoteCall c = call_for(finalist.job->arch, request, bundle_files(line_.files()), 1);
        const Answer answer = call(c);
        std::cerr << answer.text;
        bytes = accepted(answer, request.outputs.front(), *finalist.job, parts);
      }
    }
    write_if_changed(line_.one("-o"), bytes);
  }

  /// What is linked: the winner of a choice, its fallbacks and what else the choice names. That it cannot be
  /// compiled, or is not what was locked, is the answer. A frozen build takes nothing from the cache.
  void linked() {
    const ChoiceFile choice = ChoiceFile::read(line_.one("--choice"));
    const bool cached = cache_.on() && !line_.has("--frozen");
    const std::string key = "what is linked of a choice\ncompiled by " + compiler_id(choice.arch) + "\n" +
                            read_file(line_.one("--choice"));
    if (const auto known = cached ? linked_before(key, choice) : std::nullopt) {
      write_if_changed(line_.one("-o"), *known);
      return;
    }
    Request request;
    request.command = line_.words_in_bundle();
    request.outputs = {CommandLine::name_in_bundle(line_.one("-o"))};
    RemoteCall c = call_for(choice.arch, request, bundle_files(line_.files()), kMostLinked);
    c.decides = true;
    const Answer answer = call(c);
    std::cerr << answer.text;
    if (answer.failed)
      throw Error("the command failed on node " + answer.where.node + " of site '" + site_.name + "'",
                  line_.one("-o"), "it said what is above");
    const std::string& bytes = *answer.files.find(request.outputs.front());
    const KernelFile file = KernelFile::parse(bytes, "what node " + answer.where.node + " compiled");
    check_linked(file, choice, answer.where.node);
    if (cached && file.origin != kOtherCode) cache_.store(CacheKind::kernel, key, bytes);
    write_if_changed(line_.one("-o"), bytes);
  }

  std::optional<std::string> linked_before(const std::string& key, const ChoiceFile& choice) {
    const std::optional<std::string> bytes = cache_.find(CacheKind::kernel, key);
    if (!bytes) return std::nullopt;
    try {
      check_linked(KernelFile::parse(*bytes, "the cache's entry"), choice, "the cache");
      return bytes;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  static void check_linked(const KernelFile& file, const ChoiceFile& choice, const std::string& where) {
    if (file.problem != choice.problem || file.arch != choice.arch)
      throw HostFault("a worker has sent another kernel than was asked for", where, file.choice.text(),
                      "report this: it is a defect");
  }

  const RemoteOptions& o_;
  const CommandLine line_;
  const Sites sites_;
  const Site& site_;
  Cache cache_;
};

} // namespace

void compile_remotely(const RemoteOptions& o, const std::vector<std::string>& words) {
  RemoteCompile(o, words).run();
}

} // namespace deepgen
