#include "generator/bundle/bundle.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/kernel/vouched.h"
#include "base/text/sha256.h"
#include "base/text/text.h"
#include "generator/bundle/bundled_sources.h"
#include "generator/embed/embed_text.h"
#include "runtime/include/deepgen/abi.h"

#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kBundleSchema = "deepgen.bundle/1";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kSums = "SHA256SUMS"; ///< as `sha256sum -c` reads it

/// It becomes names of files, of targets of CMake and of a package, and a part of their commands.
void check_bundle_name(const std::string& name, const std::string& version) {
  if (!is_word(name) || name.starts_with("-") || name.starts_with("."))
    throw Error("the library's name cannot be that of a package", visible(name),
                "letters, digits and _-.+ only, and neither - nor . first", "name the target otherwise");
  const bool good = !version.empty() && version.find_first_not_of("0123456789.") == std::string::npos &&
                    version.front() != '.' && version.back() != '.' &&
                    version.find("..") == std::string::npos;
  if (!good) throw Error("not a version", visible(version), "", "pass numbers with dots, such as 1.2.0");
}

Json kernel_of(const LinkedKernel& linked, const BundleInput& in) {
  const Kernel& k = *linked.kernel;
  const auto made_by = in.toolchain.find(k.sha256);
  Json json = {{"arch", linked.file->arch}, {"role", k.role}};
  if (linked.file->arch == "cpu")
    json["level"] = k.isa;
  else
    json["target"] = k.target;
  if (!k.device.empty()) json["device"] = k.device;
  json["config"] = k.choice.text();
  json["origin"] = linked.file->origin;
  json["verified"] = linked.verified || vouched_for(*linked.file, k);
  json["sha256"] = k.sha256;
  json["bytes"] = k.code.size() + k.ptx.size();
  json["toolchain"] = made_by == in.toolchain.end() ? "" : made_by->second;
  return json;
}

std::string manifest(const BundleInput& in) {
  Json functions = Json::array();
  for (const LibraryFunction& f : in.library.functions) {
    Json kernels = Json::array();
    for (const LinkedKernel& k : linked_kernels(f)) kernels.push_back(kernel_of(k, in));
    functions.push_back({{"name", symbol(f)}, {"problem", f.file.problem.key()}, {"kernels", kernels}});
  }
  const Json json = {{"schema", kBundleSchema},    {"name", in.library.target}, {"version", in.version},
                     {"deepgen", DEEPGEN_VERSION}, {"abi", DEEPGEN_ABI},        {"functions", functions}};
  return json.dump(1) + "\n";
}

std::string replaced(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find("@" + name + "@", at)) != std::string::npos; at += value.size())
      text.replace(at, name.size() + 2, value);
  return text;
}

std::string sources_list(const std::map<std::string, std::string>& files, const std::string& own) {
  std::string list;
  for (const auto& [path, text] : files)
    if (path.ends_with(".cpp") && path != own) list += (list.empty() ? "" : "\n  ") + path;
  return list;
}

std::string functions_list(const BundleInput& in) {
  std::string list;
  for (const LibraryFunction& f : in.library.functions)
    list += "* `" + symbol(f) + "`: " + f.file.problem.key() + "\n";
  return list;
}

void add_file(std::map<std::string, std::string>& files, const std::string& path, const std::string& text) {
  if (!files.emplace(path, for_bundle(text)).second)
    throw Error("two files of a bundle have one name", path, "", "name the target or the header otherwise");
}

/// The files that the folder's earlier bundle had; empty for an empty folder or none.
std::set<std::string> earlier_files(const std::string& folder) {
  std::error_code absent;
  if (!fs::exists(folder, absent) || fs::is_empty(folder, absent)) return {};
  const std::string manifest = folder + "/" + kManifest, sums = folder + "/" + kSums;
  const std::string remedy = "pass an empty folder, or that of an earlier bundle";
  if (!file_exists(manifest) || !file_exists(sums))
    throw Error("the folder is not empty, and no bundle", folder, "", remedy);
  check_schema(parse_json(read_file(manifest), manifest), kBundleSchema, manifest);
  std::set<std::string> files;
  const std::string text = read_file(sums);
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.size() > 66) files.insert(line.substr(66));
  }
  return files;
}

/// Below the folder, whatever its list of files says.
bool is_inside(const std::string& path) {
  const fs::path p = path;
  for (const fs::path& part : p)
    if (part == "..") return false;
  return p.is_relative();
}

} // namespace

std::map<std::string, std::string> bundle_files(const BundleInput& in) {
  const std::string& name = in.library.target;
  check_bundle_name(name, in.version);
  validate(in.library);
  std::map<std::string, std::string> files = bundled_runtime();
  const std::string header = in.library.header_name, source = name + ".cpp";
  std::string public_headers = header;
  add_file(files, header, embed_header(in.library));
  add_file(files, source, embed_source(in.library));
  for (const auto& [path, text] : in.headers) {
    add_file(files, path, text);
    public_headers += " " + path;
  }
  const std::map<std::string, std::string> values = {{"name", name},
                                                     {"version", in.version},
                                                     {"deepgen", DEEPGEN_VERSION},
                                                     {"source", source},
                                                     {"header", header},
                                                     {"headers", public_headers},
                                                     {"functions", functions_list(in)},
                                                     {"sources", sources_list(files, source)}};
  for (const auto& [path, text] : bundled_frame())
    files[path.starts_with("NAME") ? name + path.substr(4) : path] = replaced(text, values);
  files[kManifest] = manifest(in);
  std::string sums;
  for (const auto& [path, text] : files) sums += sha256_hex(text) + "  " + path + "\n";
  files[kSums] = sums;
  return files;
}

void write_bundle(const std::string& folder, const std::map<std::string, std::string>& files) {
  std::set<std::string> gone = earlier_files(folder);
  for (const auto& [path, text] : files) {
    gone.erase(path);
    write_if_changed(folder + "/" + path, text);
  }
  for (const std::string& path : gone)
    if (is_inside(path)) fs::remove(folder + "/" + path);
}

} // namespace deepgen
