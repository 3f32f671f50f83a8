#include "generator/search/search.h"

#include "generator/search/flat_top.h"
#include "generator/search/strategy.h"

#include <algorithm>

namespace deepgen {
namespace {

/// A round chooses by one state of knowledge, however many candidates it has: the next one knows better.
constexpr size_t kPatientRounds = 2;

bool has_patience(const SearchOptions& o, const Standstill& still) {
  return o.patience == 0 || still.trials < size_t(o.patience) || still.rounds < kPatientRounds;
}

bool nothing_to_gain(const SearchInput& in, const History& history) {
  return in.least_gain > 0 && in.round > 0 && in.options.patience != 0 &&
         smallest_ratio_bound(history.trials()) > history.best_ratio() * (1 - in.least_gain);
}

/// How many candidates the round may have.
size_t room(const SearchInput& in, const History& history) {
  const SearchOptions& o = in.options;
  if (!has_patience(o, history.standstill()) || nothing_to_gain(in, history)) return 0;
  if (!o.trials) return in.slots;
  const int64_t left = *o.trials - int64_t(history.count());
  return std::min(in.slots, size_t(std::max<int64_t>(left, 0)));
}

} // namespace

bool nothing_to_gain(const SearchInput& in, const Space& space) {
  return nothing_to_gain(in, History(space, in));
}

Plan next_plan(const SearchInput& in, const Space& space) {
  const Strategy& strategy = find_strategy(in.options.strategy);
  space.default_choice(); // throws when no config is legal
  const History history(space, in);
  Picker picker(space, in, history, room(in, history));
  if (in.round == 0) {
    picker.pick(0, "default");
    if (in.incumbent)
      if (auto rank = space.rank(*in.incumbent)) picker.pick(*rank, "incumbent");
  }
  if (!picker.full()) strategy.propose({space, in, history}, picker);
  return picker.finish();
}

Plan next_plan(const SearchInput& in) {
  return next_plan(in, Space(in.problem, in.arch, in.device, in.options, in.incumbent));
}

} // namespace deepgen
