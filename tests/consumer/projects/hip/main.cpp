// One library for GPUs of two vendors. Says what became of a call, and what the device takes.
#include <kernels.h>

#include <cstdio>

int main() {
  alignas(256) static float x[48 * 48] = {};
  const deepgen_status up = kernels::up(x, x, x, x, nullptr);
  const char* config = deepgen_launch_config(kernels_up_function());
  std::printf("up: %s\ntakes: %s\n", deepgen_status_string(up), config ? config : "nothing");
  return 0;
}
