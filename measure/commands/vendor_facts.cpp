#include "measure/commands/vendor_facts.h"

#include "base/search/vendor_call.h"
#include "base/text/error.h"
#include "measure/vendor/gpu/cudnn_library.h"

namespace deepgen {
namespace {

/// The hold-out's vendor; nullptr when none was timed there.
Json* timed_vendor(ContestResult& r) {
  Json& environment = r.log.environment;
  if (!environment.contains("holdout") || !environment["holdout"].contains("vendor")) return nullptr;
  return &environment["holdout"]["vendor"];
}

void add(Json& vendor, const VendorCall& call, const std::string& why_not) {
  if (why_not.empty())
    vendor["call"] = to_json(call);
  else
    vendor["no_call"] = why_not;
}

/// "13.1.0" of "cublaslt 13.1.0", and "1.2.3" of "hipblaslt 1.2.3, rocblas 5.0.0".
std::string version_of(const std::string& name) {
  const std::string behind = name.substr(name.find(' ') + 1);
  return behind.substr(0, behind.find_first_of(", "));
}

std::string why_not_whole(const cuda::VendorPlan& plan, const cuda::Vendor::Algorithm& algorithm) {
  if (plan.separate()) return "the library's fastest call needs a kernel behind it for " + plan.left();
  if (algorithm.halves || algorithm.library != cuda::VendorPlan::lt || plan.library != cuda::VendorPlan::lt)
    return "the fastest are several calls, or another library's";
  if (plan.tf32_as_f32) return "the library multiplies tf32 as f32 here";
  return "";
}

} // namespace

void add_vendor_call(ContestResult& r, const Problem& problem, const std::string& arch,
                     const cuda::Vendor& vendor) {
  Json* facts = timed_vendor(r);
  if (!facts || !r.finals.vendor_arm || *r.finals.vendor_arm >= vendor.algorithms.size()) return;
  const cuda::Vendor::Algorithm& algorithm = vendor.algorithms[*r.finals.vendor_arm];
  std::string why = why_no_call(problem, arch);
  if (why.empty()) why = why_not_whole(vendor.plan, algorithm);
  add(*facts,
      {vendor_library(arch), version_of(vendor.name), algorithm_hex(algorithm.bits), algorithm.text,
       int64_t(algorithm.workspace), ""},
      why);
}

void add_vendor_call(ContestResult& r, const Problem& problem, const std::string& baseline) {
  Json* facts = timed_vendor(r);
  if (facts) add(*facts, {"openblas", version_of(baseline), "", "", 0, ""}, why_no_call(problem, "cpu"));
}

std::string cudnn_text() {
  try {
    const cuda::CudnnLibrary library = cuda::CudnnLibrary::open();
    if (library.file.empty()) return library.why_not + "; the vendor baseline of attention on NVIDIA GPUs";
    return library.file + ", " + (library.why_not.empty() ? library.version : library.why_not);
  } catch (const HostFault& e) { // for lack of memory too it is only said
    return e.what();
  }
}

std::vector<std::string> vendor_notes(const cuda::Vendor& v) {
  std::vector<std::string> notes;
  if (!v.why_not.empty()) notes.push_back("no vendor baseline: " + v.why_not);
  if (!v.left_out.empty() && !v.algorithms.empty())
    notes.push_back(v.name + ": " + std::to_string(v.left_out.size()) + " of " +
                    std::to_string(v.left_out.size() + v.algorithms.size()) + " configs left out, such as " +
                    v.left_out.front());
  return notes;
}

} // namespace deepgen
