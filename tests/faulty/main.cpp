// deepgen with the faulty templates alone.
#include "generator/cli/cli.h"
#include "tests/faulty/faulty_gpu_template.h"
#include "tests/faulty/faulty_template.h"

int main(int argc, char** argv) {
  static const deepgen::FaultyTemplate faulty;
  static const deepgen::FaultyGpuTemplate faulty_gpu;
  deepgen::use_only_template(&faulty);
  deepgen::register_template(&faulty_gpu);
  return deepgen::deepgen_main(argc, argv);
}
