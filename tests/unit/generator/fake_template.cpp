#include "tests/unit/generator/fake_template.h"

#include "base/text/error.h"

#include "mlir/IR/BuiltinOps.h"

namespace deepgen {

std::string FakeTemplate::why_not(const Problem&, const std::string& arch) const {
  return arch == "fake" ? "" : "it is for arch fake";
}

std::vector<Parameter> FakeTemplate::parameters(const Problem&, const Device&) const {
  return {{"isa", {1, 3, 4}, "level"},
          {"mr", {1, 2, 3, 4, 5, 6, 7, 8}, "rows of the tile"},
          {"nr", {8, 16, 32, 64}, "columns of the tile", {8, 128, 8}},
          {"pack", {0, 1}, "0: no, 1: pack B"}};
}

std::string FakeTemplate::why_illegal(const Problem&, const Device& device, const Config& c) const {
  if (c["isa"] > device.isa)
    return "isa=" + std::to_string(c["isa"]) + " on a device of " + std::to_string(device.isa);
  if (c["mr"] * c["nr"] > 128)
    return "mr * nr = " + std::to_string(c["mr"] * c["nr"]) + " > 128 accumulators";
  return "";
}

double FakeTemplate::cost(const Problem& p, const Device&, const Config& c) const {
  return p.flops() / double(c["isa"] * c["mr"] * c["nr"]);
}

Kernel FakeTemplate::emit(mlir::ModuleOp, const Problem&, const std::string&, const Config&) const {
  throw Error("the fake template emits nothing");
}

void register_fake_template() {
  static const FakeTemplate instance;
  [[maybe_unused]] static const bool once = (register_template(&instance), true);
}

Device fake_device(int64_t isa, const std::string& name) {
  Device device;
  device.arch = "fake";
  device.name = name;
  device.isa = isa;
  return device;
}

Choice fake_choice(int64_t isa, int64_t mr, int64_t nr, int64_t pack) {
  return {"fake_tile", {{{"isa", isa}, {"mr", mr}, {"nr", nr}, {"pack", pack}}}};
}

} // namespace deepgen
