// Modules as text: what they come to, and what is refused, with the place and the remedy.
#include "generator/mlir_in/module.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "tests/paths.h"
#include "workload/mlir/memref_source.h"

#include <gtest/gtest.h>

namespace deepgen::tensors::mlir_in_test {
namespace {

const std::string kFolder = paths::in_source("tests/mlir/");

Analysis analysed(const std::string& text, bool leave = false) {
  return analyse_module(text, "x.mlir", leave);
}

std::string refusal(const std::string& text) {
  try {
    analysed(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::vector<std::string>& words) {
  const std::string found = refusal(text);
  EXPECT_FALSE(found.empty()) << text;
  for (const std::string& word : words)
    EXPECT_NE(found.find(word), std::string::npos) << found << "\nlacks " << word;
}

/// A function whose body is `body`, from line 2 on, with tensors a, b, c and a scalar.
std::string function(const std::string& body, const std::string& element = "f32") {
  const std::string t = element + ">";
  return "func.func @f(%a: tensor<4x5x" + t + ", %b: tensor<5x6x" + t + ", %c: tensor<4x6x" + t +
         ", %v: tensor<6x" + t + ", %s: " + element + ") -> tensor<4x6x" + t + " {\n" + body + "\n}\n";
}

/// The epilogue of a product whose element is %x in `steps`, which yield %y; "refused" where the chain ends
/// before.
std::string epilogue_of(const std::string& steps, const std::string& ins = "", const std::string& types = "",
                        const std::string& maps = "", const std::string& arguments = "") {
  const std::string same = "affine_map<(d0, d1) -> (d0, d1)>";
  const Analysis a = analysed(function(
      "%p = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> "
      "tensor<4x6xf32>\n"
      "%e = tensor.empty() : tensor<4x6xf32>\n"
      "%one = arith.constant 1.0 : f32\n%zero = arith.constant 0.0 : f32\n%two = arith.constant 2.0 : f32\n"
      "%r = linalg.generic {indexing_maps = [" +
      same + maps + ", " + same +
      "], iterator_types = [\"parallel\", \"parallel\"]}"
      " ins(%p" +
      ins + " : tensor<4x6xf32>" + types + ") outs(%e : tensor<4x6xf32>) {\n^bb0(%x: f32" + arguments +
      ", %o: f32):\n" + steps +
      "\nlinalg.yield %y : f32\n} -> tensor<4x6xf32>\nreturn %r : tensor<4x6xf32>"));
  const Entry& e = a.manifest.functions.at(0);
  std::string text = epilogue_text(e.problem.epilogue);
  for (const auto& [name, value] : e.arguments)
    if (name != "beta" || value != 1) text += " " + name + "=" + std::to_string(value).substr(0, 5);
  return a.notes.empty() ? text : "ends";
}

TEST(MlirIn, Golden) {
  for (const char* name : {"matmul", "types"}) {
    SCOPED_TRACE(name);
    const std::string file = name + std::string(".mlir"), text = read_file(kFolder + file);
    const Analysis a = analyse_module(text, file, false);
    EXPECT_EQ(a.manifest.serialize(), read_file(kFolder + file + ".json"));
    EXPECT_EQ(Manifest::read(kFolder + file + ".json"), a.manifest);
  }
}

TEST(MlirIn, TheSeedsModule) {
  const Manifest m = analysed(read_file(kFolder + "matmul.mlir")).manifest;
  ASSERT_EQ(m.functions.size(), 1u);
  const Entry& e = m.functions[0];
  EXPECT_EQ(e.problem.key(),
            "gemm m=1024 n=512 k=256 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
  EXPECT_EQ(e.name, "matmul");
  EXPECT_TRUE(e.whole);
  EXPECT_TRUE(e.arguments.empty());
  EXPECT_EQ(e.operands, (std::vector<std::pair<std::string, int64_t>>{{"a", 2}, {"b", 2}, {"d", 2}}));
}

TEST(MlirIn, Steps) {
  EXPECT_EQ(epilogue_of("%y = arith.maximumf %x, %zero : f32"), "relu");
  EXPECT_EQ(epilogue_of("%0 = arith.cmpf ugt, %x, %zero : f32\n%y = arith.select %0, %x, %zero : f32"),
            "relu");
  EXPECT_EQ(epilogue_of("%0 = arith.minimumf %x, %two : f32\n%y = arith.maximumf %0, %one : f32"),
            "clamp clamp_high=2.000 clamp_low=1.000");
  EXPECT_EQ(epilogue_of("%0 = arith.negf %x : f32\n%1 = math.exp %0 : f32\n%2 = arith.addf %one, %1 : f32\n"
                        "%y = arith.divf %one, %2 : f32"),
            "sigmoid");
  EXPECT_EQ(epilogue_of("%y = arith.mulf %x, %two : f32"), "none alpha=2.000 beta=2.000");
  EXPECT_EQ(epilogue_of("%y = arith.divf %x, %two : f32"), "none alpha=0.500 beta=0.500");
  // With an operand.
  const auto with = [](const std::string& steps, const char* value, const char* type, const char* map) {
    return epilogue_of(steps, std::string(", ") + value, std::string(", ") + type,
                       std::string(", affine_map<(d0, d1) -> (") + map + ")>", ", %q: f32");
  };
  EXPECT_EQ(with("%y = arith.addf %q, %x : f32", "%v", "tensor<6xf32>", "d1"), "bias");
  EXPECT_EQ(with("%y = arith.mulf %x, %q : f32", "%v", "tensor<6xf32>", "d1"), "scale_col");
  EXPECT_EQ(with("%y = arith.addf %x, %q : f32", "%c", "tensor<4x6xf32>", "d0, d1"), "residual");
  EXPECT_EQ(with("%y = arith.mulf %x, %q : f32", "%c", "tensor<4x6xf32>", "d0, d1"), "multiply");
  EXPECT_EQ(
      with("%0 = arith.addf %x, %q : f32\n%y = arith.maximumf %0, %zero : f32", "%v", "tensor<6xf32>", "d1"),
      "bias+relu");
  EXPECT_EQ(
      with("%0 = arith.maximumf %x, %zero : f32\n%y = arith.addf %0, %q : f32", "%v", "tensor<6xf32>", "d1"),
      "relu+bias");
}

TEST(MlirIn, StepsThatAreNone) {
  EXPECT_EQ(epilogue_of("%y = arith.maxnumf %x, %zero : f32"), "ends"); // NaN becomes 0
  EXPECT_EQ(epilogue_of("%0 = arith.cmpf ogt, %x, %zero : f32\n%y = arith.select %0, %x, %zero : f32"),
            "ends"); // likewise
  EXPECT_EQ(epilogue_of("%y = arith.maximumf %x, %one : f32"), "ends");
  EXPECT_EQ(epilogue_of("%0 = arith.maximumf %x, %two : f32\n%y = arith.minimumf %0, %one : f32"),
            "ends"); // high < low
  EXPECT_EQ(epilogue_of("%y = math.tanh %x : f32"), "ends");
  EXPECT_EQ(epilogue_of("%y = arith.addf %x, %one : f32"), "ends");
  EXPECT_EQ(epilogue_of("%y = arith.subf %x, %x : f32"), "ends");
  EXPECT_EQ(epilogue_of("%y = arith.divf %two, %x : f32"), "ends");
  EXPECT_EQ(epilogue_of("%y = arith.addf %x, %s : f32"), "ends"); // a scalar of the function
  EXPECT_EQ(epilogue_of("%0 = linalg.index 0 : index\n%1 = arith.index_cast %0 : index to i32\n%2 = "
                        "arith.sitofp %1 : i32 to f32\n"
                        "%y = arith.addf %x, %2 : f32"),
            "ends");
}

TEST(MlirIn, ElementwiseOnWholeTensors) {
  const Analysis a =
      analysed(function("%0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : "
                        "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
                        "%1 = arith.addf %0, %c : tensor<4x6xf32>\nreturn %1 : tensor<4x6xf32>"));
  ASSERT_EQ(a.notes.size(), 1u);
  EXPECT_NE(a.notes[0].find("convert-elementwise-to-linalg"), std::string::npos);
}

TEST(MlirIn, OldSpellings) {
  expect_refused(function("%0 = linalg.matmul_transpose_b ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) "
                          "outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>\n"
                          "return %0 : tensor<4x6xf32>"),
                 {"x.mlir:2:", "linalg.matmul_transpose_b",
                  "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>"});
  expect_refused(function("%0 = linalg.batch_matmul_transpose_a ins(%a, %b : tensor<4x5xf32>, "
                          "tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>"),
                 {"x.mlir:2:", "(b, m, n, k) -> (b, k, m)"});
  expect_refused(function("%0 = linalg.init_tensor [4, 6] : tensor<4x6xf32>"),
                 {"x.mlir:2:", "tensor.empty()"});
  expect_refused(function("%0 = arith.maxf %s, %s : f32"), {"arith.maximumf"});
  expect_refused("func @f() { return }", {"x.mlir:1:1", "func.func"});
  expect_refused(
      "func.func @f(%a: tensor<4x5xf32>) -> tensor<4x5xf32> { %0 = stablehlo.abs %a : tensor<4x5xf32> }",
      {"x.mlir:1:", "linalg on tensors"});
}

TEST(MlirIn, NearMisses) {
  const std::string end = "\nreturn %0 : tensor<4x6xf32>";
  const auto generic = [&](const std::string& body) {
    return function("%0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, "
                    "n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],"
                    " iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%a, %b : "
                    "tensor<4x5xf32>, tensor<5x6xf32>)"
                    " outs(%c : tensor<4x6xf32>) {\n^bb0(%x: f32, %y: f32, %z: f32):\n" +
                    body + "\n} -> tensor<4x6xf32>" + end);
  };
  EXPECT_EQ(
      refusal(generic("%1 = arith.mulf %x, %y : f32\n%2 = arith.addf %z, %1 : f32\nlinalg.yield %2 : f32")),
      "");
  for (const char* body :
       {"%1 = arith.subf %x, %y : f32\n%2 = arith.addf %z, %1 : f32\nlinalg.yield %2 : f32",
        "%1 = arith.mulf %x, %y : f32\n%2 = arith.subf %z, %1 : f32\nlinalg.yield %2 : f32",
        "%1 = arith.mulf %x, %x : f32\n%2 = arith.addf %z, %1 : f32\nlinalg.yield %2 : f32",
        "%1 = arith.mulf %x, %y : f32\n%2 = arith.maximumf %z, %1 : f32\nlinalg.yield %2 : f32",
        "%1 = arith.mulf %x, %y : f32\n%2 = arith.addf %1, %1 : f32\nlinalg.yield %2 : f32",
        "%1 = arith.mulf %x, %y : f32\nlinalg.yield %1 : f32"})
    expect_refused(generic(body), {"linalg.generic is no product that DeepGen computes", "x.mlir:2:6",
                                   "its body", "--leave"});
  expect_refused(function("%e = tensor.empty() : tensor<4x6xf32>\n%0 = linalg.matmul ins(%a, %b : "
                          "tensor<4x5xf32>, tensor<5x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>" +
                          end),
                 {"x.mlir:3:", "tensor.empty", "linalg.fill"});
  expect_refused(
      "func.func @f(%a: tensor<?x5xf32>, %b: tensor<5x6xf32>, %c: tensor<?x6xf32>) -> tensor<?x6xf32> {\n"
      "%0 = linalg.matmul ins(%a, %b : tensor<?x5xf32>, tensor<5x6xf32>) outs(%c : tensor<?x6xf32>) -> "
      "tensor<?x6xf32>\nreturn %0 : tensor<?x6xf32>\n}",
      {"x.mlir:2:", "not known before run time: tensor<?x5xf32>"});
  expect_refused(
      "func.func @f(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<4x6xf32>) {\n"
      "linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%c : memref<4x6xf32>)\nreturn\n}",
      {"x.mlir:2:", "memrefs", "before it is bufferized"});
  expect_refused(
      "func.func @f(%a: tensor<4x5xi8>, %b: tensor<5x6xi8>, %c: tensor<4x6xi32>) -> tensor<4x6xi32> {\n"
      "%0 = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : tensor<4x5xi8>, "
      "tensor<5x6xi8>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>\n"
      "return %0 : tensor<4x6xi32>\n}",
      {"x.mlir:2:", "signed integers"});
  expect_refused("func.func @f(%a: tensor<4x5xf8E4M3FNUZ>, %b: tensor<5x6xf8E4M3FNUZ>, %c: tensor<4x6xf32>) "
                 "-> tensor<4x6xf32> {\n"
                 "%0 = linalg.matmul ins(%a, %b : tensor<4x5xf8E4M3FNUZ>, tensor<5x6xf8E4M3FNUZ>) outs(%c : "
                 "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
                 "return %0 : tensor<4x6xf32>\n}",
                 {"types are not served: f8E4M3FNUZ"});
  expect_refused("func.func @f(%a: tensor<4x5x2xf32>, %b: tensor<2x5x6xf32>, %c: tensor<2x4x6xf32>) -> "
                 "tensor<2x4x6xf32> {\n"
                 "%0 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>, "
                 "affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]"
                 " ins(%a, %b : tensor<4x5x2xf32>, tensor<2x5x6xf32>) outs(%c : tensor<2x4x6xf32>) -> "
                 "tensor<2x4x6xf32>\nreturn %0 : tensor<2x4x6xf32>\n}",
                 {"the batch is the innermost dimension"});
}

TEST(MlirIn, LeftInTheModule) {
  const std::string text = "func.func @f(%a: tensor<?x5xf32>, %b: tensor<5x6xf32>, %c: tensor<?x6xf32>, %x: "
                           "tensor<4x5xf32>, %y: tensor<4x6xf32>) -> (tensor<?x6xf32>, tensor<4x6xf32>) {\n"
                           "%0 = linalg.matmul ins(%a, %b : tensor<?x5xf32>, tensor<5x6xf32>) outs(%c : "
                           "tensor<?x6xf32>) -> tensor<?x6xf32>\n"
                           "%1 = linalg.matmul ins(%x, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%y : "
                           "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
                           "return %0, %1 : tensor<?x6xf32>, tensor<4x6xf32>\n}";
  const Analysis a = analysed(text, true);
  ASSERT_EQ(a.manifest.left.size(), 1u);
  EXPECT_EQ(a.manifest.left[0].line, 2);
  ASSERT_EQ(a.manifest.functions.size(), 1u);
  EXPECT_EQ(a.manifest.functions[0].name, "f_0");
  const std::string calls = module_with_calls(text, "x.mlir", a.manifest, "kernels");
  EXPECT_NE(calls.find("linalg.matmul"), std::string::npos);
  EXPECT_NE(calls.find("call @kernels_f_0_memref"), std::string::npos);
}

TEST(MlirIn, EqualProductsAreOneFunction) {
  std::string body, last = "%a";
  for (int i = 0; i < 5; ++i) {
    const std::string next = "%l" + std::to_string(i);
    body += next + " = linalg.matmul ins(" + last + ", %w" + std::to_string(i % 2) +
            " : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>\n";
    last = next;
  }
  const std::string text =
      "func.func @main(%a: tensor<8x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32>) -> tensor<8x8xf32> "
      "{\n%c = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<8x8xf32>\n"
      "%z = linalg.fill ins(%c : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>\n" +
      body + "return " + last + " : tensor<8x8xf32>\n}";
  const Analysis a = analysed(text);
  ASSERT_EQ(a.manifest.functions.size(), 1u);
  EXPECT_EQ(a.manifest.functions[0].calls, 5);
  EXPECT_EQ(a.manifest.functions[0].name, "f_main_0"); // main is no name for a function of a library
  const std::string calls = module_with_calls(text, "x.mlir", a.manifest, "kernels");
  EXPECT_EQ(calls.find("linalg."), std::string::npos);
  Manifest other = a.manifest;
  other.functions[0].line = 3;
  EXPECT_THROW(module_with_calls(text, "x.mlir", other, "kernels"), Error);
}

TEST(MlirIn, HostileTexts) {
  const std::string seed = read_file(kFolder + "matmul.mlir");
  for (size_t cut = 0; cut < seed.size(); cut += 7) refusal(seed.substr(0, cut));
  for (const char* brackets : {"(", "[", "{", "<", "tensor<", "-", "!"}) {
    std::string deep = "func.func @f(%a: ";
    for (int i = 0; i < 100'000; ++i) deep += brackets;
    EXPECT_NE(refusal(deep), "");
  }
  refusal(std::string("func.func @f\0() { return }", 26));
  EXPECT_NE(refusal("\xff\xfe"), "");
  EXPECT_EQ(refusal(""), ""); // an empty module, which the command refuses
}

TEST(MlirIn, MemrefSource) {
  const Manifest m = analysed(read_file(kFolder + "matmul.mlir")).manifest;
  const std::string source = memref_source(m, "kernels", "lib.h");
  EXPECT_NE(source.find("extern \"C\" void _mlir_ciface_kernels_matmul_memref(const memref<2>* a, const "
                        "memref<2>* b, memref<2>* d)"),
            std::string::npos)
      << source;
  EXPECT_NE(source.find("kernels_matmul_run(&args)"), std::string::npos);
}

} // namespace
} // namespace deepgen::tensors::mlir_in_test
