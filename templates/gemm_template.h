// GemmTemplate: a family of kernels for matrix products. Unwraps the problem, once, so that a family knows
// Gemm alone.
#pragma once

#include "templates/template.h"

namespace deepgen {

/// What each function is for, see Template.
class GemmTemplate : public Template {
public:
  virtual std::string why_not(const Gemm&, const std::string& arch) const = 0;
  virtual std::vector<Parameter> parameters(const Gemm&, const Device&) const = 0;
  virtual std::string why_illegal(const Gemm&, const Device&, const Config&) const = 0;
  virtual bool dead_end(const Gemm&, const Device&, const Config&, size_t assigned) const {
    (void)assigned;
    return false;
  }
  virtual double cost(const Gemm&, const Device&, const Config&) const = 0;
  virtual std::vector<Choice> fallbacks(const Gemm&, const std::string& arch, const Config&) const {
    (void)arch;
    return {};
  }
  virtual int64_t workspace(const Gemm&, const Config&) const { return 0; }
  virtual Gemm awkward(const Gemm&, const Config&) const = 0;
  virtual Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const = 0;

  std::string op() const final { return "gemm"; }
  std::string why_not(const Problem& p, const std::string& arch) const final {
    return p.op() == op() ? why_not(p.gemm(), arch) : name() + " computes " + op() + ", not " + p.op();
  }
  std::vector<Parameter> parameters(const Problem& p, const Device& d) const final {
    return parameters(p.gemm(), d);
  }
  std::string why_illegal(const Problem& p, const Device& d, const Config& c) const final {
    return why_illegal(p.gemm(), d, c);
  }
  bool dead_end(const Problem& p, const Device& d, const Config& c, size_t assigned) const final {
    return dead_end(p.gemm(), d, c, assigned);
  }
  double cost(const Problem& p, const Device& d, const Config& c) const final { return cost(p.gemm(), d, c); }
  std::vector<Choice> fallbacks(const Problem& p, const std::string& arch, const Config& c) const final {
    return fallbacks(p.gemm(), arch, c);
  }
  int64_t workspace(const Problem& p, const Config& c) const final { return workspace(p.gemm(), c); }
  Problem awkward(const Problem& p, const Config& c) const final { return awkward(p.gemm(), c); }
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const final;
};

} // namespace deepgen
