// Code objects: linked by lld, and what their metadata says.
#include "base/kernel/amd.h"
#include "base/text/error.h"
#include "generator/codegen/amdgpu.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace deepgen {
namespace {

constexpr unsigned kLinkerSeconds = 30;
constexpr size_t kLongestMessage = 1500;

/// A file without a name, which a child process opens by its number.
class MemoryFile {
public:
  explicit MemoryFile(const std::string& bytes = "") : fd_(memfd_create("deepgen", 0)) {
    if (fd_ < 0) fail("create");
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = write(fd_, bytes.data() + at, bytes.size() - at);
      if (n < 0 && errno != EINTR) fail("write");
      if (n > 0) at += size_t(n);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  std::string content() const {
    std::string bytes(size_t(std::max<off_t>(0, lseek(fd_, 0, SEEK_END))), '\0');
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = pread(fd_, bytes.data() + at, bytes.size() - at, off_t(at));
      if (n == 0 || (n < 0 && errno != EINTR)) fail("read");
      if (n > 0) at += size_t(n);
    }
    return bytes;
  }

private:
  [[noreturn]] void fail(const char* what) const {
    throw HostFault(std::string("cannot ") + what + " a memory file", "", std::strerror(errno),
                    "free memory and build again: it goes on here");
  }
  int fd_;
};

/// Runs lld; what it wrote to its standard output.
std::string run_lld(const std::string& program, const std::vector<std::string>& arguments) {
  const MemoryFile output, messages;
  std::vector<llvm::StringRef> words = {"ld.lld"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::string out = output.path(), err = messages.path();
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(out),
                                                      llvm::StringRef(err)};
  std::string why;
  const int status =
      llvm::sys::ExecuteAndWait(program, words, std::nullopt, redirects, kLinkerSeconds, 0, &why);
  // Not started (-1), or killed: LLVM tells the signal by its name alone.
  if (status == -1 || (status == -2 && why.starts_with(strsignal(SIGKILL))))
    throw HostFault("lld could not run", program, why,
                    "free memory, or set DEEPGEN_LLD to an ld.lld that runs here, and build again");
  if (status != 0)
    throw Error("lld cannot link the kernel", program, why + messages.content().substr(0, kLongestMessage));
  return output.content();
}

bool executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

llvm::Error each_kernel(llvm::StringRef code, const std::function<void(llvm::msgpack::MapDocNode)>& visit) {
  auto object = llvm::object::ELF64LEFile::create(code);
  if (!object) return object.takeError();
  auto sections = object->sections();
  if (!sections) return sections.takeError();
  for (const auto& section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE) continue;
    llvm::Error failed = llvm::Error::success();
    for (const auto& note : object->notes(section, failed)) {
      if (note.getName() != "AMDGPU" || note.getType() != llvm::ELF::NT_AMDGPU_METADATA) continue;
      llvm::msgpack::Document document;
      if (!document.readFromBlob(note.getDescAsStringRef(section.sh_addralign), false))
        return llvm::createStringError("the metadata is no msgpack");
      for (auto& kernel : document.getRoot().getMap()["amdhsa.kernels"].getArray(true))
        visit(kernel.getMap());
    }
    if (failed) return failed;
  }
  return llvm::Error::success();
}

int64_t number(llvm::msgpack::MapDocNode& map, const char* key) {
  auto it = map.find(key);
  if (it == map.end()) return 0;
  const llvm::msgpack::DocNode& node = it->second;
  return node.getKind() == llvm::msgpack::Type::UInt  ? int64_t(node.getUInt())
         : node.getKind() == llvm::msgpack::Type::Int ? node.getInt()
                                                      : 0;
}

void set_resources(Launch& launch, llvm::msgpack::MapDocNode& map, const AmdArch& arch) {
  launch.registers = number(map, ".vgpr_count");
  launch.accumulation = number(map, ".agpr_count");
  launch.scalars = number(map, ".sgpr_count");
  launch.stack = number(map, ".private_segment_fixed_size");
  launch.static_shared = number(map, ".group_segment_fixed_size");
  launch.spill_stores = launch.spill_loads =
      number(map, ".vgpr_spill_count") + number(map, ".sgpr_spill_count");
  launch.waves = arch.waves(launch.registers, launch.static_shared + launch.shared, launch.block[0]);
}

} // namespace

std::string find_lld() {
  if (const char* named = std::getenv("DEEPGEN_LLD"); named && *named) {
    if (!executable(named))
      throw HostFault("DEEPGEN_LLD names no program", named, "", "set it to the path of LLVM 22's ld.lld");
    return named;
  }
  if (executable(DEEPGEN_LLD_PATH)) return DEEPGEN_LLD_PATH;
  const auto found = llvm::sys::findProgramByName("ld.lld-22");
  return found ? *found : "";
}

std::string lld_version() {
  static std::map<std::string, std::string> known;
  const std::string program = find_lld();
  if (program.empty()) return "";
  std::string& version = known[program];
  if (!version.empty()) return version;
  // "Debian LLD 22.1.8 (compatible with GNU linkers)"
  const std::string text = run_lld(program, {"--version"});
  const size_t begin = text.find("LLD "),
               end = text.find_first_of(" \n(", begin == std::string::npos ? 0 : begin + 4);
  return version = begin == std::string::npos ? "LLD" : text.substr(begin, end - begin);
}

void link_amd(const std::string& object, Kernel& kernel) {
  const std::string program = find_lld();
  if (program.empty())
    throw HostFault("AMD kernels are linked by LLVM's ld.lld, which is not here", "", "",
                    "install lld-22, or set DEEPGEN_LLD to its path");
  const MemoryFile input(object);
  kernel.code =
      run_lld(program, {"-shared", "--build-id=none", "-s", "--threads=1", "-o", "-", input.path()});
  kernel.assembler = lld_version();
  read_amd_resources(kernel);
}

void read_amd_resources(Kernel& kernel) {
  const AmdArch* arch = find_amd(kernel.target);
  if (!arch) throw Error("no AMD GPU target: '" + kernel.target + "'");
  std::vector<std::string> seen;
  auto visit = [&](llvm::msgpack::MapDocNode map) {
    const std::string name = map[".name"].getString().str();
    seen.push_back(name);
    for (Launch& launch : kernel.launches)
      if (launch.entry == name) set_resources(launch, map, *arch);
  };
  if (llvm::Error failed = each_kernel(kernel.code, visit))
    throw Error("a code object's metadata cannot be read", kernel.target, llvm::toString(std::move(failed)));
  for (const Launch& launch : kernel.launches)
    if (std::find(seen.begin(), seen.end(), launch.entry) == seen.end())
      throw Error("the template did not define the entry " + launch.entry);
}

std::string why_rejected_amd(const Kernel& kernel) {
  for (const Launch& l : kernel.launches) {
    const std::string used = l.entry + " uses " + std::to_string(l.registers) + " vector registers";
    if (l.stack || l.spill_stores)
      return used + ", " + std::to_string(l.stack) + " bytes of scratch, " + std::to_string(l.spill_stores) +
             " spilled";
    if (l.waves == 0)
      return used + " and " + std::to_string(l.static_shared + l.shared) +
             " bytes of shared memory: no block of " + std::to_string(l.block[0]) +
             " threads fits on a multiprocessor";
  }
  return "";
}

} // namespace deepgen
