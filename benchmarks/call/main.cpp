// Times smallest::smallest(a, b, d) against a direct call of the same kernel with a ready argument block:
// interleaved rounds in random order, median and quartiles of the difference per call.
#include <smallest.h>

#include <deepgen/kernel_abi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The argument block as the runtime fills it for a 1 x 1 x 1 problem.
std::vector<uint64_t> arguments(const deepgen_kernel& kernel, const float* a, const float* b, float* d,
                                void* scratch) {
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

} // namespace

int main() {
  constexpr int kCalls = 20000, kRounds = 101;
  float a = 2, b = 3, d = 0;
  alignas(64) static char scratch[1 << 16];
  const deepgen_kernel* kernel = *smallest_smallest_function()->selected;
  if (!kernel || kernel->workspace > sizeof scratch) return 1;
  const std::vector<uint64_t> block = arguments(*kernel, &a, &b, &d, scratch);
  kernel->entry(block.data());
  if (d != 6 || (d = 0, smallest::smallest(&a, &b, &d) != DEEPGEN_OK) || d != 6) return 1;

  std::vector<double> bare, called, difference;
  for (int round = 0; round < kRounds; ++round) {
    double seconds[2];
    for (int half = 0; half < 2; ++half) {
      const int which = (half + round) % 2;
      const double begin = cpu_seconds();
      for (int i = 0; i < kCalls; ++i)
        if (which)
          smallest::smallest(&a, &b, &d);
        else
          kernel->entry(block.data());
      seconds[which] = (cpu_seconds() - begin) / kCalls * 1e9;
    }
    bare.push_back(seconds[0]), called.push_back(seconds[1]), difference.push_back(seconds[1] - seconds[0]);
  }
  for (auto* v : {&bare, &called, &difference}) std::sort(v->begin(), v->end());
  auto line = [&](const char* name, const std::vector<double>& v) {
    std::printf("%-22s %6.1f ns  [%.1f, %.1f]\n", name, v[kRounds / 2], v[kRounds / 4], v[kRounds * 3 / 4]);
  };
  std::printf("1 x 1 x 1, f32, %s: median [quartiles] of %d rounds of %d calls\n", kernel->config, kRounds,
              kCalls);
  line("bare kernel", bare), line("smallest::smallest()", called), line("above the bare kernel", difference);
}
