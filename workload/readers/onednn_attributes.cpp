#include "workload/log/fields.h"
#include "workload/readers/onednn.h"

#include <algorithm>

namespace deepgen {
namespace {

void add(OnednnCall& one, EpilogueOp op) {
  if (one.gemm.has(op)) throw Untranslatable{"it has the step '" + to_string(op) + "' twice"};
  one.gemm.epilogue.push_back(op);
}

/// "src0:0:f32": what is scaled, and a bit for each dimension along which scales differ.
void read_scale(std::string_view text, OnednnCall& one, bool& of_output) {
  std::string_view rest = text;
  const std::string_view name = cut_first(rest, ':'), mask = cut_first(rest, ':');
  const int64_t bits = size_of_text("mask of scales", mask), columns = int64_t(1) << (one.dimensions - 1);
  const bool source = name == "src" || name == "src0", weights = name == "wei" || name == "weights";
  if (source && bits == 0)
    add(one, EpilogueOp::scale_a);
  else if (weights && bits == 0)
    add(one, EpilogueOp::scale_b);
  else if (weights && bits == columns)
    add(one, EpilogueOp::scale_col);
  else if (name == "dst" && bits == 0)
    of_output = true;
  else
    throw Untranslatable{"its scales " + shown(text) + " are not served"};
}

void read_scales(std::string_view list, OnednnCall& one, bool& of_output) {
  if (list.starts_with('\'')) throw Untranslatable{"its scales " + shown(list) + " are not served"};
  for (std::string_view scale : split(list, '+')) read_scale(scale, one, of_output);
}

/// "0:0.5": the mask; one scale for all is alpha.
void read_output_scale(std::string_view text, OnednnCall& one) {
  std::string_view rest = text;
  const int64_t bits = size_of_text("mask of scales", cut_first(rest, ':'));
  if (bits == int64_t(1) << (one.dimensions - 1))
    add(one, EpilogueOp::scale_col);
  else if (bits != 0)
    throw Untranslatable{"its scales " + shown(text) + " are not served"};
}

EpilogueOp elementwise(std::string_view name, std::string_view parameters) {
  const auto plain = [&](std::string_view usual) {
    return parameters.empty() || parameters.starts_with(usual);
  };
  if (name == "eltwise_relu" && plain("0")) return EpilogueOp::relu;
  if (name == "eltwise_gelu_erf") return EpilogueOp::gelu;
  if (name == "eltwise_gelu_tanh" || name == "eltwise_gelu") return EpilogueOp::gelu_tanh;
  if (name == "eltwise_swish" && plain("1")) return EpilogueOp::silu;
  if (name == "eltwise_logistic") return EpilogueOp::sigmoid;
  if (name == "eltwise_clip" || name == "eltwise_clip_v2") return EpilogueOp::clamp;
  throw Untranslatable{"its step " + shown(name) + " is not served"};
}

/// "binary_add:f32:3:ab": of a matrix, or of one value for each column.
EpilogueOp binary(std::string_view name, std::string_view parameters, const OnednnCall& one) {
  const std::string_view type = cut_first(parameters, ':');
  const int64_t bits = size_of_text("mask of " + std::string(name), cut_first(parameters, ':'));
  const int64_t columns = int64_t(1) << (one.dimensions - 1), all = 2 * columns - 1;
  const bool own_type = type == to_string(one.gemm.epilogue_type());
  if (name == "binary_add" && own_type && bits == columns) return EpilogueOp::bias;
  if (name == "binary_add" && own_type && bits == all) return EpilogueOp::residual;
  if (name == "binary_mul" && own_type && bits == all) return EpilogueOp::multiply;
  if (name == "binary_mul" && type == to_string(one.gemm.scale_type()) && bits == columns)
    return EpilogueOp::scale_col;
  throw Untranslatable{"its step " + std::string(name) + " of " + shown(type) + " with mask " +
                       std::to_string(bits) + " is not served"};
}

void read_steps(std::string_view list, OnednnCall& one) {
  if (list.starts_with('\'') && list.ends_with('\'') && list.size() > 1)
    list = list.substr(1, list.size() - 2);
  bool first = true;
  for (std::string_view step : split(list, list.find(';') == list.npos ? '+' : ';')) {
    if (step.empty()) continue;
    const std::string_view name = cut_first(step, ':');
    if (name == "sum") { // beta C, which stands before the rest
      if (!first || !one.gemm.epilogue.empty())
        throw Untranslatable{"it adds to D behind other steps or scales, which is not served"};
    } else if (name.starts_with("eltwise")) {
      add(one, elementwise(name, step));
    } else if (name.starts_with("binary_")) {
      add(one, binary(name, step, one));
    } else {
      throw Untranslatable{"its step " + shown(name) + " is not served"};
    }
    first = false;
  }
}

} // namespace

void read_attributes(std::string_view text, OnednnCall& one) {
  std::string_view steps;
  bool of_output = false;
  while (!text.empty()) {
    std::string_view value = cut_first(text, ' ');
    const std::string_view name = cut_first(value, ':');
    if (name == "attr-scales")
      read_scales(value, one, of_output);
    else if (name == "attr-oscale")
      read_output_scale(value, one);
    else if (name == "attr-post-ops")
      steps = value;
    else if (name == "attr-fpmath" && value.starts_with("tf32") && one.gemm.a == Type::f32)
      one.gemm.a = one.gemm.b = Type::tf32;
    else if (name == "attr-fpmath" && !value.starts_with("strict"))
      throw Untranslatable{"its mathematics " + shown(value) + " is not served"};
    else if (name == "attr-zero-points")
      throw Untranslatable{"zero points are not served"};
  }
  if (one.bias) {
    // A bias is added before `sum`, but adding has no order that matters here.
    std::vector<EpilogueOp> scales;
    scales.swap(one.gemm.epilogue);
    if (!scales.empty() && steps.find("sum") != steps.npos)
      throw Untranslatable{"it adds to D behind other steps or scales, which is not served"};
    read_steps(steps, one);
    one.gemm.epilogue.insert(one.gemm.epilogue.begin(), EpilogueOp::bias);
    one.gemm.epilogue.insert(one.gemm.epilogue.begin(), scales.begin(), scales.end());
  } else {
    read_steps(steps, one);
  }
  if (of_output) add(one, EpilogueOp::scale_d);
}

} // namespace deepgen
