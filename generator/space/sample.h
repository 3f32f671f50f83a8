// Samples: random candidates, for tests that must not only see the shapes and configs somebody thought of.
#pragma once

#include "templates/core/template.h"

#include <optional>
#include <random>

namespace deepgen {

/// One candidate. Samples print as the arguments of `deepgen dump`.
struct RandomCandidate {
  Problem problem;
  std::string arch;
  Choice choice;
};

struct SampleSpec {
  std::string op = "gemm"; ///< the operator
  std::vector<std::string> archs;
  std::vector<std::string> templates; ///< names; empty: all
  uint64_t seed = 1;
  size_t count = 0;       ///< so many, spread evenly over archs, templates and types of A or X; 0: every cell
  size_t each = 1;        ///< samples per cell, without a count
  int64_t largest = 3000; ///< size of M, N and K; of rows: an eighth of the largest N
  double most_flops = 1e300; ///< of one problem, for those who run them
  bool ranges = false;       ///< sizes of GEMMs become ranges, and configs are legal at some sizes of these
  bool defaults = false; ///< the default config of the whole space instead of a random one of the template
};

/// A cell is an arch, a template, the types of A, B and D, and a layout; of rows: the types of X and D, and a
/// kind. In each one that the template serves, draws sizes (tiny, prime, multiples of tiles), batch, an
/// epilogue or options, and a legal config for the arch's generic device. The same spec gives the same
/// samples.
std::vector<RandomCandidate> draw_samples(const SampleSpec&);

/// Sizes that a call may pass: ends of ranges, near multiples of what tiles have, anything.
Sizes draw_sizes(const Gemm&, std::mt19937_64&);
/// Those of so many calls. Of a range of K there is one more, with K 0.
std::vector<Sizes> draw_calls(const Gemm&, std::mt19937_64&, int count);
/// A legal config, at random; nothing when none was found.
std::optional<Config> draw_config(const Template&, const Problem&, const Device&, std::mt19937_64&);
/// Sizes, batch, groups, gate and epilogue, at random; types and layout are kept.
void draw_shape(Gemm&, const SampleSpec&, std::mt19937_64&);
/// Sizes and options, at random; types and kind are kept.
void draw_shape(Rows&, const SampleSpec&, std::mt19937_64&);
void draw_shape(Attention&, const SampleSpec&, std::mt19937_64&);

} // namespace deepgen
