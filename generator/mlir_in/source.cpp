#include "generator/mlir_in/source.h"

#include "base/text/error.h"
#include "base/text/text.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"

#include <limits>

namespace deepgen::tensors {
namespace {

/// Line and column in the module's text; 0 where an operation says that it comes from elsewhere.
std::pair<int64_t, int64_t> line_of(mlir::Location location) {
  if (auto found = mlir::dyn_cast<mlir::FileLineColLoc>(location))
    return {found.getLine(), found.getColumn()};
  return {0, 0};
}

/// The first error of MLIR's, with its place.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext* context)
      : handler_(context, [this](mlir::Diagnostic& d) {
          if (text_.empty() && d.getSeverity() == mlir::DiagnosticSeverity::Error) {
            text_ = d.str();
            std::tie(line_, column_) = line_of(d.getLocation());
          }
          return mlir::success();
        }) {}

  [[noreturn]] void raise(const std::string& what, const std::string& file) const {
    const std::string at = line_ ? file + ":" + std::to_string(line_) + ":" + std::to_string(column_) : file;
    throw Error(what, at, visible(text_), remedy_for(text_));
  }

private:
  std::string text_;
  int64_t line_ = 0, column_ = 0;
  mlir::ScopedDiagnosticHandler handler_;
};

std::string printed(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

/// A constant number; of a tensor, that of all its elements.
std::optional<double> constant_of(mlir::Value value) {
  mlir::Attribute attribute;
  if (!mlir::matchPattern(value, mlir::m_Constant(&attribute))) return {};
  if (auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(attribute)) {
    if (!mlir::isa<mlir::FloatType, mlir::IntegerType>(splat.getElementType())) return {};
    attribute = splat.getSplatValue<mlir::Attribute>();
  }
  if (auto number = mlir::dyn_cast<mlir::FloatAttr>(attribute)) return number.getValueAsDouble();
  if (auto number = mlir::dyn_cast<mlir::IntegerAttr>(attribute))
    if (number.getValue().getSignificantBits() <= 53) return double(number.getValue().getSExtValue());
  return {};
}

Step step_of(llvm::StringRef name) {
  static const std::pair<const char*, Step> steps[] = {{"arith.addf", Step::add},
                                                       {"arith.addi", Step::add},
                                                       {"arith.subf", Step::subtract},
                                                       {"arith.mulf", Step::multiply},
                                                       {"arith.muli", Step::multiply},
                                                       {"arith.divf", Step::divide},
                                                       {"arith.negf", Step::negate},
                                                       {"arith.maximumf", Step::maximum},
                                                       {"arith.minimumf", Step::minimum},
                                                       {"math.exp", Step::exp},
                                                       {"math.exp2", Step::exp2},
                                                       {"math.tanh", Step::tanh},
                                                       {"math.erf", Step::erf},
                                                       {"math.sqrt", Step::square_root},
                                                       {"math.rsqrt", Step::reciprocal_root},
                                                       {"math.powf", Step::power},
                                                       {"arith.extf", Step::widen},
                                                       {"arith.extsi", Step::widen},
                                                       {"arith.truncf", Step::round},
                                                       {"arith.sitofp", Step::from_integer},
                                                       {"arith.select", Step::select}};
  for (const auto& [known, step] : steps)
    if (name == known) return step;
  return Step::other;
}

/// The body of an operation of linalg as a formula of its block's arguments.
class BodyReader {
public:
  Formula read(mlir::Block& block) {
    for (mlir::BlockArgument argument : block.getArguments())
      nodes_[argument] =
          f_.add({Step::argument, printed(argument.getType()), {}, int(argument.getArgNumber()), 0, ""});
    for (mlir::Operation& op : block.without_terminator()) {
      if (f_.nodes.size() > Formula::most_nodes) return f_;
      add(op);
    }
    mlir::Operation* end = block.getTerminator();
    if (end->getNumOperands() == 1) f_.root = node_of(end->getOperand(0));
    return f_;
  }

private:
  int node_of(mlir::Value value) {
    if (const auto known = nodes_.find(value); known != nodes_.end()) return known->second;
    Node node{Step::other, printed(value.getType()), {}, 0, 0, "a value from outside"};
    if (const std::optional<double> number = constant_of(value))
      node.step = Step::constant, node.number = *number;
    return nodes_[value] = f_.add(std::move(node));
  }

  void add(mlir::Operation& op) {
    if (op.getNumResults() != 1) return;
    const mlir::Value result = op.getResult(0);
    if (constant_of(result)) {
      node_of(result);
      return;
    }
    Node node{step_of(op.getName().getStringRef()), printed(result.getType()), {}, 0, 0,
              op.getName().getStringRef().str()};
    if (auto compare = mlir::dyn_cast<mlir::arith::CmpFOp>(op))
      if (compare.getPredicate() == mlir::arith::CmpFPredicate::UGT) node.step = Step::greater;
    for (mlir::Value in : op.getOperands()) node.in.push_back(node_of(in));
    nodes_[result] = f_.add(std::move(node));
  }

  Formula f_;
  llvm::DenseMap<mlir::Value, int> nodes_;
};

class Reader {
public:
  explicit Reader(Source& source) : s_(source) {}

  void read() {
    s_.module->walk<mlir::WalkOrder::PreOrder>([&](mlir::func::FuncOp function) {
      if (!function.isExternal()) read_function(function);
    });
    for (size_t v = 0; v < s_.values.size(); ++v) add_uses(int(v));
  }

private:
  void read_function(mlir::func::FuncOp function) {
    Function f;
    f.name = function.getName().str(), f.line = line_of(function.getLoc()).first;
    for (mlir::BlockArgument argument : function.getArguments()) {
      f.arguments.push_back(value_of(argument));
      s_.graph.values[size_t(f.arguments.back())].argument = int(argument.getArgNumber());
    }
    const int number = int(s_.functions.size());
    function.getBody().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) {
      if (auto linalg = mlir::dyn_cast<mlir::linalg::LinalgOp>(op)) {
        read_operation(linalg, number);
        return mlir::WalkResult::skip();
      }
      const bool plain = mlir::isa<mlir::arith::ConstantOp, mlir::tensor::EmptyOp>(op);
      const bool end = mlir::isa<mlir::func::ReturnOp>(op) && op->getParentOp() == function.getOperation();
      f.other_operations += !plain && !end;
      if (end && function.getBody().hasOneBlock())
        for (mlir::Value v : op->getOperands()) f.returned.push_back(value_of(v));
      return mlir::WalkResult::advance();
    });
    s_.functions.push_back(function), s_.graph.functions.push_back(std::move(f));
  }

  int value_of(mlir::Value value) {
    const auto [at, is_new] = values_.try_emplace(value, int(s_.values.size()));
    if (!is_new) return at->second;
    Value v;
    if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
        tensor && !tensor.getEncoding()) {
      v.tensor = true, v.element = printed(tensor.getElementType());
      for (int64_t size : tensor.getShape()) v.shape.push_back(mlir::ShapedType::isDynamic(size) ? -1 : size);
    } else {
      v.element = printed(value.getType());
    }
    v.constant = constant_of(value);
    v.undefined = value.getDefiningOp<mlir::tensor::EmptyOp>() ||
                  value.getDefiningOp<mlir::bufferization::AllocTensorOp>();
    s_.values.push_back(value), s_.graph.values.push_back(std::move(v));
    return int(s_.values.size()) - 1;
  }

  static Map map_of(mlir::AffineMap map) {
    Map result;
    for (mlir::AffineExpr e : map.getResults()) {
      const auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(e);
      const auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(e);
      result.push_back(dim                                    ? int(dim.getPosition())
                       : constant && constant.getValue() == 0 ? kZeroIndex
                                                              : kOddIndex);
    }
    return result;
  }

  void read_operation(mlir::linalg::LinalgOp op, int function) {
    Operation o;
    o.name = op->getName().getStringRef().str(), o.function = function;
    std::tie(o.line, o.column) = line_of(op->getLoc());
    o.block = blocks_.try_emplace(op->getBlock(), int(blocks_.size())).first->second;
    for (mlir::utils::IteratorType type : op.getIteratorTypesArray())
      o.reduction.push_back(type != mlir::utils::IteratorType::parallel);
    for (int64_t extent : op.getStaticLoopRanges())
      o.extents.push_back(mlir::ShapedType::isDynamic(extent) ? -1 : extent);
    for (mlir::Value v : op->getOperands()) o.operands.push_back(value_of(v));
    for (mlir::AffineMap map : op.getIndexingMapsArray()) o.maps.push_back(map_of(map));
    o.inputs = int(op.getNumDpsInputs());
    o.memrefs = !op.hasPureTensorSemantics();
    const bool regular = op->getNumRegions() == 1 && op->getRegion(0).hasOneBlock() &&
                         o.maps.size() == o.operands.size() &&
                         op.getBlock()->getNumArguments() <= o.operands.size();
    if (regular) o.body = BodyReader().read(*op.getBlock());
    if (op->getNumResults() == 1 && op.getNumDpsInits() == 1 && regular) {
      o.result = value_of(op->getResult(0));
      s_.graph.values[size_t(o.result)].producer = int(s_.operations.size());
    }
    numbers_[op.getOperation()] = int(s_.operations.size());
    s_.operations.push_back(op.getOperation()), s_.graph.operations.push_back(std::move(o));
  }

  void add_uses(int v) {
    Value& value = s_.graph.values[size_t(v)];
    for (mlir::OpOperand& use : s_.values[size_t(v)].getUses()) {
      const auto known = numbers_.find(use.getOwner());
      if (known == numbers_.end()) {
        ++value.other_uses;
        const mlir::Dialect* dialect = use.getOwner()->getDialect();
        value.elementwise_use |=
            value.tensor &&
            mlir::isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(dialect);
      } else
        value.users.push_back(known->second);
    }
  }

  Source& s_;
  llvm::DenseMap<mlir::Value, int> values_;
  llvm::DenseMap<mlir::Operation*, int> numbers_;
  llvm::DenseMap<mlir::Block*, int> blocks_;
};

std::unique_ptr<mlir::MLIRContext> context_for_sources() {
  mlir::DialectRegistry registry;
  registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect,
                  mlir::bufferization::BufferizationDialect, mlir::cf::ControlFlowDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect>();
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->allowUnregisteredDialects(); // attributes of others, such as IREE's, stay as they are
  return context;
}

} // namespace

Source read_source(const std::string& text, const std::string& file) {
  check_nesting(text, file);
  Source source;
  source.context = context_for_sources();
  const FirstError error(source.context.get());
  source.module =
      mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(source.context.get()), file);
  if (!source.module) error.raise("not a module of MLIR", file);
  Reader(source).read();
  return source;
}

} // namespace deepgen::tensors
