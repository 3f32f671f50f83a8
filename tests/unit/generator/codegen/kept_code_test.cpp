#include "generator/codegen/kept_objects.h"

#include "generator/codegen/codegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace deepgen::kept_code_test {
namespace {

namespace llvmd = mlir::LLVM;
using Body = std::function<void(mlir::OpBuilder&, mlir::Location, mlir::Value pointer)>;

class KeptCode : public testing::Test {
protected:
  KeptCode() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    if (const char* set = std::getenv("DEEPGEN_KEEP_OBJECTS")) before_ = set;
    setenv("DEEPGEN_KEEP_OBJECTS", folder_.c_str(), 1);
  }
  ~KeptCode() override {
    setenv("DEEPGEN_KEEP_OBJECTS", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  /// Whether the function with this body is made, as nothing is kept for it.
  bool is_made(const Body& body, const std::string& target = "cpu") {
    mlir::OpBuilder b(context_.get());
    const mlir::Location loc = b.getUnknownLoc();
    mlir::OwningOpRef<mlir::ModuleOp> module(mlir::ModuleOp::create(loc));
    b.setInsertionPointToEnd(module->getBody());
    const auto pointer = llvmd::LLVMPointerType::get(context_.get());
    auto type = llvmd::LLVMFunctionType::get(llvmd::LLVMVoidType::get(context_.get()), {pointer});
    auto function = llvmd::LLVMFuncOp::create(b, loc, "f", type);
    mlir::Block* block = function.addEntryBlock(b);
    b.setInsertionPointToEnd(block);
    body(b, loc, block->getArgument(0));
    llvmd::ReturnOp::create(b, loc, mlir::ValueRange());
    bool made = false;
    EXPECT_EQ(kept_code(*module, target, [&] { return made = true, std::string("code"); }), "code");
    return made;
  }

private:
  std::unique_ptr<mlir::MLIRContext> context_ = make_context();
  const std::string folder_ = testing::TempDir() + "kept_code_" + std::to_string(getpid());
  std::string before_;
};

mlir::Value number(mlir::OpBuilder& b, mlir::Location loc, int64_t x) {
  return mlir::arith::ConstantIntOp::create(b, loc, b.getI64Type(), x);
}

TEST_F(KeptCode, TheOrderOfWhatHasNoEffectDoesNotMatter) {
  const auto body = [](bool turned) -> Body {
    return [turned](mlir::OpBuilder& b, mlir::Location loc, mlir::Value p) {
      mlir::Value x, y;
      if (turned) y = number(b, loc, 2);
      x = number(b, loc, 1);
      if (!turned) y = number(b, loc, 2);
      if (turned) number(b, loc, 3); // nobody uses it
      llvmd::StoreOp::create(b, loc, mlir::arith::SubIOp::create(b, loc, x, y), p);
    };
  };
  EXPECT_TRUE(is_made(body(false)));
  EXPECT_FALSE(is_made(body(true)));
  EXPECT_TRUE(is_made(body(true), "cpu of another level"));
}

TEST_F(KeptCode, OperandsAndEffectsDoMatter) {
  const auto body = [](bool turned) -> Body {
    return [turned](mlir::OpBuilder& b, mlir::Location loc, mlir::Value p) {
      mlir::Value x = number(b, loc, 1), y = number(b, loc, 2);
      llvmd::StoreOp::create(b, loc, mlir::arith::SubIOp::create(b, loc, turned ? y : x, turned ? x : y), p);
    };
  };
  EXPECT_TRUE(is_made(body(false)));
  EXPECT_TRUE(is_made(body(true)));
}

TEST_F(KeptCode, WhatABranchYieldsMatters) {
  const auto body = [](int64_t yielded) -> Body {
    return [yielded](mlir::OpBuilder& b, mlir::Location loc, mlir::Value p) {
      mlir::Value condition = mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq,
                                                          number(b, loc, 1), number(b, loc, 2));
      auto branch = mlir::scf::IfOp::create(
          b, loc, condition,
          [&](mlir::OpBuilder& inner, mlir::Location at) {
            mlir::Value x =
                mlir::arith::AddIOp::create(inner, at, number(inner, at, yielded), number(inner, at, 5));
            mlir::scf::YieldOp::create(inner, at, x);
          },
          [&](mlir::OpBuilder& inner, mlir::Location at) {
            mlir::scf::YieldOp::create(inner, at, number(inner, at, 7));
          });
      llvmd::StoreOp::create(b, loc, branch.getResult(0), p);
    };
  };
  EXPECT_TRUE(is_made(body(3)));
  EXPECT_FALSE(is_made(body(3)));
  EXPECT_TRUE(is_made(body(4)));
}

TEST_F(KeptCode, ALoadIsAheadOfAStoreOrBehindIt) {
  const auto body = [](bool behind, bool unused_first) -> Body {
    return [=](mlir::OpBuilder& b, mlir::Location loc, mlir::Value p) {
      mlir::Value one, loaded;
      if (unused_first) one = number(b, loc, 1);
      if (!behind) loaded = llvmd::LoadOp::create(b, loc, b.getI64Type(), p);
      if (!unused_first) one = number(b, loc, 1);
      llvmd::StoreOp::create(b, loc, one, p);
      if (behind) loaded = llvmd::LoadOp::create(b, loc, b.getI64Type(), p);
      llvmd::StoreOp::create(b, loc, mlir::arith::AddIOp::create(b, loc, loaded, one), p);
    };
  };
  EXPECT_TRUE(is_made(body(false, false)));
  EXPECT_FALSE(is_made(body(false, true)));
  EXPECT_TRUE(is_made(body(true, false)));
  EXPECT_FALSE(is_made(body(true, true)));
}

} // namespace
} // namespace deepgen::kept_code_test
