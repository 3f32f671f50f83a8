// Template: a family of kernels. Knows which problems it serves, its parameters and their constraints, what a
// config should cost, and emits MLIR for one config. Nothing outside a template's own file pair knows its
// name.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"

#include <optional>

namespace mlir {
class ModuleOp;
}

namespace deepgen {

/// The values that a template can make beside those that it offers: a search file may add them. Constraints
/// are asked about no others, so what they divide by or shift by cannot be 0. Of an enumeration: none.
struct Extension {
  int64_t least = 1, most = 0;
  int64_t step = 1;    ///< its multiples
  bool powers = false; ///< powers of two alone

  bool holds(int64_t value) const {
    return value >= least && value <= most && value % step == 0 && (!powers || (value & (value - 1)) == 0);
  }
};

/// One dimension of a template's space.
struct Parameter {
  std::string name;
  std::vector<int64_t> values;
  std::string doc; ///< one line; for an enumeration, what each value means
  Extension more = {};
  /// Of a parameter that is younger than configs: what those mean that do not have it.
  std::optional<int64_t> absent = {};
};

class Template {
public:
  virtual ~Template() = default;

  virtual std::string name() const = 0;
  /// The operator that its kernels compute, as in Problem::op().
  virtual std::string op() const = 0;
  /// Raised when a change alters what an existing config means; a lock entry of another revision is stale.
  virtual int64_t revision() const = 0;
  /// The same for one problem and config, where a change altered what some configs mean and others kept their
  /// kernels. The config may be of any file.
  virtual int64_t revision_for(const Problem&, const Config&) const { return revision(); }
  /// Why this template does not serve the problem on the arch; empty when it does.
  virtual std::string why_not(const Problem&, const std::string& arch) const = 0;
  virtual std::vector<Parameter> parameters(const Problem&, const Device&) const = 0;
  /// The first constraint that the config breaks, in words with its numbers; empty when it is legal.
  virtual std::string why_illegal(const Problem&, const Device&, const Config&) const = 0;
  /// True when no config that starts with these `assigned` parameter values is legal; lets an enumeration
  /// skip whole branches. Must agree with why_illegal(): it may overlook, but never cut off a legal config.
  virtual bool dead_end(const Problem&, const Device&, const Config&, size_t assigned) const {
    (void)assigned;
    return false;
  }
  /// Estimated seconds of one call on one thread; ranks the space, so only the order matters.
  virtual double cost(const Problem&, const Device&, const Config&) const = 0;
  /// What to link beside this config so that the library runs on lesser devices of the arch, and on operands
  /// less aligned than the config wants, best first: the last one must take any that the types allow. May be
  /// of another template. Of a batch invariant problem those for less aligned operands are left out that add
  /// up in another order.
  virtual std::vector<Choice> fallbacks(const Problem&, const std::string& arch, const Config&) const {
    (void)arch;
    return {};
  }
  /// In which order a legal config adds up over K, in words. Whatever M is, wherever a row is and whatever
  /// the others hold, kernels of one order and arch give the same bits for a row: beside the order itself its
  /// words tell instruction and type of the sums, as far as configs differ in them. Problems that are batch
  /// invariant have kernels of one order alone. Without words of its own a template has as many orders as
  /// configs.
  virtual std::string sum_order(const Problem&, const std::string& arch, const Config& config) const {
    (void)arch;
    return Choice{name(), config}.text();
  }
  /// Bytes of workspace that a call of a GPU kernel needs (Kernel::workspace); says nothing about the CPU's.
  virtual int64_t workspace(const Problem&, const Config&) const { return 0; }
  /// A small shape with ragged edges on which the same config is verified too.
  virtual Problem awkward(const Problem&, const Config&) const = 0;
  /// Adds `kernel_symbol` to the module and returns its description (everything but the code, role and
  /// sha256). For a GPU: `target`, launches, maps and operand alignments too. Throws Error when the config
  /// cannot be emitted.
  virtual Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const = 0;
};

/// Name of the function that emit() defines for the CPU: void deepgen_kernel(ptr args). A GPU kernel names
/// its entries in Kernel::launches; the first one has this name.
inline constexpr const char* kernel_symbol = "deepgen_kernel";

/// All templates, in registration order. The other two are for tests: add one of their own, or have nothing
/// else.
const std::vector<const Template*>& templates();
void register_template(const Template*);
void use_only_template(const Template*);
/// Throws Error that lists the known names.
const Template& find_template(const std::string& name);

} // namespace deepgen
