#include "tests/ptx_sim/check/rows_check.h"

#include "base/problem/signature.h"
#include "measure/values/rows_expected.h"
#include "measure/values/rows_inputs.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace deepgen::ptx_sim {
namespace {

constexpr double kEpsilon = 1e-5;

Format number_format(Type t) {
  return t == Type::f16    ? Format::f16
         : t == Type::bf16 ? Format::bf16
         : t == Type::e4m3 ? Format::e4m3
         : t == Type::i8   ? Format::s8
                           : Format::f32;
}

/// An operand in simulated memory.
struct Placed {
  size_t region = 0;
  Type type = Type::f32;
  int64_t rows = 1, columns = 1, ld = 1, lead = 0;
  size_t at(int64_t row, int64_t column) const { return size_t(lead + (row * ld + column) * size_of(type)); }
};

class RowsCall {
public:
  RowsCall(const Kernel& kernel, const RowsCase& c, uint64_t seed)
      : kernel_(kernel), case_(c), p_(kernel.problem.rows()), random_(seed) {
    for (const Operand& x : signature(p_))
      if (x.in_memory()) place(x);
  }

  GlobalMemory memory;

  std::vector<uint8_t> argument(const std::string& name) const {
    if (name == "epsilon") return bytes_of(float(kEpsilon));
    for (const auto& [operand, x] : placed_) {
      if (name == operand) return bytes_of(memory[x.region].base);
      if (name == (operand.size() == 1 ? "ld" + operand : "ld_" + operand)) return bytes_of(x.ld);
    }
    throw Fault("the kernel wants the argument '" + name + "', which the problem does not have");
  }

  Outcome compare() const {
    Outcome out;
    for (int64_t m = 0; m < p_.m; ++m) compare_row(m, out);
    return out;
  }

private:
  template <typename T>
  static std::vector<uint8_t> bytes_of(T value) {
    std::vector<uint8_t> out(sizeof value);
    std::memcpy(out.data(), &value, sizeof value);
    return out;
  }

  void place(const Operand& operand) {
    const std::string name = operand.name;
    const bool output = operand.role == Operand::Role::out;
    if (case_.in_place && name == "residual_out") return alias(name, "residual");
    if (case_.in_place && name == "d" && p_.d == p_.x) return alias(name, "x");
    Placed x;
    x.type = operand.type, x.rows = operand.rows, x.columns = operand.columns;
    const int64_t align = operand.is_matrix() || !case_.padded ? kernel_.align_of(operand) : 1;
    const int64_t unit = std::max<int64_t>(1, std::max(align, kernel_.align_of(operand)) / size_of(x.type));
    const int64_t gap = x.columns / unit % 2 ? 2 * unit : unit; // an odd number of units
    x.ld = case_.padded && operand.is_matrix() ? (x.columns + unit - 1) / unit * unit + gap : x.columns;
    const auto bytes = size_t(((x.rows - 1) * x.ld + x.columns) * size_of(x.type));
    x.region = memory.add(name, bytes, case_.padded ? size_t(unit * size_of(x.type)) : 0, true);
    x.lead = int64_t(memory[x.region].lead);
    auto& owned = memory[x.region].owned;
    for (int64_t r = 0; r < x.rows; ++r)
      std::fill_n(owned.begin() + int64_t(x.at(r, 0)), x.columns * size_of(x.type), uint8_t(1));
    placed_[name] = x;
    if (!output) fill(name);
  }
  void alias(const std::string& name, const std::string& of) { placed_[name] = placed_.at(of); }

  void fill(const std::string& name) {
    const Placed& x = placed_.at(name);
    const bool vector = name == "scale" || name == "bias";
    for (int64_t r = 0; r < x.rows; ++r)
      for (int64_t c = 0; c < x.columns; ++c) {
        double value = double(random_() >> 40) * 0x1p-23 - 1;
        if (case_.special && name == "x")
          value = flavoured(RowFlavour(r % int64_t(RowFlavour::count)), p_.x, c, p_.n, value);
        if (vector && name == "scale") value = 1 + value / 2;
        const uint64_t bits = encode(number_format(x.type), value);
        std::memcpy(&memory[x.region].bytes[x.at(r, c)], &bits, size_t(size_of(x.type)));
        values_[name].push_back(decode(number_format(x.type), bits));
      }
  }

  double element(const std::string& name, int64_t row, int64_t column) const {
    const Placed& x = placed_.at(name);
    uint64_t bits = 0;
    std::memcpy(&bits, &memory[x.region].bytes[x.at(row, column)], size_t(size_of(x.type)));
    return decode(number_format(x.type), bits);
  }
  bool is_written(const std::string& name, int64_t row, int64_t column) const {
    const Placed& x = placed_.at(name);
    return memory[x.region].writers[x.at(row, column)] != 0;
  }

  void compare_row(int64_t m, Outcome& out) const {
    const auto row_of = [&](const char* name, int64_t row) {
      const auto found = values_.find(name);
      return found == values_.end() ? nullptr : &found->second[size_t(row * p_.n)];
    };
    const ExpectedRow expected(p_, {row_of("x", m), row_of("residual", m), row_of("scale", 0),
                                    row_of("bias", 0), double(float(kEpsilon))});
    const auto judge = [&](const std::string& name, int64_t row, int64_t column, double error) {
      const bool written = is_written(name, row, column);
      out.error = std::max(out.error, error);
      if ((error <= 1 && written) || !out.fault.empty()) return;
      out.fault = name + "[" + std::to_string(m) + "," + std::to_string(column) + "] is " +
                  (written ? std::to_string(element(name, row, column)) : "not written") +
                  ", expected of D " + expected.text_of_d(name == "row_scales" ? 0 : column);
    };
    for (int64_t n = 0; n < p_.n; ++n) {
      judge("d", m, n, expected.error_of_d(n, element("d", m, n)));
      if (p_.output_residual)
        judge("residual_out", m, n, expected.error_of_residual(n, element("residual_out", m, n)));
    }
    if (p_.quantised()) judge("row_scales", 0, m, expected.error_of_scale(element("row_scales", 0, m)));
  }

  const Kernel& kernel_;
  const RowsCase& case_;
  const Rows p_;
  std::mt19937_64 random_;
  std::map<std::string, Placed> placed_;
  std::map<std::string, std::vector<double>> values_;
};

} // namespace

std::vector<RowsCase> rows_cases() {
  return {{"dense"}, {"padded", true}, {"in place", true, true}, {"special rows", true, false, true}};
}

Outcome check_rows(const Kernel& k, const RowsCase& c, uint64_t seed) {
  return check_rows(k, c, seed, runner(k));
}

Outcome check_rows(const Kernel& k, const RowsCase& c, uint64_t seed, const Runner& run) {
  try {
    RowsCall call(k, c, seed);
    std::vector<std::vector<uint8_t>> arguments;
    for (const std::string& name : k.args) arguments.push_back(call.argument(name));
    for (size_t i = 0; i < k.launches.size(); ++i) run(k.launches[i], arguments, call.memory, seed + i);
    return call.compare();
  } catch (const Fault& f) {
    return {f.what(), 0};
  }
}

Rows draw_rows(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr Type inputs[] = {Type::f32, Type::f16, Type::bf16};
  constexpr Type outputs[] = {Type::f32, Type::f16, Type::bf16, Type::e4m3, Type::i8};
  Rows p;
  p.x = inputs[below(3)], p.d = below(2) ? outputs[below(5)] : p.x;
  p.kind = RowsKind(below(4));
  p.m = 1 + below(20);
  p.n = 1 + below(largest);
  if (below(3)) p.n = (p.n + 7) / 8 * 8; // rows that are aligned, more often
  p.residual = below(2), p.output_residual = p.residual && below(2);
  p.scale = p.normalises() && below(2), p.bias = p.normalises() && below(2);
  return p;
}

} // namespace deepgen::ptx_sim
