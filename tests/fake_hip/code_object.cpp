#include "code_object.h"

#include <elf.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace fake_hip {
namespace {

using Json = nlohmann::json;

constexpr unsigned char kOsAbi = 64;                       // ELFOSABI_AMDGPU_HSA
constexpr uint16_t kMachine = 224;                         // EM_AMDGPU
constexpr uint32_t kMetadataNote = 32;                     // NT_AMDGPU_METADATA
constexpr uint32_t kXnackAny = 0x100, kSrameccAny = 0x400; // version 4 on; + 1 step: off, + 2: on
constexpr const char* kTargetPrefix = "amdgcn-amd-amdhsa--";
constexpr const char* kNoteName = "AMDGPU";

struct Processor {
  const char* name;
  uint32_t mach; ///< EF_AMDGPU_MACH_...
  bool sramecc, xnack;
};
constexpr Processor kProcessors[] = {{"gfx906", 0x2f, true, true},    {"gfx90a", 0x3f, true, true},
                                     {"gfx942", 0x4c, true, true},    {"gfx950", 0x4f, true, true},
                                     {"gfx1100", 0x41, false, false}, {"gfx1201", 0x4e, false, false}};

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("not a code object: " + why); }

const Processor& processor_of(const std::string& target) {
  for (const Processor& p : kProcessors)
    if (target.substr(0, target.find(':')) == p.name) return p;
  refuse("unknown target " + target);
}

uint32_t setting_flag(const std::string& target, const std::string& name, uint32_t any) {
  if (target.find(":" + name + "-") != std::string::npos) return 2 * any;
  return target.find(":" + name + "+") != std::string::npos ? 3 * any : any;
}

uint32_t flags_of(const std::string& target) {
  const Processor& p = processor_of(target);
  return p.mach | (p.xnack ? setting_flag(target, "xnack", kXnackAny) : 0) |
         (p.sramecc ? setting_flag(target, "sramecc", kSrameccAny) : 0);
}

template <typename T>
T read(const char* data, size_t bytes, size_t at) {
  T value;
  if (at > bytes || bytes - at < sizeof value) refuse("cut short");
  std::memcpy(&value, data + at, sizeof value);
  return value;
}

uint32_t padded(uint32_t bytes) { return (bytes + 3) / 4 * 4; }

/// The metadata note of one PT_NOTE segment, empty when it has none.
std::string metadata_in(const char* data, size_t bytes, size_t at, size_t end) {
  while (at + sizeof(Elf64_Nhdr) <= end) {
    const auto note = read<Elf64_Nhdr>(data, bytes, at);
    const size_t name = at + sizeof note, text = name + padded(note.n_namesz);
    if (text > bytes || bytes - text < note.n_descsz) refuse("a note is cut short");
    if (note.n_type == kMetadataNote && std::string(data + name, note.n_namesz) == std::string(kNoteName, 7))
      return std::string(data + text, note.n_descsz);
    at = text + padded(note.n_descsz);
  }
  return "";
}

KernelInfo kernel_from(const Json& json) {
  KernelInfo k;
  k.name = json.at(".name");
  if (json.at(".symbol") != k.name + ".kd") refuse("the descriptor of " + k.name + " has another name");
  k.kernarg_bytes = json.at(".kernarg_segment_size"), k.group_bytes = json.at(".group_segment_fixed_size");
  k.private_bytes = json.at(".private_segment_fixed_size"), k.wavefront = json.at(".wavefront_size");
  k.most_threads = json.at(".max_flat_workgroup_size");
  k.required_block = json.value(".reqd_workgroup_size", std::vector<uint32_t>{});
  for (const Json& a : json.value(".args", Json::array()))
    k.arguments.push_back({a.at(".offset"), a.at(".size"), a.at(".value_kind")});
  return k;
}

Json json_of(const KernelInfo& k) {
  Json arguments = Json::array();
  for (const KernelArgument& a : k.arguments)
    arguments.push_back({{".offset", a.offset}, {".size", a.size}, {".value_kind", a.kind}});
  Json json = {{".name", k.name},
               {".symbol", k.name + ".kd"},
               {".args", arguments},
               {".kernarg_segment_size", k.kernarg_bytes},
               {".kernarg_segment_align", 8},
               {".group_segment_fixed_size", k.group_bytes},
               {".private_segment_fixed_size", k.private_bytes},
               {".max_flat_workgroup_size", k.most_threads},
               {".wavefront_size", k.wavefront}};
  if (!k.required_block.empty()) json[".reqd_workgroup_size"] = k.required_block;
  return json;
}

} // namespace

const KernelInfo* CodeObject::find(const std::string& name) const {
  for (const KernelInfo& k : kernels)
    if (k.name == name) return &k;
  return nullptr;
}

size_t code_object_bytes(const char* data) {
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  const auto head = read<Elf64_Ehdr>(data, sizeof(Elf64_Ehdr), 0);
  return std::max(size_t(head.e_shoff) + size_t(head.e_shentsize) * head.e_shnum,
                  size_t(head.e_phoff) + size_t(head.e_phentsize) * head.e_phnum);
}

CodeObject parse_code_object(const char* data, size_t bytes) {
  const auto head = read<Elf64_Ehdr>(data, bytes, 0);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) refuse("no ELF file");
  if (head.e_machine != kMachine || head.e_ident[EI_OSABI] != kOsAbi) refuse("not of an AMD GPU");
  std::string text;
  for (size_t i = 0; i < head.e_phnum && text.empty(); ++i) {
    const auto segment = read<Elf64_Phdr>(data, bytes, head.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_NOTE)
      text = metadata_in(data, bytes, segment.p_offset, std::min(bytes, segment.p_offset + segment.p_filesz));
  }
  const Json json = Json::from_msgpack(text, true, false);
  if (json.is_discarded()) refuse("its metadata cannot be read");
  CodeObject object;
  try {
    const std::string target = json.at("amdhsa.target");
    if (target.rfind(kTargetPrefix, 0) != 0) refuse("its target is " + target);
    object.target = target.substr(std::strlen(kTargetPrefix));
    for (const Json& k : json.at("amdhsa.kernels")) object.kernels.push_back(kernel_from(k));
  } catch (const Json::exception& e) {
    refuse(e.what());
  }
  object.version = head.e_ident[EI_ABIVERSION] + 2;
  if (head.e_flags != flags_of(object.target)) refuse("its header and its metadata name different targets");
  return object;
}

std::string make_code_object(const CodeObject& object) {
  Json kernels = Json::array();
  for (const KernelInfo& k : object.kernels) kernels.push_back(json_of(k));
  const std::vector<uint8_t> packed = Json::to_msgpack({{"amdhsa.target", kTargetPrefix + object.target},
                                                        {"amdhsa.version", {1, object.version - 3}},
                                                        {"amdhsa.kernels", kernels}});
  Elf64_Nhdr note = {7, uint32_t(packed.size()), kMetadataNote};
  std::string notes(reinterpret_cast<const char*>(&note), sizeof note);
  notes += std::string(kNoteName, 7) + '\0' + std::string(packed.begin(), packed.end());
  notes.resize(padded(uint32_t(notes.size())));
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB,
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_ident[EI_OSABI] = kOsAbi,
  head.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(object.version - 2);
  head.e_type = ET_DYN, head.e_machine = kMachine, head.e_version = EV_CURRENT,
  head.e_flags = flags_of(object.target);
  head.e_ehsize = sizeof head, head.e_phentsize = sizeof(Elf64_Phdr), head.e_shentsize = sizeof(Elf64_Shdr),
  head.e_phnum = 1;
  // As in a linked object, the program headers lie in front and the section headers, of which there are none,
  // at the end.
  head.e_phoff = sizeof head, head.e_shoff = sizeof head + sizeof(Elf64_Phdr) + notes.size();
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE, segment.p_flags = PF_R, segment.p_align = 4;
  segment.p_offset = sizeof head + sizeof segment, segment.p_filesz = segment.p_memsz = notes.size();
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) +
         std::string(reinterpret_cast<const char*>(&segment), sizeof segment) + notes;
}

std::vector<KernelArgument> lay_out(const std::vector<uint32_t>& sizes) {
  std::vector<KernelArgument> arguments;
  uint32_t at = 0;
  for (uint32_t size : sizes) {
    at = (at + size - 1) / size * size;
    arguments.push_back({at, size, "by_value"});
    at += size;
  }
  return arguments;
}

} // namespace fake_hip
