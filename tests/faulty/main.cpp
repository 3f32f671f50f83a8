// deepgen with the faulty template alone.
#include "generator/cli/cli.h"
#include "tests/faulty/faulty_template.h"

int main(int argc, char** argv) {
  static const deepgen::FaultyTemplate faulty;
  deepgen::use_only_template(&faulty);
  return deepgen::deepgen_main(argc, argv);
}
