#include "tests/faulty/faulty_template.h"

#include "base/text/error.h"
#include "templates/cpu/cpu_tile.h"
#include "templates/cpu/micro_kernel.h"
#include "templates/ir/ir_builder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

enum Fault { kNone, kCrash, kHang, kOutOfBounds, kWrong, kNoCompile, kSlow };

const Template& correct() {
  static const CpuTile cpu_tile;
  return cpu_tile;
}

/// The SSE2 config that cpu_tile links as the last resort: right on every CPU.
Config plain(const Gemm& p) {
  Config level2 = Config::parse("isa=2 form=0 mr=1 nv=1 kc=1 ku=1 pack=0 mc=1 nc=1 loops=0 prefetch=0");
  return correct().fallbacks(p, "cpu", level2).back().config;
}

/// Adds 1 to the element of D at `row`.
void disturb(Ir& ir, const Gemm& p, Value args, int64_t row) {
  Value at = ir.at(load_arg(ir, p, args, "d"), ir.mul(load_arg(ir, p, args, "ldd"), row));
  Value old = ir.load_vector(at, 1);
  ir.store_vector(ir.addf(old, ir.splat(1.0)), at, 1);
}

void misbehave(Ir& ir, Fault fault, const Gemm& p, Value args) {
  switch (fault) {
  case kCrash:
    mlir::LLVM::Trap::create(ir.b, ir.loc);
    break;
  case kHang: // volatile, or LLVM would delete the loop
    ir.loop(ir.constant(0), ir.constant(int64_t(1) << 62), 1,
            [&](Value) { mlir::LLVM::LoadOp::create(ir.b, ir.loc, ir.i64, args, 8, true); });
    break;
  case kOutOfBounds:
    disturb(ir, p, args, p.m);
    break;
  case kWrong:
    disturb(ir, p, args, 0);
    break;
  case kSlow:
    ir.loop(ir.constant(0), ir.constant(200000), 1,
            [&](Value) { mlir::LLVM::LoadOp::create(ir.b, ir.loc, ir.i64, args, 8, true); });
    break;
  case kNone:
  case kNoCompile:
    break;
  }
}

} // namespace

std::string FaultyTemplate::why_not(const Gemm& p, const std::string& arch) const {
  return correct().why_not(p, arch);
}

std::vector<Parameter> FaultyTemplate::parameters(const Gemm&, const Device&) const {
  return {{"fault", {0, 1, 2, 3, 4, 5, 6}, "what goes wrong"}};
}

Gemm FaultyTemplate::awkward(const Gemm& p, const Config&) const {
  return correct().awkward(p, plain(p)).gemm();
}

Kernel FaultyTemplate::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch,
                            const Config& config) const {
  const auto fault = Fault(config["fault"]);
  if (fault == kNoCompile) throw Error("this candidate does not compile", "fault=5", "it was asked to");
  Kernel kernel = correct().emit(module, p, arch, plain(p));
  module.lookupSymbol<mlir::func::FuncOp>(kernel_symbol).setSymName("inner");
  Ir ir(module, {1, p.a});
  ir.function(kernel_symbol, {ir.pointer}, false, [&](mlir::ValueRange parameters) {
    ir.call("inner", {parameters[0]});
    misbehave(ir, fault, p, parameters[0]);
  });
  kernel.choice = {name(), config};
  return kernel;
}

} // namespace deepgen
