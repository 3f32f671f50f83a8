#include "templates/core/cheapest.h"

namespace deepgen {
namespace {

/// Depth first, changing one Config in place.
class Walk {
public:
  Walk(const Template& source, const Problem& problem, const Device& device)
      : source_(source), problem_(problem), device_(device), parameters_(source.parameters(problem, device)) {
    for (const Parameter& p : parameters_) config_.values.emplace_back(p.name, 0);
  }

  std::optional<Config> best() {
    visit(0);
    return best_;
  }

private:
  void visit(size_t assigned) {
    if (assigned == parameters_.size()) return leaf();
    for (int64_t value : parameters_[assigned].values) {
      config_.values[assigned].second = value;
      if (!source_.dead_end(problem_, device_, config_, assigned + 1)) visit(assigned + 1);
    }
  }

  void leaf() {
    if (!source_.why_illegal(problem_, device_, config_).empty()) return;
    const double cost = source_.cost(problem_, device_, config_);
    if (best_ && (cost > cost_ || (cost == cost_ && text(config_) > text(*best_)))) return;
    best_ = config_, cost_ = cost;
  }

  std::string text(const Config& config) const { return Choice{source_.name(), config}.text(); }

  const Template& source_;
  const Problem& problem_;
  const Device& device_;
  const std::vector<Parameter> parameters_;
  Config config_;
  std::optional<Config> best_;
  double cost_ = 0;
};

} // namespace

std::optional<Config> cheapest(const Template& source, const Problem& problem, const Device& device) {
  return Walk(source, problem, device).best();
}

Device modest_cpu(int64_t level) {
  Device device;
  device.isa = level;
  device.l1d = 32 << 10, device.l2 = 512 << 10, device.l3 = 8 << 20;
  return device;
}

} // namespace deepgen
