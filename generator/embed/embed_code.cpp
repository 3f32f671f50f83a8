#include "generator/embed/embed_code.h"

#include "generator/embed/embed_text.h"

#include <cstdio>

namespace deepgen {
namespace {

std::string directive(const std::string& line) { return "    " + c_literal(line + "\n") + "\n"; }

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

std::string section(const std::string& head, int64_t align, const std::string& content) {
  return "\n__asm__(\n" + directive(".pushsection " + head) + directive(".balign " + number(align)) +
         content + "    \".popsection\\n\");\n";
}

/// Global but hidden, so that it survives link-time optimisation, which may move this asm to another unit.
std::string symbol(const std::string& name, const std::string& type, const std::string& content) {
  return directive(".globl " + name) + directive(".hidden " + name) +
         directive(".type " + name + ", @" + type) + directive(name + ":") + content +
         directive(".size " + name + ", . - " + name);
}

/// The image behind an instruction at which indirect calls may arrive (CET's branch tracking). It is no part
/// of the image, whose bytes are those that were measured and hashed.
std::string image_with_landing(const Kernel& k, const std::string& name) {
  constexpr int64_t kLanding = 4;
  const std::string image = data_lines(k.code, 0, k.code.size()), landing = directive("endbr64");
  if (k.entry == 0 && k.align >= kLanding) // falls through
    return directive(".skip " + number(k.align - kLanding) + ", 0xcc") +
           symbol(name, "function", landing + image);
  return directive(".L" + name + "_image:") + image +
         symbol(name, "function", landing + directive("jmp .L" + name + "_image + " + number(k.entry)));
}

const std::string kHidden = "extern \"C\" __attribute__((visibility(\"hidden\"))) ";

} // namespace

std::string EmbeddedCode::add_image(const Kernel& k, const std::string& preferred) {
  auto [at, fresh] = images_.emplace(std::tuple(k.code, k.entry, k.align), preferred);
  if (fresh)
    sections_ +=
        section(".text." + preferred + ",\"ax\",@progbits", k.align, image_with_landing(k, preferred)) +
        kHidden + "void " + preferred + "(const uint64_t* args);\n";
  return at->second;
}

/// A cubin is an ELF file: the driver wants it aligned.
std::string EmbeddedCode::add_cubin(const std::string& code, const std::string& preferred) {
  auto [at, fresh] = cubins_.emplace(code, preferred);
  if (fresh)
    sections_ += section(".rodata." + preferred + ",\"a\",@progbits", 64,
                         symbol(preferred, "object", data_lines(code, 0, code.size()))) +
                 kHidden + "const unsigned char " + preferred + "[];\n";
  return at->second;
}

std::string EmbeddedCode::add_ptx(const std::string& ptx, const std::string& preferred) {
  auto [at, fresh] = ptx_.emplace(ptx, preferred);
  if (!fresh) return at->second;
  tables_ += "const char " + preferred + "[] =\n";
  for (size_t line = 0, end = 0; line < ptx.size(); line = end) {
    end = std::min(ptx.find('\n', line), ptx.size() - 1) + 1;
    tables_ += "    " + c_literal(ptx.substr(line, end - line)) + "\n";
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
             "_code = {" + c_literal(k.target) + ", " + cubin + ", " + number(int64_t(k.code.size())) + ", " +
             ptx + ", &" + preferred + "_state};\n";
  return at->second;
}

} // namespace deepgen
