// What stands for the reader of MLIR in a build with -DDEEPGEN_WITH_MLIR_IN=OFF.
#include "base/text/error.h"
#include "generator/mlir_in/module.h"

#include <gtest/gtest.h>

namespace deepgen::tensors::mlir_absent_test {
namespace {

template <typename Call>
void refuses(const Call& call) {
  try {
    call();
    FAIL() << "it reads MLIR";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("this deepgen reads no MLIR\n  where:  x.mlir"), std::string::npos) << text;
    EXPECT_NE(text.find("-DDEEPGEN_WITH_MLIR_IN=ON"), std::string::npos) << text;
  }
}

TEST(MlirAbsent, EachFunctionOfTheReaderSaysWhatIsMissing) {
  EXPECT_FALSE(reads_mlir());
  refuses([] { analyse_module("module {}", "x.mlir", false); });
  refuses([] { module_with_calls("module {}", "x.mlir", Manifest(), "ns"); });
}

} // namespace
} // namespace deepgen::tensors::mlir_absent_test
