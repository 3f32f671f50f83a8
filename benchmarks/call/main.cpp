// Times smallest::smallest(a, b, d), and smallest::rows(m, a, b, d) whose M is a range, against direct calls
// of the same kernels with ready argument blocks: interleaved rounds in random order, median and quartiles of
// the differences per call.
#include <smallest.h>

#include <deepgen/kernel_abi.h>
#include <deepgen/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <vector>

namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

constexpr int64_t kMostRows = 64;

/// Of a call of m rows.
int64_t tiles_of(const deepgen_kernel& kernel, int64_t m) {
  if (!kernel.rules || !kernel.rules[DEEPGEN_RULE_TILES_M].factor) return 1;
  const deepgen_size_rule& rule = kernel.rules[DEEPGEN_RULE_TILES_M];
  return rule.steps[0] ? rule.factor * ((m + rule.steps[0] - 1) / rule.steps[0]) : rule.factor;
}

/// The argument block as the runtime fills it for an m x 1 x 1 problem.
std::vector<uint64_t> arguments(const deepgen_kernel& kernel, int64_t m, const float* a, const float* b,
                                float* d, void* scratch) {
  std::vector<uint64_t> block;
  for (uint32_t i = 0; i < kernel.arg_count; ++i) switch (kernel.args[i]) {
    case DEEPGEN_ARG_A:
      block.push_back(reinterpret_cast<uint64_t>(a));
      break;
    case DEEPGEN_ARG_B:
      block.push_back(reinterpret_cast<uint64_t>(b));
      break;
    case DEEPGEN_ARG_D:
      block.push_back(reinterpret_cast<uint64_t>(d));
      break;
    case DEEPGEN_ARG_WORKSPACE:
      block.push_back(reinterpret_cast<uint64_t>(scratch));
      break;
    case DEEPGEN_ARG_ALPHA:
      block.push_back(0x3f800000u);
      break; // 1.0f
    case DEEPGEN_ARG_M:
      block.push_back(uint64_t(m));
      break;
    case DEEPGEN_ARG_M1:
      block.push_back(uint64_t(tiles_of(kernel, m)));
      break;
    case DEEPGEN_ARG_C:
    case DEEPGEN_ARG_BIAS:
    case DEEPGEN_ARG_BETA:
    case DEEPGEN_ARG_M0:
    case DEEPGEN_ARG_N0:
    case DEEPGEN_ARG_B0:
      block.push_back(0);
      break;
    default:
      block.push_back(1);
      break; // leading dimensions, strides, ends of ranges
    }
  return block;
}

/// A function, the size of its calls, and the kernel that they take.
struct Subject {
  const char* name;
  const deepgen_function* function;
  deepgen_status (*call)(const float* a, const float* b, float* d);
  int64_t m;
  const deepgen_kernel* kernel = nullptr;
};

void find_kernel(Subject& s) {
  deepgen_call_sizes sizes;
  sizes.m = s.m;
  const char* config = deepgen_selected_config_at(s.function, &sizes);
  for (const deepgen_kernel* k = s.function->kernels; k != s.function->kernels + s.function->kernel_count;
       ++k)
    if (config && !s.kernel && k->config && !std::strcmp(k->config, config)) s.kernel = k;
}

struct Differences {
  std::vector<double> bare, called, above;
};

template <typename Call>
double nanoseconds(int calls, const Call& call) {
  const double begin = cpu_seconds();
  for (int i = 0; i < calls; ++i) call();
  return (cpu_seconds() - begin) / calls * 1e9;
}

void line(const char* name, std::vector<double> v) {
  std::sort(v.begin(), v.end());
  std::printf("  %-34s %6.1f ns  [%.1f, %.1f]\n", name, v[v.size() / 2], v[v.size() / 4],
              v[v.size() * 3 / 4]);
}

} // namespace

int main() {
  constexpr int kCalls = 20000, kRounds = 101;
  static float a[kMostRows], d[kMostRows];
  float b = 3;
  alignas(64) static char scratch[1 << 16];
  for (float& x : a) x = 2;
  Subject subjects[] = {
      {"fixed", smallest_smallest_function(), smallest::smallest, 1},
      {"range, M = 1", smallest_rows_function(),
       [](const float* x, const float* y, float* z) { return smallest::rows(1, x, y, z); }, 1},
      {"range, M = 64", smallest_rows_function(),
       [](const float* x, const float* y, float* z) { return smallest::rows(kMostRows, x, y, z); },
       kMostRows}};
  std::vector<std::vector<uint64_t>> blocks;
  for (Subject& s : subjects) {
    find_kernel(s);
    if (!s.kernel || s.kernel->workspace > sizeof scratch) return 1;
    blocks.push_back(arguments(*s.kernel, s.m, a, &b, d, scratch));
    s.kernel->entry(blocks.back().data());
    if (d[s.m - 1] != 6 || (d[s.m - 1] = 0, s.call(a, &b, d) != DEEPGEN_OK) || d[s.m - 1] != 6) return 1;
  }
  std::vector<Differences> results(std::size(subjects));
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < std::size(subjects); ++i) {
      double seconds[2];
      for (int half = 0; half < 2; ++half)
        if ((half + round) % 2)
          seconds[1] = nanoseconds(kCalls, [&] { subjects[i].call(a, &b, d); });
        else
          seconds[0] = nanoseconds(kCalls, [&] { subjects[i].kernel->entry(blocks[i].data()); });
      results[i].bare.push_back(seconds[0]), results[i].called.push_back(seconds[1]);
      results[i].above.push_back(seconds[1] - seconds[0]);
    }
  std::printf("M x 1 x 1, f32: median [quartiles] of %d rounds of %d calls\n", kRounds, kCalls);
  for (size_t i = 0; i < std::size(subjects); ++i) {
    const Subject& s = subjects[i];
    std::printf("%s, of %u kernels: %s\n", s.name, s.function->kernel_count, s.kernel->config);
    line("bare kernel", results[i].bare), line("a call", results[i].called);
    line("above the bare kernel", results[i].above);
    if (i == 0) continue;
    std::vector<double> more;
    for (size_t r = 0; r < kRounds; ++r) more.push_back(results[i].above[r] - results[0].above[r]);
    line("above that of the fixed size", more);
  }
}
