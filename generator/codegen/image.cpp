// Links one ELF object into a position-independent image: text first, constants behind it, no relocations
// left.
#include "base/text/error.h"
#include "generator/codegen/codegen.h"
#include "templates/core/template.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <map>

namespace deepgen {
namespace {

namespace object = llvm::object;

template <typename T>
T checked(llvm::Expected<T> value, const char* what) {
  if (!value)
    throw Error(std::string("cannot read the compiled object: ") + what, "",
                llvm::toString(value.takeError()));
  return std::move(*value);
}

class Linker {
public:
  explicit Linker(const object::ELFObjectFileBase& file) : file_(file) {}

  void link(Kernel& kernel) {
    lay_out(true);
    lay_out(false);
    for (const object::SectionRef& section : file_.sections()) relocate(section);
    kernel.code = image_;
    kernel.align = int64_t(alignment_);
    kernel.entry = int64_t(entry());
  }

private:
  const object::ELFObjectFileBase& file_;
  std::map<uint64_t, uint64_t> offset_; ///< section index -> place in the image
  std::string image_;
  uint64_t alignment_ = 64;

  void lay_out(bool text) {
    for (const object::SectionRef& section : file_.sections()) {
      const object::ELFSectionRef elf(section);
      if (!(elf.getFlags() & llvm::ELF::SHF_ALLOC) || section.isText() != text || section.getSize() == 0)
        continue;
      const llvm::StringRef name = checked(section.getName(), "section name");
      if (name.starts_with(".eh_frame") || name.starts_with(".note"))
        continue; // nothing unwinds through a kernel
      if ((elf.getFlags() & llvm::ELF::SHF_WRITE) || section.isBSS())
        throw Error("the kernel has writable data", name.str(), "images are read-only");
      const uint64_t align = std::max<uint64_t>(section.getAlignment().value(), 16);
      alignment_ = std::max(alignment_, align);
      image_.resize(llvm::alignTo(image_.size(), align), '\0');
      offset_[section.getIndex()] = image_.size();
      image_ += checked(section.getContents(), "section contents").str();
    }
  }

  uint64_t address(const object::SymbolRef& symbol) {
    const llvm::StringRef name = checked(symbol.getName(), "symbol name");
    auto section = checked(symbol.getSection(), "symbol section");
    if (section == file_.section_end())
      throw Error("the kernel needs an external symbol", name.str(), "",
                  "emit code that needs no library function");
    auto place = offset_.find(section->getIndex());
    if (place == offset_.end()) throw Error("the kernel refers to a section outside its image", name.str());
    return place->second + checked(symbol.getValue(), "symbol value");
  }

  void relocate(const object::SectionRef& relocations) {
    auto target = checked(relocations.getRelocatedSection(), "relocated section");
    if (target == file_.section_end() || !offset_.count(target->getIndex())) return;
    for (const object::RelocationRef& relocation : relocations.relocations()) {
      const uint64_t type = relocation.getType();
      if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32)
        throw Error("the kernel needs a relocation that an image cannot have", type_name(relocation));
      const int64_t addend = checked(object::ELFRelocationRef(relocation).getAddend(), "addend");
      const uint64_t place = offset_[target->getIndex()] + relocation.getOffset();
      const int32_t value = int32_t(int64_t(address(*relocation.getSymbol())) + addend - int64_t(place));
      std::memcpy(image_.data() + place, &value, sizeof value);
    }
  }

  static std::string type_name(const object::RelocationRef& relocation) {
    llvm::SmallString<32> name;
    relocation.getTypeName(name);
    return name.str().str();
  }

  uint64_t entry() {
    for (const object::SymbolRef& symbol : file_.symbols())
      if (checked(symbol.getName(), "symbol name") == kernel_symbol) return address(symbol);
    throw Error("the template did not define " + std::string(kernel_symbol));
  }
};

} // namespace

void link_image(const std::string& bytes, Kernel& kernel) {
  auto file =
      checked(object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel")), "format");
  Linker(llvm::cast<object::ELFObjectFileBase>(*file)).link(kernel);
}

} // namespace deepgen
