// What is generated from locks and kernel files: whatever their texts are, the header and the source of a
// library are the ones that plain texts give, but for what is inside comments and literals.
#include "generator/embed/embed.h"
#include "base/kernel/device.h"
#include "generator/lock/lock.h"
#include "tests/fuzz/c_skeleton.h"
#include "tests/fuzz/target.h"

#include <cctype>

namespace deepgen {
namespace {

/// Other letters for every byte, so that different texts stay different.
std::string plain(const std::string& text) {
  std::string out;
  for (unsigned char c : text)
    out += c == '\n' ? std::string("\n") : std::string{char('a' + c / 16), char('a' + c % 16)};
  return out;
}

/// The library with all texts that come from files replaced, but for those that choose what is generated. The
/// guard of the header is made from the letters and digits of the target's name, so they stay.
Library plain(Library l) {
  for (char& c : l.target)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  for (LibraryFunction& f : l.functions) {
    for (LinkedCall& x : f.calls) // the version chooses whether there is a call
      x.device = plain(x.device), x.call.device = plain(x.call.device), x.call.text = plain(x.call.text);
    for (KernelFile& file : f.kernels)
      for (Kernel& k : file.kernels) {
        k.choice = {"plain", {}};
        k.device = plain(k.device), k.ptx = plain(k.ptx), k.target = plain(k.target);
        for (Launch& launch : k.launches) launch.entry = plain(launch.entry);
      }
  }
  return l;
}

void check(const Library& hostile) {
  std::optional<std::string> header, source;
  try {
    header = embed_header(hostile), source = embed_source(hostile);
  } catch (const Error&) { // an argument that no kernel has
    return;
  }
  const Library good = plain(hostile);
  for (bool trigraphs : {false, true}) {
    fuzz::require(c_skeleton(*header, trigraphs) == c_skeleton(embed_header(good), trigraphs),
                  "a text leaves its comment in the header");
    fuzz::require(c_skeleton(*source, trigraphs) == c_skeleton(embed_source(good), trigraphs),
                  "a text leaves its place in the source");
  }
}

LibraryFunction function(const Problem& p, KernelFile file) {
  LibraryFunction f;
  f.file.name = "f", f.file.ns = "fuzz", f.file.problem = p;
  f.kernels = {std::move(file)};
  return f;
}

KernelFile compiled(const LockEntry& e, const Problem& p) {
  Kernel k;
  k.role = "main", k.problem = p, k.choice = e.choice, k.args = {"a", "b", "d"}, k.code = "code";
  if (e.arch != "cpu")
    k.device = e.device.name, k.target = e.arch, k.ptx = e.device.name, k.launches.resize(1),
    k.launches[0].entry = e.device.name;
  KernelFile file;
  file.problem = p, file.arch = e.arch, file.choice = e.choice, file.origin = "lock", file.kernels = {k};
  return file;
}

void run_embed_lock(const std::string& input) {
  try {
    const Lock lock = Lock::parse(input, "lock");
    for (const LockEntry& e : lock.entries()) {
      const Problem p = Problem::parse(e.problem);
      if (e.arch != "cpu" && !is_gpu(e.arch)) continue;
      LibraryFunction f = function(p, compiled(e, p));
      if (e.vendor && why_unusable(*e.vendor, p, e.arch).empty())
        f.calls = {{e.arch, e.arch == "cpu" ? "" : e.device.name, *e.vendor}};
      check({e.toolchain, "kernels.h", {std::move(f)}});
    }
  } catch (const Error&) {
  }
}
const fuzz::Target embed_lock_target("embed_lock", run_embed_lock);

void run_embed_kernel(const std::string& input) {
  try {
    const KernelFile file = KernelFile::parse(fuzz::resealed(input), "kernel");
    const Library library{file.origin, "kernels.h", {function(file.problem, file)}};
    validate(library);
    check(library);
  } catch (const Error&) {
  }
}
const fuzz::Target embed_kernel_target("embed_kernel", run_embed_kernel);

} // namespace
} // namespace deepgen
