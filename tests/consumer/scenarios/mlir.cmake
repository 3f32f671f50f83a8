# A module of MLIR: its products as a library, the rest lowered by mlir-opt with calls of it, and the numbers those of
# mlir-opt's own lowering of the original. Then a module that has changed, and the files of an auto-scheduler as they are.
set(deepgen ${PREFIX}/bin/deepgen)
run(${deepgen} import mlir/model.mlir -o imported.json)
expect("linear: gemm m=8 n=24 k=16" "epilogue=bias+relu" "epilogue=bias+gelu+residual" "all of @linear" "in @layers"
  "the chain ends before linalg.transpose on line" "1 linalg.generic stays in the module")
expect_equal_files(imported.json mlir/model.mlir.json)
configure(mlir build -DDEEPGEN_MODE=lock)
expect("kernels has 10 functions of model.mlir")
build(build)
run(build/app)
expect("linear: largest" "rest: largest" "ok")
expect_null_build(build)
run(${deepgen} mlir --manifest imported.json --namespace other --module mlir/model.mlir --calls other.mlir)
file(READ ${WORK}/other.mlir text)
if(NOT text MATCHES "call @other_linear_memref" OR text MATCHES "linalg.matmul")
  message(FATAL_ERROR "other.mlir lacks calls")
endif()

# Every order of the dimensions of A, B and the output: a function each, whose numbers are those of mlir-opt's own lowering. The
# transposition behind each product stays with mlir-opt, and is lowered beside the call.
set(m 5)
set(n 7)
set(k 6)
set(b 3)
set(module "")
set(cases "")
# "b m k" as letters: "(b, m, k)", "3x5x6", "3, 5, 6".
macro(of_letters letters)
  string(REPLACE " " ";" list "${letters}")
  list(JOIN list ", " ${letters_to}_map)
  set(numbers "")
  foreach(letter IN LISTS list)
    list(APPEND numbers ${${letter}})
  endforeach()
  list(JOIN numbers "x" ${letters_to}_type)
  list(JOIN numbers ", " ${letters_to}_shape)
endmacro()
function(add_orders loops left right out back)
  foreach(a IN LISTS left)
    foreach(w IN LISTS right)
      foreach(d IN LISTS out)
        foreach(pair "a|${a}" "w|${w}" "d|${d}")
          string(REGEX REPLACE "[|].*" "" letters_to "${pair}")
          string(REGEX REPLACE ".*[|]" "" letters "${pair}")
          of_letters("${letters}")
        endforeach()
        string(REPLACE " " "" name "f_${a}_${w}_${d}")
        separate_arguments(permuted UNIX_COMMAND "${d}")
        list(GET permuted 0 first)
        list(GET permuted 1 second)
        list(REMOVE_AT permuted 0 1)
        list(PREPEND permuted ${second} ${first})
        list(JOIN permuted " " letters)
        set(letters_to t)
        of_letters("${letters}")
        string(APPEND module "
func.func @${name}(%a: tensor<${a_type}xf32>, %w: tensor<${w_type}xf32>) -> tensor<${t_type}xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<${d_type}xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<${d_type}xf32>) -> tensor<${d_type}xf32>
  %d = linalg.contract indexing_maps = [affine_map<(${loops}) -> (${a_map})>, affine_map<(${loops}) -> (${w_map})>, affine_map<(${loops}) -> (${d_map})>]
    ins(%a, %w : tensor<${a_type}xf32>, tensor<${w_type}xf32>) outs(%start : tensor<${d_type}xf32>) -> tensor<${d_type}xf32>
  %other = tensor.empty() : tensor<${t_type}xf32>
  %t = linalg.transpose ins(%d : tensor<${d_type}xf32>) outs(%other : tensor<${t_type}xf32>) permutation = [${back}]
  return %t : tensor<${t_type}xf32>
}
")
        string(APPEND cases "{\"${name}\", false, {{${a_shape}}, {${w_shape}}}, {${t_shape}}},\n")
      endforeach()
    endforeach()
  endforeach()
  set(module "${module}" PARENT_SCOPE)
  set(cases "${cases}" PARENT_SCOPE)
endfunction()
add_orders("m, n, k" "m k;k m" "k n;n k" "m n;n m" "1, 0")
add_orders("b, m, n, k" "b m k;b k m;m b k;k b m" "b k n;b n k;k b n;n b k" "b m n;b n m;m b n;n b m" "1, 0, 2")
file(WRITE ${WORK}/mlir/orders.mlir "${module}")
file(WRITE ${WORK}/mlir/orders.inc "${cases}")
run(${deepgen} import mlir/orders.mlir -o mlir/orders.mlir.json)
configure(mlir orders -DDEEPGEN_MODE=lock -DDEEPGEN_VERIFY=OFF -DMODULE=orders.mlir -DCASES=${WORK}/mlir/orders.inc)
expect("kernels has 72 functions of orders.mlir")
build(orders)
run(orders/app)
expect("f_mk_kn_mn: largest" "f_kbm_nbk_nbm: largest" "ok")

# What does not fit together.
file(READ ${WORK}/mlir/model.mlir module)
string(REPLACE "tensor<8x16xf32>" "tensor<9x16xf32>" changed "${module}")
string(REPLACE "tensor<8x24xf32>" "tensor<9x24xf32>" changed "${changed}")
file(WRITE ${WORK}/mlir/model.mlir "${changed}")
run_failing(${CMAKE_COMMAND} -S mlir -B build)
expect("deepgen_add_mlir(kernels): FILE" "is not the module that model.mlir.json was made of" "deepgen import model.mlir -o model.mlir.json")
run_failing(${deepgen} mlir --manifest imported.json --namespace other --module mlir/model.mlir --calls again.mlir)
expect("is not the one of the manifest" "deepgen import mlir/model.mlir")
expect_no_file(again.mlir)
file(REMOVE ${WORK}/mlir/model.mlir.json)
run_failing(${CMAKE_COMMAND} -S mlir -B build)
expect("MANIFEST" "does not exist" "deepgen import model.mlir -o model.mlir.json")
file(WRITE ${WORK}/empty.mlir "func.func @f() { return }\n")
run_failing(${deepgen} import empty.mlir -o empty.json)
expect("has no matrix product" "linalg.contract")
expect_no_file(empty.json)
run_failing(${deepgen} import empty.mlir empty.mlir -o empty.json)
expect("imported by itself")

# The files of the auto-scheduler, word by word: search, report, CSV.
file(MAKE_DIRECTORY ${WORK}/scheduler)
file(COPY ${DEEPGEN_SOURCE}/tests/mlir/auto-scheduler.cfg ${DEEPGEN_SOURCE}/tests/mlir/matmul.mlir DESTINATION ${WORK}/scheduler)
run(${deepgen} import scheduler/auto-scheduler.cfg -o scheduler/matmul.mlir.json)
expect("tuner XGBoostTuner is strategy gbt" "n_trial is trials: 16" "tile_m is mc of cpu_tile: 64, 128" "iree_bin has no counterpart"
  "block_dim_z has no counterpart" "deepgen_add_mlir(matmul FILE")
file(WRITE ${WORK}/scheduler/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(scheduler CXX)
find_package(DeepGen 0.1 REQUIRED)
deepgen_add_mlir(matmul FILE matmul.mlir SEARCH_FILE auto-scheduler.search.json ARCHS cpu)
")
configure(scheduler tuning)
tune(tuning)
run(${deepgen} report --build tuning --dispatches --csv matmul.csv)
expect("Dispatch : matmul_1024x512x256_f32t_f32t_f32t_cpu_tile" "Provider : DeepGen" "OpKind : OperationKind.Matmul"
  "Arguments : --batch_count=1 --m=1024 --n=512 --k=256 --lhs=f32t --rhs=f32t --result=f32t --split_k_mode=N/A --split_k_slices=N/A"
  "Verification : SUCCESS" "Runtime(ms)" "GFLOPs" "[Performance]: The best is cpu_tile" "with gflops" "0 hours" "minutes")
file(STRINGS ${WORK}/matmul.csv rows)
list(LENGTH rows count)
list(GET rows 1 row)
if(count LESS 3 OR NOT row MATCHES "^DeepGen,Matmul,matmul_1024x512x256_f32t_f32t_f32t,1,1024,512,256,f32t,f32t,f32t,N/A,N/A,cpu_tile_")
  message(FATAL_ERROR "matmul.csv is not as it should be: ${rows}")
endif()
