#include "tests/ptx_sim/program/parse.h"

#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <cctype>

namespace deepgen::ptx_sim {
namespace {

/// The text with comments as blanks; lines stay where they are.
std::string without_comments(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '/' || (text[i + 1] != '/' && text[i + 1] != '*')) continue;
    const bool to_line_end = text[i + 1] == '/';
    size_t end = to_line_end ? text.find('\n', i) : text.find("*/", i);
    end = end == std::string::npos ? text.size() : end + (to_line_end ? 0 : 2);
    for (; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
  }
  return text;
}

class Body {
public:
  Body(const std::string& text, size_t at, uint32_t line) : text_(text), at_(at), line_(line) {}

  std::vector<Statement> read() {
    int depth = 1; // the entry's own brace is open
    while (true) {
      skip_blanks();
      if (at_ >= text_.size()) throw Fault("the body of the entry does not end");
      if (text_[at_] == '{')
        ++depth, add(Statement::open), ++at_;
      else if (text_[at_] == '}') {
        if (--depth == 0) return std::move(out_);
        add(Statement::close), ++at_;
      } else if (text_[at_] == ';')
        ++at_;
      else if (!read_label())
        read_statement();
    }
  }

private:
  Statement& add(Statement::Kind kind) {
    out_.emplace_back();
    out_.back().kind = kind, out_.back().line = line_;
    return out_.back();
  }
  void skip_blanks() {
    for (; at_ < text_.size() && std::isspace(uint8_t(text_[at_])); ++at_) line_ += text_[at_] == '\n';
  }
  bool read_label() {
    size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(uint8_t(text_[end])) || text_[end] == '_' || text_[end] == '$'))
      ++end;
    if (end == at_ || end >= text_.size() || text_[end] != ':' || text_[end + 1] == ':') return false;
    add(Statement::label).text = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  void read_statement() {
    const size_t end = text_.find(';', at_);
    if (end == std::string::npos)
      throw Fault("line " + std::to_string(line_) + ": a statement without an end");
    std::string all = text_.substr(at_, end - at_);
    Statement& s = add(all[0] == '.' ? Statement::directive : Statement::instruction);
    line_ += uint32_t(std::count(all.begin(), all.end(), '\n'));
    at_ = end + 1;
    if (s.kind == Statement::directive) {
      s.text = trim(all);
      return;
    }
    if (all[0] == '@') {
      const size_t blank = all.find_first_of(" \t\n");
      s.text = all.substr(0, blank);
      all = trim(all.substr(blank));
    }
    const size_t blank = all.find_first_of(" \t\n");
    s.opcode = all.substr(0, blank);
    if (blank != std::string::npos) s.operands = split_operands(all.substr(blank));
  }

  const std::string& text_;
  size_t at_;
  uint32_t line_;
  std::vector<Statement> out_;
};

} // namespace

std::string trim(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t\n"), to = text.find_last_not_of(" \t\n");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::vector<std::string> split_operands(const std::string& text) {
  std::vector<std::string> out;
  int depth = 0;
  std::string current;
  for (char c : text) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0)
      out.push_back(trim(current)), current.clear();
    else
      current += c;
  }
  if (!trim(current).empty()) out.push_back(trim(current));
  return out;
}

EntryText parse_entry(const std::string& ptx, const std::string& entry) {
  const std::string text = without_comments(ptx);
  const size_t start = text.find(".entry " + entry + "(");
  if (start == std::string::npos) throw Fault("the PTX has no entry " + entry);
  const size_t open = text.find('(', start), close = text.find(')', open), brace = text.find('{', close);
  if (close == std::string::npos || brace == std::string::npos) throw Fault("malformed entry " + entry);
  EntryText out;
  out.parameters = text.substr(open + 1, close - open - 1);
  const auto line = uint32_t(1 + std::count(text.begin(), text.begin() + long(brace), '\n'));
  out.body = Body(text, brace + 1, line).read();
  return out;
}

} // namespace deepgen::ptx_sim
