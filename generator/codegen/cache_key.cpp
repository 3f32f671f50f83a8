#include "generator/codegen/cache_key.h"

#include "generator/codegen/compile.h"
#include "templates/core/template.h"

namespace deepgen {

int64_t revision_of(const Problem& problem, const Choice& choice) {
  for (const Template* t : templates())
    if (t->name() == choice.template_name) return t->revision_for(problem, choice.config);
  return 0;
}

std::string kernel_cache_key(const Problem& problem, const std::string& arch, const Choice& choice,
                             bool awkward, bool fallbacks, bool reject) {
  const auto flag = [](const char* name, bool set) { return std::string(" ") + name + (set ? "=1" : "=0"); };
  return "compiled by " + compiler_id(arch) + "\nproblem " + problem.key() + "\narch " + arch + "\nconfig " +
         choice.text() + "\nrevision " + std::to_string(revision_of(problem, choice)) + "\noptions" +
         flag("awkward", awkward) + flag("fallbacks", fallbacks) + flag("reject", reject) + "\n";
}

bool worth_caching(const KernelFile& file) {
  return file.status == "ok" || (file.status == "failed" && file.detail.starts_with(kRejected));
}

} // namespace deepgen
