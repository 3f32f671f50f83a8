// Products of warpgroups, by wgmma.
#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/ir/hopper_ir.h"
#include "templates/ir/ir_record.h"

namespace deepgen {

namespace {

const char* type_name(Type t) {
  switch (t) {
  case Type::f16:
    return "f16";
  case Type::bf16:
    return "bf16";
  case Type::tf32:
    return "tf32";
  case Type::e4m3:
    return "e4m3";
  case Type::e5m2:
    return "e5m2";
  case Type::i8:
    return "s8";
  default:
    throw Error("wgmma does not multiply " + to_string(t));
  }
}

constexpr int64_t kStepBytes = 32;   ///< of K in one wgmma
constexpr int64_t kAtomBytes = 1024; ///< 8 rows of 128 bytes, after which the swizzle repeats

/// Everything of a matrix descriptor but the address (PTX ISA, "Matrix Descriptor Format"): the distance of
/// the slices along M or N (bits 16 to 29), that of the groups of 8 rows (bits 32 to 45), both in 16 bytes,
/// and the swizzle by 128 bytes.
uint64_t descriptor(const MatrixOperand& x) {
  const uint64_t leading = x.k_major ? 1 : uint64_t(x.slice_bytes / 16);
  return uint64_t(1) << 62 | uint64_t(kAtomBytes / 16) << 32 | leading << 16;
}

/// Descriptor units (16 bytes) from one step of K to the next.
int64_t step_units(const MatrixOperand& x, int64_t k) { return (x.k_major ? kStepBytes : k * 128) / 16; }

} // namespace

/// All steps of the stage are one piece of assembly: a piece has its sums as operands, which is what LLVM's
/// time goes to.
Values HopperIr::multiply_tiles(const WarpgroupMma& m, const MatrixOperand& a, const MatrixOperand& b_,
                                int64_t a_step, Value accumulate, mlir::ValueRange sums) {
  const bool integers = m.accumulate == Type::i32, halves = size_of(m.a) == 2;
  const int64_t k = kStepBytes / size_of(m.a), count = int64_t(sums.size()), each = m.registers();
  const int64_t steps = m.depth_bytes / kStepBytes;
  const std::string first = text(2 * count); // operands: results, tied sums, then these
  auto operand = [&](int64_t i) { return "$" + text(2 * count + i); };
  std::string code = "{ .reg .pred add, always; .reg .b64 da, db; .reg .b32 low; setp.ne.b32 add, " +
                     operand(2) + ", 0; setp.eq.b32 always, 0, 0; wgmma.fence.sync.aligned;\n";
  auto describe = [&](const char* name, int64_t i, uint64_t fixed, int64_t units) {
    code += "add.s32 low, " + operand(i) + ", " + text(units) + "; cvt.u64.u32 " + name + ", low; or.b64 " +
            name + ", " + name + ", " + text(int64_t(fixed)) + ";\n";
  };
  const std::string types =
      std::string(".") + (integers ? "s32" : "f32") + "." + type_name(m.a) + "." + type_name(m.b);
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t tile = 0; tile < m.m_tiles; ++tile) {
      describe("da", 0, descriptor(a), step * step_units(a, k) + tile * a_step / 16);
      describe("db", 1, descriptor(b_), step * step_units(b_, k));
      code += "wgmma.mma_async.sync.aligned.m64n" + text(m.n) + "k" + text(k) + types + " {";
      for (int64_t i = 0; i < each; ++i) code += (i ? ",$" : "$") + text(tile * each + i);
      code += std::string("}, da, db, ") + (step == 0 ? "add" : "always");
      if (!integers) code += ", 1, 1";
      if (halves) code += std::string(", ") + (a.k_major ? "0" : "1") + ", " + (b_.k_major ? "0" : "1");
      code += ";\n";
    }
  code += "wgmma.commit_group.sync.aligned; }";
  std::string constraints;
  for (int64_t i = 0; i < count; ++i) constraints += integers ? "=r," : "=f,";
  for (int64_t i = 0; i < count; ++i) constraints += text(i) + ",";
  Values operands(sums.begin(), sums.end());
  auto low_bits = [&](Value address) { return shift_right_bits(bit_and(address, 0x3ffff), 4); };
  operands.append({low_bits(a.address), low_bits(b_.address), accumulate});
  return fields_of(
      *this, assembly(record_of(count, sums[0].getType()), code, constraints + "r,r,r", operands, true));
}

void HopperIr::wait_products(int64_t in_flight) {
  assembly(nullptr, "wgmma.wait_group.sync.aligned " + text(in_flight) + ";", "", {}, true);
}

/// The sums pass through the wait, so that nothing that uses them moves before it.
Values HopperIr::finish_products(mlir::ValueRange sums) {
  const bool integers = sums[0].getType() == i32;
  std::string constraints;
  for (size_t i = 0; i < sums.size(); ++i) constraints += integers ? "=r," : "=f,";
  for (size_t i = 0; i < sums.size(); ++i) constraints += (i ? "," : "") + text(int64_t(i));
  mlir::Type record = record_of(int64_t(sums.size()), sums[0].getType());
  return fields_of(*this, assembly(record, "wgmma.wait_group.sync.aligned 0;", constraints, sums, true));
}

namespace {

/// The text of a group of wgmma, whose operands are results, as many tied sums, then `others`.
class GroupText {
public:
  GroupText(const WarpgroupMma& m, bool accumulate)
      : m_(m), count_(m.registers()), add_(accumulate ? "always" : "never") {
    code_ = "{ .reg .pred never, always; .reg .b64 da, db; .reg .b32 low, high; setp.ne.b32 never, 0, 0; "
            "setp.eq.b32 always, 0, 0; wgmma.fence.sync.aligned;\n";
  }
  std::string other(int64_t i) const { return "$" + text(2 * count_ + i); }
  /// A descriptor of what lies so many bytes behind the address in operand `i`, a descriptor's lower bits,
  /// which it does not leave.
  void describe(const char* name, int64_t i, const MatrixOperand& x, int64_t bytes) {
    const uint64_t fixed = descriptor(x);
    code_ += "add.s32 low, " + other(i) + ", " + text(int64_t(fixed & 0xffffffff) + bytes / 16) +
             "; mov.b32 high, " + text(int64_t(fixed >> 32)) + "; mov.b64 " + name + ", {low, high};\n";
  }
  /// `transposed`: which of the operands in shared memory are not K-major, of 16 bits.
  void multiply(const std::string& a, const std::string& transposed) {
    const int64_t size = size_of(m_.a);
    code_ += "wgmma.mma_async.sync.aligned.m64n" + text(m_.n) + "k" + text(kStepBytes / size) + ".f32." +
             type_name(m_.a) + "." + type_name(m_.b) + " {";
    for (int64_t i = 0; i < count_; ++i) code_ += (i ? ",$" : "$") + text(i);
    code_ += "}, " + a + ", db, " + add_ + ", 1, 1" + (size == 2 ? ", " + transposed : "") + ";\n";
    add_ = "always";
  }
  std::string end() const { return code_ + "wgmma.commit_group.sync.aligned; }"; }
  std::string constraints(const std::string& others) const {
    std::string out;
    for (int64_t i = 0; i < count_; ++i) out += "=f,";
    for (int64_t i = 0; i < count_; ++i) out += text(i) + ",";
    return out + others;
  }

private:
  const WarpgroupMma& m_;
  const int64_t count_;
  std::string add_, code_;
};

const char* is_transposed(const MatrixOperand& x) { return x.k_major ? "0" : "1"; }

} // namespace

Value HopperIr::descriptor_bits(Value address) { return shift_right_bits(bit_and(address, 0x3ffff), 4); }

Values HopperIr::multiply_steps(const WarpgroupMma& m, const MatrixOperand& a, const MatrixOperand& b_,
                                llvm::ArrayRef<ProductStep> steps, bool accumulate, mlir::ValueRange sums) {
  GroupText code(m, accumulate);
  for (const ProductStep& step : steps) {
    code.describe("da", 0, a, step.a), code.describe("db", 1, b_, step.b);
    code.multiply("da", std::string(is_transposed(a)) + ", " + is_transposed(b_));
  }
  Values operands(sums.begin(), sums.end());
  operands.append({descriptor_bits(a.address), descriptor_bits(b_.address)});
  mlir::Type record = record_of(int64_t(sums.size()), f32);
  return fields_of(*this, assembly(record, code.end(), code.constraints("r,r"), operands, true));
}

Values HopperIr::multiply_fragments(const WarpgroupMma& m, mlir::ValueRange fragments,
                                    const MatrixOperand& b_, bool accumulate, mlir::ValueRange sums) {
  constexpr int64_t kRegisters = 4; // of A, for a step of K
  constexpr int64_t kRow = 128 / kStepBytes;
  const int64_t steps = int64_t(fragments.size()) / kRegisters;
  GroupText code(m, accumulate);
  std::string others = "r";
  for (int64_t step = 0; step < steps; ++step) {
    std::string a = "{";
    for (int64_t i = 0; i < kRegisters; ++i, others += ",r")
      a += (i ? "," : "") + code.other(1 + kRegisters * step + i);
    code.describe("db", 0, b_,
                  b_.k_major ? step / kRow * b_.slice_bytes + step % kRow * kStepBytes : step * 16 * 128);
    code.multiply(a + "}", is_transposed(b_));
  }
  Values operands(sums.begin(), sums.end());
  operands.push_back(descriptor_bits(b_.address));
  operands.append(fragments.begin(), fragments.end());
  mlir::Type record = record_of(int64_t(sums.size()), f32);
  return fields_of(*this, assembly(record, code.end(), code.constraints(others), operands, true));
}

Values HopperIr::wait_products(int64_t in_flight, mlir::ValueRange results, mlir::ValueRange held) {
  const auto count = int64_t(results.size());
  std::string constraints;
  for (int64_t i = 0; i < count; ++i) constraints += "=f,";
  for (int64_t i = 0; i < count; ++i) constraints += (i ? "," : "") + text(i);
  for (size_t i = 0; i < held.size(); ++i) constraints += ",r";
  Values operands(results.begin(), results.end());
  operands.append(held.begin(), held.end());
  return fields_of(*this,
                   assembly(record_of(count, f32), "wgmma.wait_group.sync.aligned " + text(in_flight) + ";",
                            constraints, operands, true));
}

} // namespace deepgen
