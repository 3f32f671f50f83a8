// Parse: PTX text to statements, with names as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deepgen::ptx_sim {

struct Statement {
  enum Kind { instruction, label, directive, open, close } kind = instruction;
  uint32_t line = 0;
  std::string text; ///< label, or directive; or the guard ("@!%p1")
  std::string opcode;
  /// As written: "%r1", "{%r1, %r2}", "[%rd1+16]".
  std::vector<std::string> operands;
};

/// The parts of a text between commas that no bracket encloses.
std::vector<std::string> split_operands(const std::string& text);
std::string trim(const std::string& text);

/// The text between the parentheses of the entry, and the statements of its body. Throws Fault when there is
/// no such entry.
struct EntryText {
  std::string parameters;
  std::vector<Statement> body;
};
EntryText parse_entry(const std::string& ptx, const std::string& entry);

} // namespace deepgen::ptx_sim
