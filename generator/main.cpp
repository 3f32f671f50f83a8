#include "generator/cli/cli.h"

int main(int argc, char** argv) { return deepgen::deepgen_main(argc, argv); }
