// An attention that is tuned for a window: its key, what its call counts, which configs are legal, and what
// they should take.
#include "base/text/error.h"
#include "generator/lock/select.h"
#include "generator/space/space.h"
#include "templates/core/cheapest.h"
#include "templates/core/seen_keys.h"
#include "tests/unit/sanitized.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

namespace deepgen::attention_window_test {
namespace {

constexpr const char* kCall = "at_batch=1 at_queries=1024 at_keys=4096";
constexpr const char* kSquare = "at_batch=1 at_queries=4096 at_keys=4096";
constexpr const char* kDecode = "at_batch=4 at_queries=1 at_keys=4096";

std::string windowed(const std::string& field, const std::string& call, const std::string& mask = "window",
                     const std::string& type = "bf16") {
  return "attention heads=16 kv_heads=4 head_dim=64 value_dim=64 q=" + type + " kv=" + type + " out=" + type +
         " mask=" + mask + " queries=4096 keys=16384 options=lse " + field + (field.empty() ? "" : " ") +
         call;
}

std::string refusal(const std::string& key) {
  try {
    Problem::parse(key);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(AttentionWindow, IsReadAsItIsWritten) {
  const std::string key = windowed("bias=f32 page=64 splits=8 window=127,0", kCall);
  const Attention p = Attention::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_EQ(p.at_left, 127);
  EXPECT_EQ(p.at_right, 0);
  EXPECT_TRUE(p.windowed());
  for (const char* field : {"window=-1,0", "window=0,0", "window=16777216,-1"})
    EXPECT_EQ(Problem::parse(windowed(field, kCall)).key(), windowed(field, kCall));
  const std::string without = windowed("", kCall);
  EXPECT_EQ(Problem::parse(without).key(), without);
  EXPECT_FALSE(Attention::parse(without).windowed());
  EXPECT_FALSE(p.alone(1, 1, 1).windowed()) << "as the same function, tuned for any call";
}

TEST(AttentionWindow, IsThatOfEachOfSeveralCalls) {
  const std::string key = windowed("window=127,0", "at=1x1x4096+1x1024x4096");
  const Problem p = Problem::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_EQ(p.at({1, 4096, 1, 1}).key(), windowed("window=127,0", "at_batch=1 at_queries=1 at_keys=4096"));
}

TEST(AttentionWindow, WhatIsNoneSaysWhy) {
  for (const auto& [field, why] : {std::pair("window=127", "is no window"),
                                   {"window=", "is no window"},
                                   {"window=,", "is not an integer"},
                                   {"window=127,0,1", "is not an integer"},
                                   {"window=127,x", "is not an integer"},
                                   {"window=9999999999999999999999,0", "is not an integer"},
                                   {"window=-2,0", "out of range"},
                                   {"window=0,16777217", "out of range"},
                                   {"window=-9223372036854775808,0", "out of range"},
                                   {"window=-1,-1", "leave out the field"},
                                   {"window=0127,0", "canonical"},
                                   {"window=127,0 splits=8", "lacks the field"}})
    EXPECT_NE(refusal(windowed(field, kCall)).find(why), std::string::npos)
        << field << ": " << refusal(windowed(field, kCall));
  for (const char* mask : {"none", "causal", "causal_top_left"})
    EXPECT_NE(refusal(windowed("window=127,0", kCall, mask)).find("a mask that has none"), std::string::npos);
  Attention p;
  p.at_left = 5;
  EXPECT_THROW(validate(p), Error) << "of the mask none";
}

/// {queries, keys, left, right} of all kinds.
std::vector<std::array<int64_t, 4>> drawn_windows(size_t count) {
  std::mt19937_64 random(3);
  std::vector<std::array<int64_t, 4>> all = {{1, 1, 0, 0}, {1, 40, 7, -1}, {67, 9, 3, 1}, {9, 67, 500, 500}};
  while (all.size() < count) {
    const auto below = [&](uint64_t n) { return int64_t(random() % n); };
    all.push_back({1 + below(70), 1 + below(70), below(40) - 1, below(40) - 1});
  }
  return all;
}

bool sees(const Attention& p, int64_t t, int64_t j) {
  const int64_t own = t + p.at_keys - p.at_queries;
  switch (p.mask) {
  case AttentionMask::causal:
    return j <= own;
  case AttentionMask::causal_top_left:
    return j <= t;
  case AttentionMask::window:
    return (p.at_left < 0 || j >= own - p.at_left) && (p.at_right < 0 || j <= own + p.at_right);
  case AttentionMask::none:
    break;
  }
  return true;
}

TEST(AttentionWindow, PairsAndKeysAreThoseThatAreSeen) {
  for (const auto& [queries, keys, left, right] : drawn_windows(400))
    for (AttentionMask mask : {AttentionMask::window, AttentionMask::causal, AttentionMask::causal_top_left,
                               AttentionMask::none}) {
      Attention p;
      p.mask = mask, p.head_dim = 1, p.value_dim = 1, p.heads = p.kv_heads = 1;
      p.queries = p.at_queries = queries, p.keys = p.at_keys = keys;
      if (mask == AttentionMask::window) p.at_left = left, p.at_right = right;
      int64_t pairs = 0, read = 0;
      for (int64_t j = 0; j < keys; ++j) {
        int64_t by = 0;
        for (int64_t t = 0; t < queries; ++t) by += sees(p, t, j);
        pairs += by, read += by > 0;
      }
      EXPECT_EQ(p.flops(), 4 * double(pairs)) << p.key();
      for (int64_t t = 0; t < queries; ++t) {
        const auto [from, to] = p.seen_keys(t);
        for (int64_t j = 0; j < keys; ++j) ASSERT_EQ(j >= from && j < to, sees(p, t, j)) << p.key();
      }
      if (mask == AttentionMask::window) {
        EXPECT_EQ(p.bytes(), double(8 * queries + 8 * read)) << p.key();
      }
    }
}

/// Of tiles that begin with a row of any head of the group, held against each tile's own keys.
TEST(AttentionWindow, TilesSeeWhatTheirRowsSee) {
  for (const auto& [queries, keys, left, right] : drawn_windows(60))
    for (const auto& [rows, group] :
         {std::pair<int64_t, int64_t>{1, 1}, {16, 1}, {16, 8}, {4, 8}, {6, 4}, {64, 3}, {16, 7}}) {
      Attention p;
      p.mask = AttentionMask::window, p.at_left = left, p.at_right = right;
      p.queries = p.at_queries = queries, p.keys = p.at_keys = keys;
      const RowTile tile{rows, group};
      constexpr int64_t kBlock = 16;
      int64_t most = 0, tiles = 0, most_tokens_of = 0;
      int64_t met = 0, blocks = 0;
      for (int64_t row = 0; row < queries * group; row += rows, ++tiles) {
        int64_t from = keys, to = 0;
        const int64_t last = std::min(row + rows, queries * group) - 1;
        most_tokens_of = std::max(most_tokens_of, last / group - row / group + 1);
        for (int64_t t = row / group; t <= last / group; ++t)
          for (int64_t j = 0; j < keys; ++j)
            if (sees(p, t, j)) from = std::min(from, j), to = std::max(to, j + 1);
        if (from >= to) continue;
        most = std::max(most, to - from);
        met += to - from / kBlock * kBlock;
        blocks += (to + kBlock - 1) / kBlock - from / kBlock;
      }
      SCOPED_TRACE(p.key() + " " + std::to_string(rows) + " " + std::to_string(group));
      EXPECT_GE(tile.tokens(p), most_tokens_of);
      EXPECT_LE(tile.tokens(p), most_tokens_of + 1) << "of tiles that are not the last";
      EXPECT_GE(tile.most_keys(p), most);
      EXPECT_LE(tile.most_keys(p), most + rows) << "wherever a tile begins";
      const auto close = [&](double found, double exact) { // of many tiles not all are looked at
        if (tiles <= 61)
          EXPECT_NEAR(found, exact, 1e-9);
        else
          EXPECT_NEAR(found, exact, 0.15 * exact + 0.5);
      };
      close(tile.mean_keys(p, kBlock), double(met) / double(tiles));
      close(tile.mean_key_blocks(p, kBlock), double(blocks) / double(tiles));
    }
}

struct WindowTemplate {
  const char *name, *arch, *type;
};
constexpr WindowTemplate kAll[] = {{"cpu_attention", "cpu", "f32"},
                                   {"mma_attention", "sm_80", "bf16"},
                                   {"hopper_attention", "sm_90a", "bf16"},
                                   {"mfma_attention", "gfx942", "bf16"}};

Device device_for(const WindowTemplate& t) {
  return std::string(t.arch) == "cpu" ? generic_device("cpu") : generic_gpu(t.arch);
}

class WindowEstimate : public testing::TestWithParam<WindowTemplate> {
protected:
  Problem problem(const std::string& field, const std::string& call = kCall,
                  const std::string& mask = "window") const {
    return Problem::parse(windowed(field, call, mask, GetParam().type));
  }
  double cost(const Problem& p) const { return source.cost(p, device, config); }

  const Template& source = find_template(GetParam().name);
  const Device device = device_for(GetParam());
  const Config config = *cheapest(source, problem("window=1023,0"), device);
};

/// 128 of 4096 keys: a sixteenth of the work, and what comes with blocks that are seen in part.
TEST_P(WindowEstimate, FollowsTheKeysThatAreSeen) {
  const double all = cost(problem("")), some = cost(problem("window=1023,0")),
               few = cost(problem("window=127,0"));
  EXPECT_LT(few, 0.3 * all);
  EXPECT_LT(few, 0.7 * some);
  EXPECT_LT(some, 0.6 * all);
  EXPECT_NEAR(cost(problem("window=8192,8192")) / all, 1, 0.02) << "all keys are seen";
  EXPECT_NEAR(cost(problem("window=-1,0", kSquare)) / cost(problem("", kSquare, "causal")), 1, 0.15);
}

TEST_P(WindowEstimate, OfBothSidesIsThatOfOne) {
  const double left = cost(problem("window=511,0", kSquare)), right = cost(problem("window=0,511", kSquare));
  EXPECT_NEAR(right / left, 1, 0.1);
  EXPECT_GT(cost(problem("window=511,511", kSquare)), 1.4 * left);
}

/// The default, and each one near it, for windows that are hardly any and that are more than all.
TEST_P(WindowEstimate, ThereIsALegalConfigOfAnyWindow) {
  for (const char* field : {"window=0,0", "window=127,0", "window=0,-1", "window=16777216,16777216"})
    for (const char* call : {kCall, kDecode, "at_batch=1 at_queries=77 at_keys=40"}) {
      const Problem p = problem(field, call);
      const std::optional<Config> best = cheapest(source, p, device);
      ASSERT_TRUE(best) << p.key();
      EXPECT_EQ(source.why_illegal(p, device, *best), "") << p.key();
    }
}

INSTANTIATE_TEST_SUITE_P(All, WindowEstimate, testing::ValuesIn(kAll),
                         [](const auto& x) { return std::string(x.param.name); });

/// Blocks of a GPU share out the keys of the window: of 128 keys, 32 of them leave some without any.
TEST(AttentionWindow, SplitsShareOutWhatIsSeen) {
  for (const WindowTemplate& t : kAll) {
    if (std::string(t.arch) == "cpu") continue;
    SCOPED_TRACE(t.name);
    const Template& source = find_template(t.name);
    const Device device = device_for(t);
    const Problem all = Problem::parse(windowed("", kDecode)),
                  few = Problem::parse(windowed("window=127,0", kDecode));
    Config config = *cheapest(source, all, device);
    config.set("keys", 64), config.set("splits", 32);
    config.set("stages", std::min<int64_t>(config["stages"], 2));
    EXPECT_EQ(source.why_illegal(all, device, config).find("without any"), std::string::npos);
    EXPECT_NE(source.why_illegal(few, device, config).find("without any of the 191 keys"), std::string::npos)
        << source.why_illegal(few, device, config);
    const Config best = *cheapest(source, few, device);
    for (const auto& [name, value] : best.values)
      if (name == "splits") {
        EXPECT_LE(value, 4) << best.text();
      }
    config.set("splits", 2);
    EXPECT_EQ(source.why_illegal(few, device, config).find("without any"), std::string::npos);
  }
}

/// Whatever an enumeration skips is illegal, and whatever it has is legal: a window's rules know heads that
/// are packed later than they are asked.
TEST(AttentionWindow, SpacesHoldEachLegalConfig) {
  if (kSanitized) GTEST_SKIP() << "whole spaces";
  for (const WindowTemplate& t : kAll) {
    SCOPED_TRACE(t.name);
    const Template& source = find_template(t.name);
    const Device device = device_for(t);
    const Problem p =
        Problem::parse(windowed("window=100,0", "at_batch=1 at_queries=32 at_keys=4096", "window", t.type));
    const std::vector<Parameter> parameters = source.parameters(p, device);
    size_t legal = 0;
    Config config;
    const std::function<void(size_t, bool)> walk = [&](size_t i, bool dead) {
      if (i == parameters.size()) {
        const bool is_legal = source.why_illegal(p, device, config).empty();
        ASSERT_FALSE(dead && is_legal) << config.text();
        legal += is_legal;
        return;
      }
      for (int64_t value : parameters[i].values) {
        config.values.emplace_back(parameters[i].name, value);
        walk(i + 1, dead || source.dead_end(p, device, config, i + 1));
        config.values.pop_back();
      }
    };
    walk(0, false);
    EXPECT_EQ(Space(p, t.arch, device).families().front().legal, legal);
  }
}

} // namespace
} // namespace deepgen::attention_window_test
