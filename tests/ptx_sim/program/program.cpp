#include "tests/ptx_sim/program/program.h"

#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"
#include "tests/ptx_sim/program/parse.h"

#include <algorithm>
#include <sstream>

namespace deepgen::ptx_sim {
namespace {

/// Names of registers and labels. Pieces of inline assembly open scopes of their own.
struct Scope {
  struct Range {
    uint32_t first, count;
  };
  std::map<std::string, uint32_t> names;  ///< a register
  std::map<std::string, Range> ranges;    ///< "%r<8>": by "%r"
  std::map<std::string, uint32_t> labels; ///< index of an instruction
  int parent = -1;
};

class Assembler {
public:
  Assembler(Program& program, const EntryText& text) : p_(program), text_(text) {
    for (size_t i = 0; i < special_count; ++i) special_[special_registers[i]] = uint32_t(i);
    p_.register_bits.assign(special_count, 32);
  }

  void run() {
    read_parameters();
    declare();
    int next_scope = 0;
    std::vector<int> open = {0};
    for (const Statement& s : text_.body) {
      if (s.kind == Statement::open) open.push_back(++next_scope);
      if (s.kind == Statement::close) open.pop_back();
      if (s.kind != Statement::instruction) continue;
      try {
        p_.code.push_back(decode_statement(s, open.back()));
      } catch (const Fault& f) {
        throw Fault("line " + std::to_string(s.line) + ": " + f.what() + ": " + trim(p_.source(s.line)));
      }
    }
  }

private:
  void read_parameters() {
    uint32_t offset = 0;
    for (const std::string& text : split_operands(text_.parameters)) {
      std::istringstream words(text);
      std::vector<std::string> parts;
      for (std::string word; words >> word;) parts.push_back(word);
      if (parts.size() < 3) throw Fault("malformed parameter: " + text);
      Parameter x;
      x.name = parts.back();
      const size_t bracket = x.name.find('[');
      const auto type = std::find_if(parts.begin() + 1, parts.end(), [](const std::string& part) {
        return part[0] == '.' && type_bytes(part.substr(1)) > 0;
      });
      x.bytes = type == parts.end() ? 8 : uint32_t(type_bytes(type->substr(1)));
      if (bracket != std::string::npos) {
        x.bytes *= uint32_t(std::stoul(x.name.substr(bracket + 1)));
        x.name.resize(bracket);
      }
      const uint32_t align = bracket == std::string::npos ? x.bytes : 128;
      x.offset = offset = (offset + align - 1) / align * align;
      offset += x.bytes;
      p_.parameters.push_back(x);
    }
  }

  /// Registers and labels of all scopes: a branch may go forward.
  void declare() {
    scopes_.resize(1);
    std::vector<int> open = {0};
    uint32_t index = 0;
    for (const Statement& s : text_.body) {
      switch (s.kind) {
      case Statement::open:
        scopes_.emplace_back();
        scopes_.back().parent = open.back();
        open.push_back(int(scopes_.size()) - 1);
        break;
      case Statement::close:
        open.pop_back();
        break;
      case Statement::label:
        scopes_[size_t(open.back())].labels[s.text] = index;
        break;
      case Statement::directive:
        declare_registers(s, scopes_[size_t(open.back())]);
        break;
      case Statement::instruction:
        ++index;
      }
    }
  }

  void declare_registers(const Statement& s, Scope& scope) {
    std::istringstream words(s.text);
    std::string kind, type, names;
    words >> kind >> type;
    if (kind == ".pragma" || kind == ".loc") return;
    if (kind != ".reg") throw Fault("line " + std::to_string(s.line) + ": unknown directive " + s.text);
    std::getline(words, names);
    const auto bits = uint8_t(type == ".pred" ? 1 : 8 * type_bytes(type.substr(1)));
    for (const std::string& name : split_operands(names)) {
      const size_t angle = name.find('<');
      const uint32_t count = angle == std::string::npos ? 1 : uint32_t(std::stoul(name.substr(angle + 1)));
      const auto first = uint32_t(p_.register_bits.size());
      if (angle == std::string::npos)
        scope.names[name] = first;
      else
        scope.ranges[name.substr(0, angle)] = {first, count};
      p_.register_bits.resize(first + count, bits);
    }
  }

  /// -1: no such register.
  int64_t find_register(const std::string& name, int scope) const {
    if (auto found = special_.find(name); found != special_.end()) return found->second;
    size_t digits = name.size();
    while (digits > 0 && std::isdigit(uint8_t(name[digits - 1]))) --digits;
    for (; scope >= 0; scope = scopes_[size_t(scope)].parent) {
      const Scope& s = scopes_[size_t(scope)];
      if (auto found = s.names.find(name); found != s.names.end()) return found->second;
      if (digits == name.size()) continue;
      if (auto found = s.ranges.find(name.substr(0, digits)); found != s.ranges.end()) {
        const auto index = uint32_t(std::stoul(name.substr(digits)));
        if (index < found->second.count) return found->second.first + index;
      }
    }
    return -1;
  }

  Operand constant(uint64_t value) { return {Operand::constant, p_.constant_slot(value), 0}; }

  Operand simple(const std::string& text, int scope) {
    if (text == "_") return {};
    if (const int64_t slot = find_register(text, scope); slot >= 0) return {Operand::reg, uint32_t(slot), 0};
    if (text.starts_with("0f") || text.starts_with("0F"))
      return constant(std::stoull(text.substr(2), nullptr, 16));
    if (text.starts_with("0d") || text.starts_with("0D"))
      return constant(std::stoull(text.substr(2), nullptr, 16));
    if (std::isdigit(uint8_t(text[0])) || text[0] == '-')
      return constant(text[0] == '-' ? uint64_t(std::stoll(text, nullptr, 0))
                                     : std::stoull(text, nullptr, 0));
    if (text == "1.0") return constant(to_bits(1.0f));
    for (const Parameter& x : p_.parameters)
      if (x.name == text) return constant(parameter_window + x.offset);
    if (text[0] == '%') throw Fault("unknown register " + text);
    return constant(p_.static_shared); // the only other symbol of a kernel: its dynamic shared memory
  }

  void add_operand(const std::string& text, int scope, Instruction& in) {
    if (text[0] == '{') {
      for (const std::string& part : split_operands(text.substr(1, text.size() - 2)))
        in.operands.push_back(simple(part, scope));
    } else if (text[0] == '[') { // an address, behind which a tensor's coordinates may follow
      bool address = true;
      for (const std::string& part : split_operands(text.substr(1, text.size() - 2))) {
        if (address)
          in.operands.push_back(address_of(part, scope));
        else
          add_operand(part, scope, in);
        address = false;
      }
    } else if (const size_t bar = text.find('|'); bar != std::string::npos) {
      in.operands.push_back(simple(trim(text.substr(0, bar)), scope));
      in.operands.push_back(simple(trim(text.substr(bar + 1)), scope));
    } else {
      in.operands.push_back(simple(text, scope));
    }
  }

  Operand address_of(const std::string& text, int scope) {
    const size_t plus = text.find('+');
    Operand base = simple(trim(text.substr(0, plus)), scope);
    if (plus != std::string::npos) base.offset = std::stoll(text.substr(plus + 1), nullptr, 0);
    return base;
  }

  Instruction decode_statement(const Statement& s, int scope) {
    Instruction in;
    in.opcode = s.opcode, in.line = s.line;
    if (!s.text.empty()) {
      in.guard_negated = s.text[1] == '!';
      const int64_t slot = find_register(s.text.substr(in.guard_negated ? 2 : 1), scope);
      if (slot < 0) throw Fault("unknown predicate " + s.text);
      in.guard = int32_t(slot);
    }
    const Opcode op(s.opcode);
    if (op.name() == "bra") {
      in.target = find_label(s.operands.at(0), scope);
      if (decode_threads(op, in)) return in;
    }
    in.first_is_address = !s.operands.empty() && s.operands[0][0] == '[';
    for (const std::string& text : s.operands) {
      in.first.push_back(uint16_t(in.operands.size()));
      add_operand(text, scope, in);
    }
    if (!decode_arithmetic(op, in) && !decode_bulk(op, in) && !decode_mbarrier(op, in) &&
        !decode_float(op, in) && !decode_convert(op, in, p_) && !decode_memory(op, in, p_) &&
        !decode_threads(op, in) && !decode_matrix(op, in) && !decode_wgmma(op, in) && !decode_cluster(op, in))
      throw Fault("the simulator does not know " + s.opcode);
    p_.uses_wgmma |= op.name() == "wgmma";
    return in;
  }

  uint32_t find_label(const std::string& name, int scope) const {
    for (; scope >= 0; scope = scopes_[size_t(scope)].parent) {
      const auto& labels = scopes_[size_t(scope)].labels;
      if (auto found = labels.find(name); found != labels.end()) return found->second;
    }
    throw Fault("unknown label " + name);
  }

  Program& p_;
  const EntryText& text_;
  std::map<std::string, uint32_t> special_;
  std::vector<Scope> scopes_;
};

} // namespace

Program::Program(const std::string& ptx, const std::string& entry) {
  std::istringstream stream(ptx);
  for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  Assembler(*this, parse_entry(ptx, entry)).run();
}

std::string Program::source(uint32_t line) const {
  return line >= 1 && line <= lines_.size() ? lines_[line - 1] : "";
}

uint32_t Program::constant_slot(uint64_t value) {
  const auto [found, added] = constant_slots_.emplace(value, uint32_t(constants.size() / 32));
  if (added) constants.insert(constants.end(), 32, value);
  return found->second;
}

} // namespace deepgen::ptx_sim
