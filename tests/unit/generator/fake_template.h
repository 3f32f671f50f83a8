// A small template on an arch of its own, "fake", for tests of space, search, lock and selection without code
// generation.
#pragma once

#include "templates/core/template.h"

namespace deepgen {

/// Parameters isa {1,3,4}, mr {1..8}, nr {8,16,32,64} and by a search file multiples of 8 up to 128, pack
/// {0,1}; legal when mr * nr <= 128 and the device has the isa. Cost falls with isa and with the tile; pack
/// does not matter, so that half of all costs are ties.
class FakeTemplate : public Template {
public:
  std::string name() const override { return "fake_tile"; }
  std::string op() const override { return "gemm"; }
  int64_t revision() const override { return 3; }
  std::string why_not(const Problem&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Problem&, const Device&) const override;
  std::string why_illegal(const Problem&, const Device&, const Config&) const override;
  double cost(const Problem&, const Device&, const Config&) const override;
  Problem awkward(const Problem& p, const Config&) const override { return p; }
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const override;
};

/// Registers it, once a process.
void register_fake_template();
Device fake_device(int64_t isa = 4, const std::string& name = "fake device");
Choice fake_choice(int64_t isa, int64_t mr, int64_t nr, int64_t pack);

} // namespace deepgen
