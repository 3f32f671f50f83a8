// xgboost_trees() by libxgboost's C API. One thread and exact splits: more of either would make results
// depend on the host.
#include "generator/search/regression.h"

#include "base/text/error.h"

#ifdef DEEPGEN_WITH_XGBOOST
#include <xgboost/c_api.h>

#include <limits>
#endif

namespace deepgen {

#ifdef DEEPGEN_WITH_XGBOOST
namespace {

void check(int status, const char* call) {
  if (status != 0)
    throw Error("libxgboost failed", call, XGBGetLastError(),
                "choose the strategy gbt, which is deepgen's own");
}
#define CHECKED(call) check(call, #call)

struct Matrix {
  DMatrixHandle handle = nullptr;
  explicit Matrix(const Table& t) {
    CHECKED(XGDMatrixCreateFromMat(t.data(), t.rows(), t.columns(), std::numeric_limits<float>::quiet_NaN(),
                                   &handle));
  }
  ~Matrix() { XGDMatrixFree(handle); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
};

struct Booster {
  BoosterHandle handle = nullptr;
  explicit Booster(const Matrix& train) { CHECKED(XGBoosterCreate(&train.handle, 1, &handle)); }
  ~Booster() { XGBoosterFree(handle); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
};

constexpr int kTrees = 60;
constexpr std::pair<const char*, const char*> kParameters[] = {{"objective", "reg:squarederror"},
                                                               {"tree_method", "exact"},
                                                               {"nthread", "1"},
                                                               {"seed", "1"},
                                                               {"max_depth", "4"},
                                                               {"eta", "0.15"},
                                                               {"verbosity", "0"}};

} // namespace

void require_xgboost() {}

std::vector<double> xgboost_trees(const Table& known, const std::vector<float>& labels, const Table& asked) {
  const Matrix train(known), wanted(asked);
  CHECKED(XGDMatrixSetFloatInfo(train.handle, "label", labels.data(), labels.size()));
  const Booster booster(train);
  for (const auto& [name, value] : kParameters) CHECKED(XGBoosterSetParam(booster.handle, name, value));
  for (int i = 0; i < kTrees; ++i) CHECKED(XGBoosterUpdateOneIter(booster.handle, i, train.handle));
  bst_ulong count = 0;
  const float* values = nullptr;
  CHECKED(XGBoosterPredict(booster.handle, wanted.handle, 0, 0, 0, &count, &values));
  return {values, values + count};
}

#else

void require_xgboost() {
  throw Error("this deepgen was built without libxgboost", "strategy xgboost", "",
              "choose gbt, deepgen's own trees, or install libxgboost-dev and build deepgen with "
              "-DDEEPGEN_WITH_XGBOOST=ON");
}

std::vector<double> xgboost_trees(const Table&, const std::vector<float>&, const Table&) {
  require_xgboost();
  return {};
}

#endif

} // namespace deepgen
