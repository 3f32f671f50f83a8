// OperatorTemplate: a family of kernels for one operator. Unwraps the problem, once, so that a family knows
// its operator alone.
#pragma once

#include "templates/core/template.h"

namespace deepgen {

/// What each function is for, see Template.
template <typename Operator>
class OperatorTemplate : public Template {
public:
  virtual int64_t revision_for(const Operator&, const Config&) const { return revision(); }
  virtual std::string why_not(const Operator&, const std::string& arch) const = 0;
  /// Whether it has kernels for this size as an argument: where the problem has a range of it.
  virtual bool serves_range(Size) const { return false; }
  /// Whether its kernels read a packed B, of a problem that has it so.
  virtual bool serves_packed_b() const { return false; }
  /// Whether calls are shared out among threads of the CPU (Gemm::threads).
  virtual bool serves_threads() const { return false; }
  /// Whether its kernels read keys and values by pages (Attention::page_size).
  virtual bool serves_pages() const { return false; }
  /// Whether its blocks can share out the keys of an entry (Attention::splits).
  virtual bool serves_splits() const { return false; }
  /// Whether its kernels add a bias to scores (Attention::bias).
  virtual bool serves_bias() const { return false; }
  virtual std::vector<Parameter> parameters(const Operator&, const Device&) const = 0;
  virtual std::string why_illegal(const Operator&, const Device&, const Config&) const = 0;
  virtual bool dead_end(const Operator&, const Device&, const Config&, size_t assigned) const {
    (void)assigned;
    return false;
  }
  virtual double cost(const Operator&, const Device&, const Config&) const = 0;
  virtual std::vector<Choice> fallbacks(const Operator&, const std::string& arch, const Config&) const {
    (void)arch;
    return {};
  }
  virtual std::string sum_order(const Operator&, const std::string& arch, const Config& config) const {
    (void)arch;
    return Choice{name(), config}.text();
  }
  virtual int64_t workspace(const Operator&, const Config&) const { return 0; }
  virtual Operator awkward(const Operator&, const Config&) const = 0;
  virtual Kernel emit(mlir::ModuleOp, const Operator&, const std::string& arch, const Config&) const = 0;

  std::string op() const final { return Problem(Operator()).op(); }
  int64_t revision_for(const Problem& p, const Config& c) const final {
    return p.op() == op() ? revision_for(p.as<Operator>(), c) : revision();
  }
  std::string why_not(const Problem& p, const std::string& arch) const final {
    if (p.op() != op()) return name() + " computes " + op() + ", not " + p.op();
    const std::string unserved = why_unserved(p.as<Operator>());
    return unserved.empty() ? why_not(p.as<Operator>(), arch) : unserved;
  }
  std::vector<Parameter> parameters(const Problem& p, const Device& d) const final {
    return parameters(p.as<Operator>(), d);
  }
  std::string why_illegal(const Problem& p, const Device& d, const Config& c) const final {
    return why_illegal(p.as<Operator>(), d, c);
  }
  bool dead_end(const Problem& p, const Device& d, const Config& c, size_t assigned) const final {
    return dead_end(p.as<Operator>(), d, c, assigned);
  }
  double cost(const Problem& p, const Device& d, const Config& c) const final {
    return cost(p.as<Operator>(), d, c);
  }
  std::vector<Choice> fallbacks(const Problem& p, const std::string& arch, const Config& c) const final {
    return fallbacks(p.as<Operator>(), arch, c);
  }
  std::string sum_order(const Problem& p, const std::string& arch, const Config& c) const final {
    return sum_order(p.as<Operator>(), arch, c);
  }
  int64_t workspace(const Problem& p, const Config& c) const final { return workspace(p.as<Operator>(), c); }
  Problem awkward(const Problem& p, const Config& c) const final { return awkward(p.as<Operator>(), c); }
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const final;

private:
  std::string why_unserved(const Operator&) const;
};

extern template class OperatorTemplate<Gemm>;
extern template class OperatorTemplate<Rows>;
extern template class OperatorTemplate<Attention>;

using GemmTemplate = OperatorTemplate<Gemm>;
using RowsTemplate = OperatorTemplate<Rows>;
using AttentionTemplate = OperatorTemplate<Attention>;

} // namespace deepgen
