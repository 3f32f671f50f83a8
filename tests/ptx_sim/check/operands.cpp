#include "tests/ptx_sim/check/operands.h"

#include "base/kernel/kernel_call.h"
#include "measure/gpu/cuda_launch.h"
#include "measure/gpu/toolbox/cuda_values.h"
#include "tests/ptx_sim/machine/tensor_map.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace deepgen::ptx_sim {
namespace {

using cuda::CallCase;
using cuda::Operand;

Format format_of(Type t) {
  switch (t) {
  case Type::f64:
    return Format::f64;
  case Type::f16:
    return Format::f16;
  case Type::bf16:
    return Format::bf16;
  case Type::e4m3:
    return Format::e4m3;
  case Type::e5m2:
    return Format::e5m2;
  case Type::i8:
    return Format::s8;
  case Type::i32:
    return Format::s32;
  default:
    return Format::f32; // tf32 is f32 in memory
  }
}

/// As measure/gpu/cuda_verify.cpp: more than the columns, and no better aligned than `unit` elements.
int64_t padded_ld(int64_t columns, int64_t unit) {
  const int64_t ld = (columns / unit + 1) * unit;
  return ld / unit % 2 == 0 ? ld + unit : ld;
}

template <typename T>
std::vector<uint8_t> bytes_of(const T& value, size_t count = sizeof(T)) {
  std::vector<uint8_t> out(count);
  std::memcpy(out.data(), &value, count);
  return out;
}

/// As runtime/nvidia/cuda_tensor_map.cpp encodes it.
SimulatedMap map_of(const Matrix& x, uint64_t base, uint64_t workspace, const Kernel& k,
                    const deepgen::TensorMap& map) {
  const Gemm& p = k.problem.gemm();
  const bool grouped = map.operand == "b" && p.groups;
  const int64_t batch = grouped ? p.groups : p.batch;
  int64_t sizes[] = {x.columns, x.rows, batch}, steps[] = {x.ld, x.stride};
  if (const PackedOperand& copy = map.packed; copy.ld) {
    base = workspace + uint64_t(copy.offset);
    sizes[0] = copy.columns, sizes[1] = copy.rows, steps[0] = copy.ld, steps[1] = copy.rows * copy.ld;
  }
  if (!sizes[0] || !sizes[1]) { // K is 0
    SimulatedMap none;
    none.magic = 0;
    return none;
  }
  return make_tensor_map(base, uint32_t(size_of(x.type)), has_entries(k) || grouped ? 3 : 2, sizes, steps,
                         map);
}

} // namespace

Matrix Operands::place(const std::string& name, Type type, int64_t rows, int64_t columns, int64_t batch,
                       int64_t align, bool padded, bool writable) {
  Matrix x;
  x.type = type, x.rows = rows, x.columns = columns, x.batch = batch;
  const int64_t unit = std::max<int64_t>(1, align / size_of(type)), gap = padded ? unit : 0;
  x.ld = padded ? padded_ld(columns, unit) : columns;
  x.stride = batch > 1 ? rows * x.ld + gap : 0;
  const int64_t size = std::max<int64_t>(0, x.bytes_at(batch - 1, rows - 1, columns)); // K may be 0
  x.region = memory.add(name, size_t(size), padded ? size_t(unit * size_of(type)) : 0, writable);
  x.lead = int64_t(memory[x.region].lead);
  memory[x.region].by_words = align < 4 && !writable;
  std::vector<uint8_t>& owned = memory[x.region].owned;
  for (int64_t e = 0; e < batch; ++e)
    for (int64_t r = 0; r < rows; ++r)
      std::fill_n(owned.begin() + x.bytes_at(e, r, 0), columns * size_of(type), uint8_t(1));
  return matrices[name] = x;
}

void Operands::fill(const std::string& name, const Matrix& x, const cuda::Values& v) {
  std::mt19937_64 random(v.seed);
  const Format format = format_of(x.type);
  std::vector<double>& all = values[name];
  all.clear();
  for (int64_t e = 0; e < x.batch; ++e)
    for (int64_t r = 0; r < x.rows; ++r)
      for (int64_t c = 0; c < x.columns; ++c) {
        const double u = double(random() >> 40) * 0x1p-23 - 1;
        const uint64_t bits = encode(format, v.centre + v.amplitude * u, true);
        std::memcpy(&memory[x.region].bytes[size_t(x.bytes_at(e, r, c))], &bits, size_t(size_of(x.type)));
        all.push_back(decode(format, bits));
      }
}

Operands::Operands(const Kernel& k, const CallCase& c, uint64_t seed) {
  const Gemm& p = k.problem.gemm();
  const cuda::Scalars s = cuda::scalars_of(p);
  alpha = c.alpha * s.unit_alpha, beta = c.beta;
  clamp_low = s.clamp_low, clamp_high = s.clamp_high;
  place("d", p.d, p.m, p.n, p.batch, k.align_d, c.padded, true);
  if (k.workspace > 0) place("workspace", Type::i8, 1, k.workspace, 1, 1, false, true);
  const auto input = [&](const char* name, Type type, int64_t rows, int64_t columns, bool broadcast,
                         int64_t align, Operand o) {
    const int64_t entries = o == Operand::b ? p.b_matrices() : p.batch;
    const Matrix x = place(name, type, rows, columns, broadcast ? 1 : entries, align, c.padded, false);
    fill(name, x, cuda::values_of(p, o, seed));
  };
  input("a", p.a, p.a_rows(), p.a_columns(), c.broadcast == CallCase::a, k.align_a, Operand::a);
  input("b", p.b, p.b_rows(), p.b_columns(), c.broadcast == CallCase::b, k.align_b, Operand::b);
  add_steps(k, c, seed);
  if (p.groups) {
    offsets = group_offsets(p, c.sharing, seed);
    const Matrix x = place("offsets", Type::i32, 1, p.groups + 1, 1, 4, c.padded, false);
    std::memcpy(&memory[x.region].bytes[size_t(x.bytes_at(0, 0, 0))], offsets.data(),
                offsets.size() * sizeof(int32_t));
  }
  add_c(k, c, seed);
}

void Operands::add_steps(const Kernel& k, const CallCase& c, uint64_t seed) {
  const Gemm& p = k.problem.gemm();
  for (EpilogueOp op : p.epilogue)
    for (const deepgen::Operand& x : operands_of(op, p)) {
      if (!x.in_memory()) continue;
      const bool is_d = x.is_matrix() && c.reuse && x.type == p.d;
      // Where both are D, they have the same values.
      const cuda::Values v = cuda::values_of(p, is_d ? EpilogueOp::multiply : op, seed);
      if (is_d)
        matrices[x.name] = matrices["d"];
      else if (x.is_matrix())
        place(x.name, x.type, x.rows, x.columns, x.entries, k.align_d, c.padded, false);
      else
        place(x.name, x.type, 1, x.count(), 1, size_of(x.type), c.padded, false);
      fill(x.name, matrices[x.name], v);
    }
}

void Operands::add_c(const Kernel& k, const CallCase& c, uint64_t seed) {
  const Gemm& p = k.problem.gemm();
  if (c.c == CallCase::absent) return;
  if (c.c == CallCase::in_place)
    matrices["c"] = matrices["d"];
  else
    place("c", p.d, p.m, p.n, p.batch, k.align_d, c.padded, false);
  if (c.beta != 0)
    fill("c", matrices["c"], cuda::values_of(p, Operand::c, seed));
  else
    std::fill(memory[matrices["c"].region].owned.begin(), memory[matrices["c"].region].owned.end(),
              uint8_t(0));
}

std::vector<uint8_t> Operands::argument(const Kernel& k, const std::string& name) const {
  const auto find = [&](std::string operand) { // C's leading dimension must be there where C is not
    auto found = matrices.find(operand);
    if (found == matrices.end() && operand == "c") found = matrices.find("d");
    if (found == matrices.end())
      throw Fault("the kernel wants the argument '" + name + "', which the problem does not have");
    return found->second;
  };
  if (name.starts_with("map_")) {
    std::vector<uint8_t> array;
    for (const deepgen::TensorMap& map : k.maps)
      if (name == "map_" + map.operand) {
        const Matrix x = find(map.operand);
        const uint64_t workspace = map.packed.ld ? memory[find("workspace").region].base : 0;
        const std::vector<uint8_t> one = bytes_of(map_of(x, memory[x.region].base, workspace, k, map));
        array.insert(array.end(), one.begin(), one.end());
      }
    if (!array.empty()) return array;
    throw Fault("the kernel has no map for its argument '" + name + "'");
  }
  for (size_t i = 0; i < size_count; ++i)
    if (name == size_names[i]) return bytes_of(k.problem.gemm().sizes()[Size(i)]);
  const Type scalar = k.problem.gemm().scale_type();
  const std::pair<const char*, double> scalars[] = {
      {"alpha", alpha}, {"beta", beta}, {"clamp_low", clamp_low}, {"clamp_high", clamp_high}};
  for (const auto& [scalar_name, value] : scalars)
    if (name == scalar_name) return bytes_of(cuda::scalar_bits(value, scalar), size_t(size_of(scalar)));
  if (name.starts_with("lda") || name.starts_with("ldb") || name.starts_with("ldc") ||
      name.starts_with("ldd"))
    return bytes_of(find(name.substr(2)).ld);
  if (name.starts_with("ld_")) return bytes_of(find(name.substr(3)).ld);
  if (name.starts_with("stride_")) return bytes_of(find(name.substr(7)).stride);
  if (name == "c" && !matrices.count("c")) return bytes_of(uint64_t(0));
  return bytes_of(memory[find(name).region].base);
}

double Operands::element(const Matrix& x, int64_t entry, int64_t row, int64_t column) const {
  uint64_t bits = 0;
  std::memcpy(&bits, &memory[x.region].bytes[size_t(x.bytes_at(entry, row, column))],
              size_t(size_of(x.type)));
  return decode(format_of(x.type), bits);
}

bool Operands::is_untouched(const Matrix& x, int64_t entry, int64_t row, int64_t column) const {
  return memory[x.region].writers[size_t(x.bytes_at(entry, row, column))] == 0;
}

} // namespace deepgen::ptx_sim
