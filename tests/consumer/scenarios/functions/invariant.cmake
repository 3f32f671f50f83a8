# A function with BATCH_INVARIANT is searched, locked with its order of sums and what that costs, and frozen to the same
# bytes; an entry that was tuned without it is stale, and so is one whose kernels add up in several orders.
file(COPY ${DEEPGEN_SOURCE}/tests/consumer/projects/invariant DESTINATION ${WORK})
configure(invariant tuning -DINVARIANT=BATCH_INVARIANT)
tune(tuning)
build(tuning)
run(tuning/app)
expect("rows are what they are")
expect_null_build(tuning)

file(READ ${WORK}/tuning/_deepgen/kernels/up/cpu/final.jsonl output)
expect("\"sum_order\":\"cpu_tile isa=" "\"row_bits\":\"")
expect_not("\"status\":\"varies\"")
file(READ ${WORK}/invariant/deepgen.lock.json output)
expect("invariant=rows align=4" "\"sum_order\":\"cpu_tile isa=" "\"order_cost\":")
run(${PREFIX}/bin/deepgen lock show --lock invariant/deepgen.lock.json)
expect("batch invariant: cpu_tile isa=" "times as long as the best finalists of all orders")
run(${PREFIX}/bin/deepgen lock check --lock invariant/deepgen.lock.json)

configure(invariant frozen -DINVARIANT=BATCH_INVARIANT -DDEEPGEN_MODE=frozen)
build(frozen -v)
expect_not(${search_edges})
expect_equal_files(tuning/_deepgen/kernels/kernels.cpp frozen/_deepgen/kernels/kernels.cpp)
run(frozen/app)
expect("rows are what they are")

# The same without it is another problem.
configure(invariant without -DDEEPGEN_MODE=frozen)
run_failing(${CMAKE_COMMAND} --build without)
expect("kernels up: stale: it was tuned with BATCH_INVARIANT: gemm m=1..300")
# No device, no lock: default configs are of one order, too.
configure(invariant untuned -DINVARIANT=BATCH_INVARIANT -DMORE=UNTUNED)
build(untuned)
run(untuned/app)
expect("rows are what they are")

# The vendor's library promises nothing.
run_failing(${CMAKE_COMMAND} -G Ninja -S invariant -B vendor -DCMAKE_BUILD_TYPE=Release ${quick} -DINVARIANT=BATCH_INVARIANT
  -DFIXED=FALLBACK -DWORD=vendor)
expect("does not go with BATCH_INVARIANT")
