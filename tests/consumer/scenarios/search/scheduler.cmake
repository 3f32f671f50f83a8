# The files of the auto-scheduler, word by word: search, report, CSV.
set(deepgen ${PREFIX}/bin/deepgen)
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
# A round of its finalists takes a tenth of a second on a slow machine: 0.3 s are not the rounds that a decision needs.
configure(scheduler tuning -DDEEPGEN_MEASURE_SECONDS=3)
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
