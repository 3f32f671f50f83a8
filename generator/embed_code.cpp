#include "generator/embed_code.h"

#include "generator/embed_text.h"

#include <cstdio>

namespace deepgen {
namespace {

std::string directive(const std::string& line) { return "    \"" + line + "\\n\"\n"; }

/// Bytes [first, last) of the code as data lines of one string literal each.
std::string data_lines(const std::string& code, size_t first, size_t last) {
  std::string text;
  char buffer[40];
  auto byte = [&](size_t i) { return static_cast<unsigned char>(code[i]); };
  while (first < last) {
    if (last - first < 8) {
      std::snprintf(buffer, sizeof buffer, "    \".byte 0x%02x\\n\"\n", byte(first++));
      text += buffer;
      continue;
    }
    text += "    \".quad ";
    for (int column = 0; column < 4 && last - first >= 8; ++column, first += 8) {
      uint64_t word = 0;
      for (size_t i = 8; i-- > 0;) word = word << 8 | byte(first + i);
      std::snprintf(buffer, sizeof buffer, "%s0x%llx", column ? ", " : "",
                    static_cast<unsigned long long>(word));
      text += buffer;
    }
    text += "\\n\"\n";
  }
  return text;
}

/// The symbol `name` of a section of its own: `before` bytes of `code` lie in front of it. Global but hidden,
/// so that it survives link-time optimisation, which may move this asm to another unit.
std::string section(const std::string& head, const std::string& name, const std::string& type, int64_t align,
                    const std::string& code, size_t before) {
  return "\n__asm__(\n" + directive(".pushsection " + head) + directive(".balign " + number(align)) +
         data_lines(code, 0, before) + directive(".globl " + name) + directive(".hidden " + name) +
         directive(".type " + name + ", @" + type) + directive(name + ":") +
         data_lines(code, before, code.size()) + directive(".size " + name + ", . - " + name) +
         "    \".popsection\\n\");\n";
}

const std::string kHidden = "extern \"C\" __attribute__((visibility(\"hidden\"))) ";

} // namespace

std::string EmbeddedCode::add_image(const Kernel& k, const std::string& preferred) {
  auto [at, fresh] = images_.emplace(std::tuple(k.code, k.entry, k.align), preferred);
  if (fresh)
    sections_ += section(".text." + preferred + ",\\\"ax\\\",@progbits", preferred, "function", k.align,
                         k.code, size_t(k.entry)) +
                 kHidden + "void " + preferred + "(const uint64_t* args);\n";
  return at->second;
}

/// A cubin is an ELF file: the driver wants it aligned.
std::string EmbeddedCode::add_cubin(const std::string& code, const std::string& preferred) {
  auto [at, fresh] = cubins_.emplace(code, preferred);
  if (fresh)
    sections_ += section(".rodata." + preferred + ",\\\"a\\\",@progbits", preferred, "object", 64, code, 0) +
                 kHidden + "const unsigned char " + preferred + "[];\n";
  return at->second;
}

std::string EmbeddedCode::add_ptx(const std::string& ptx, const std::string& preferred) {
  auto [at, fresh] = ptx_.emplace(ptx, preferred);
  if (!fresh) return at->second;
  tables_ += "const char " + preferred + "[] =\n";
  for (size_t line = 0, end = 0; line < ptx.size(); line = end) {
    end = std::min(ptx.find('\n', line), ptx.size() - 1) + 1;
    tables_ += "    " + quoted(ptx.substr(line, end - line)) + "\n";
  }
  tables_ += "    \"\";\n";
  return preferred;
}

std::string EmbeddedCode::add_gpu_code(const Kernel& k, const std::string& preferred) {
  auto [at, fresh] = gpu_codes_.emplace(std::tuple(k.target, k.code, k.ptx), preferred + "_code");
  if (!fresh) return at->second;
  const std::string cubin = k.code.empty() ? "nullptr" : add_cubin(k.code, preferred + "_cubin");
  const std::string ptx = k.ptx.empty() ? "nullptr" : add_ptx(k.ptx, preferred + "_ptx");
  tables_ += "void* volatile " + preferred + "_state = nullptr;\nconst deepgen_gpu_code " + preferred +
             "_code = {" + quoted(k.target) + ", " + cubin + ", " + number(int64_t(k.code.size())) + ", " +
             ptx + ", &" + preferred + "_state};\n";
  return at->second;
}

} // namespace deepgen
