// What all programs share: what they are told, arms that are timed in rounds of random order, and their raw
// samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

struct Settings {
  int rounds = 15;
  std::string only, csv; ///< a row's name, or empty: all; the file of raw samples
  bool takes(const std::string& row) const { return only.empty() || only == row; }
};

/// --csv FILE [--rounds n] [--row name], and what `more` names, numbers. Ends the program where something
/// else is said, or too little.
inline void read_settings(int argc, char** argv, Settings& s,
                          const std::map<std::string, double*>& more = {}) {
  bool known = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    const auto own = more.find(key);
    if (key == "--rounds")
      s.rounds = std::atoi(value.c_str());
    else if (key == "--row")
      s.only = value;
    else if (key == "--csv")
      s.csv = value;
    else if (own != more.end())
      *own->second = std::atof(value.c_str());
    else
      known = false;
  }
  if (known && s.rounds >= 3 && !s.csv.empty()) return;
  std::fprintf(stderr, "usage: %s --csv FILE [--rounds n>=3] [--row name]", argv[0]);
  for (const auto& [key, value] : more) std::fprintf(stderr, " [%s %g]", key.c_str(), *value);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

/// One way to compute a row. `counted`: same contract as DeepGen's call (operands as the caller stores them);
/// a peer that gets B repacked before the clock starts is part of "best peer" where DeepGen's is packed, too.
struct Arm {
  std::string name;
  bool counted;
  std::function<void()> call;
};

struct Timed {
  Arm arm;
  int64_t calls = 1; ///< per sample
  std::vector<double> seconds;
};

/// The file of raw samples: a line for each.
class Samples {
public:
  /// `names`: what says which row a sample is of, "row" or "row,m".
  Samples(const std::string& file, const std::string& names) : out_(file) {
    out_ << names << ",arm,round,seconds\n";
  }
  void add(const std::string& row, const std::vector<Timed>& arms) {
    for (const Timed& t : arms)
      for (size_t i = 0; i < t.seconds.size(); ++i)
        out_ << row << ',' << t.arm.name << ',' << i << ',' << t.seconds[i] << '\n';
  }
  bool good() const { return out_.good(); }

private:
  std::ofstream out_;
};

/// Of this thread.
inline double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

inline double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1) + 0.5)];
}

/// Adds a sample of every arm in each round: `sample(arm)`, seconds of one call.
template <typename Sample>
void time_in_rounds(std::vector<Timed>& arms, int rounds, const Sample& sample) {
  std::mt19937 rng(1);
  std::vector<size_t> order(arms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), rng);
    for (size_t i : order) arms[i].seconds.push_back(sample(arms[i]));
  }
}

/// On one thread: a sample is warm calls for `warm` seconds of CPU time, at least one, and then enough calls
/// for `seconds`. Arms that share B find it in the last-level cache, an arm with a copy of its own only after
/// many calls.
inline void time_on_one_thread(std::vector<Timed>& arms, int rounds, double seconds, double warm = 0) {
  for (Timed& t : arms) {
    t.arm.call();
    const double begin = cpu_seconds();
    t.arm.call();
    t.calls = std::max<int64_t>(1, int64_t(seconds / std::max(cpu_seconds() - begin, 1e-7)));
  }
  time_in_rounds(arms, rounds, [warm](const Timed& t) {
    double begin = cpu_seconds();
    do t.arm.call();
    while (cpu_seconds() - begin < warm);
    begin = cpu_seconds();
    for (int64_t c = 0; c < t.calls; ++c) t.arm.call();
    return (cpu_seconds() - begin) / double(t.calls);
  });
}

/// Median and quartiles of time(peer) / time(DeepGen), round by round: above 1, DeepGen is faster.
struct Ratio {
  double median, low, high;
};
inline Ratio ratio(const Timed& peer, const Timed& own) {
  std::vector<double> r;
  for (size_t i = 0; i < own.seconds.size(); ++i) r.push_back(peer.seconds[i] / own.seconds[i]);
  return {quantile(r, 0.5), quantile(r, 0.25), quantile(r, 0.75)};
}
