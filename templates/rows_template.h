// RowsTemplate: a family of kernels for Rows. Unwraps the problem, once, so that a family knows Rows alone.
#pragma once

#include "templates/template.h"

namespace deepgen {

/// What each function is for, see Template.
class RowsTemplate : public Template {
public:
  virtual std::string why_not(const Rows&, const std::string& arch) const = 0;
  virtual std::vector<Parameter> parameters(const Rows&, const Device&) const = 0;
  virtual std::string why_illegal(const Rows&, const Device&, const Config&) const = 0;
  virtual bool dead_end(const Rows&, const Device&, const Config&, size_t assigned) const {
    (void)assigned;
    return false;
  }
  virtual double cost(const Rows&, const Device&, const Config&) const = 0;
  virtual std::vector<Choice> fallbacks(const Rows&, const std::string& arch, const Config&) const {
    (void)arch;
    return {};
  }
  virtual int64_t workspace(const Rows&, const Config&) const { return 0; }
  virtual Rows awkward(const Rows&, const Config&) const = 0;
  virtual Kernel emit(mlir::ModuleOp, const Rows&, const std::string& arch, const Config&) const = 0;

  std::string op() const final { return "rows"; }
  std::string why_not(const Problem& p, const std::string& arch) const final {
    return p.op() == op() ? why_not(p.rows(), arch) : name() + " computes " + op() + ", not " + p.op();
  }
  std::vector<Parameter> parameters(const Problem& p, const Device& d) const final {
    return parameters(p.rows(), d);
  }
  std::string why_illegal(const Problem& p, const Device& d, const Config& c) const final {
    return why_illegal(p.rows(), d, c);
  }
  bool dead_end(const Problem& p, const Device& d, const Config& c, size_t assigned) const final {
    return dead_end(p.rows(), d, c, assigned);
  }
  double cost(const Problem& p, const Device& d, const Config& c) const final { return cost(p.rows(), d, c); }
  std::vector<Choice> fallbacks(const Problem& p, const std::string& arch, const Config& c) const final {
    return fallbacks(p.rows(), arch, c);
  }
  int64_t workspace(const Problem& p, const Config& c) const final { return workspace(p.rows(), c); }
  Problem awkward(const Problem& p, const Config& c) const final { return awkward(p.rows(), c); }
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const final;
};

} // namespace deepgen
