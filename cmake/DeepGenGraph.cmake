# The edges behind deepgen_add_gemm(): a static graph, so Ninja sees every candidate and resumes an interrupted search.
#
#   plan r0 -> compile slots -> measure r0 -> plan r1 -> ... -> playoff -> select -> compile winner -> embed
#
# What keeps it from running again without need (each of these was paid for once):
# * Edges run the tool but do not depend on its file: they depend on codegen.id, which one edge rewrites only when the
#   generated code may change. So a relink of the tool re-runs that edge alone.
# * Measuring depends on kernels only, and kernels, plans and choices are left alone when equal (restat prunes).
# * The lock is an input and never an OUTPUT or BYPRODUCT: `ninja clean` deletes those.
# * Commands hold paths and numbers, never configs: tuning does not change build.ninja.
# * Paths in commands are relative to the library's folder: hundreds of problems fit into one command line.
include_guard(GLOBAL)

# What all libraries of a build tree share, at the first call: checks, pools and codegen.id.
function(_deepgen_project_setup target)
  if(NOT TARGET DeepGen::runtime)
    _deepgen_fail(${target} "target" "DeepGen::runtime" "is not visible in this directory"
      "find_package(DeepGen) or add_subdirectory() of DeepGen here or in a folder above")
  endif()
  get_property(done GLOBAL PROPERTY DEEPGEN_SETUP)
  if(done)
    return()
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CXX IN_LIST languages)
    _deepgen_fail(${target} "languages" "${languages}" "lack C++" "project(... LANGUAGES CXX)")
  elseif(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    _deepgen_fail(${target} "target system" "${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}" "is not served"
      "Linux x86_64")
  endif()
  if(DEEPGEN_COMPILE_JOBS)
    _deepgen_check_counts(${target} DEEPGEN_COMPILE_JOBS "${DEEPGEN_COMPILE_JOBS}" 4096)
  endif()
  if(DEEPGEN_GPU_JOBS)
    _deepgen_check_counts(${target} DEEPGEN_GPU_JOBS "${DEEPGEN_GPU_JOBS}" 64)
  endif()
  if(NOT DEEPGEN_MEASURE_SECONDS MATCHES "^([0-9]+(\\.[0-9]+)?)?$")
    _deepgen_fail(${target} DEEPGEN_MEASURE_SECONDS "${DEEPGEN_MEASURE_SECONDS}" "is not a number of seconds"
      "a decimal number, or empty")
  endif()
  _deepgen_find_tools(${target})
  set_property(GLOBAL PROPERTY DEEPGEN_SETUP TRUE)
  # At the end of the project, after its own pools and the GPUs are known; a pool that is defined twice is an error of
  # Ninja's.
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [=[${CMAKE_SOURCE_DIR}]=] CALL _deepgen_define_pools)")
  _deepgen_codegen_edge()
endfunction()

# DEEPGEN_TOOL, DEEPGEN_MEASURE (global properties): what commands start. A target of this build, or a path: a path is
# the same in every configuration of a multi-config build, so switching configurations re-runs nothing.
function(_deepgen_find_tools target)
  set(measure_default ${DEEPGEN_MEASURE_EXECUTABLE})
  if(DEEPGEN_EXECUTABLE AND NOT measure_default)
    cmake_path(REPLACE_FILENAME DEEPGEN_EXECUTABLE deepgen-measure OUTPUT_VARIABLE measure_default)
  endif()
  foreach(tool "deepgen|${DEEPGEN_EXECUTABLE}|DEEPGEN_EXECUTABLE|DEEPGEN_TOOL"
               "deepgen-measure|${measure_default}|DEEPGEN_MEASURE_EXECUTABLE|DEEPGEN_MEASURE")
    string(REPLACE "|" ";" tool "${tool}")
    list(POP_FRONT tool name path variable property)
    if(path)
      cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CMAKE_BINARY_DIR} NORMALIZE)
      if(NOT EXISTS ${path} OR IS_DIRECTORY ${path})
        _deepgen_fail(${target} ${variable} "${path}" "does not exist" "the path of ${name}, or empty")
      endif()
      if(NOT TARGET DeepGen::${name})
        add_executable(DeepGen::${name} IMPORTED GLOBAL)
        set_target_properties(DeepGen::${name} PROPERTIES IMPORTED_LOCATION ${path})
      endif()
      set_property(GLOBAL PROPERTY ${property} ${path})
    elseif(NOT TARGET DeepGen::${name})
      _deepgen_fail(${target} ${variable} "" "is empty and this DeepGen comes without ${name}" "the path of ${name}")
    else()
      get_target_property(imported DeepGen::${name} IMPORTED)
      set(command DeepGen::${name})
      if(imported)
        get_target_property(command DeepGen::${name} LOCATION)
      endif()
      set_property(GLOBAL PROPERTY ${property} ${command})
    endif()
  endforeach()
endfunction()

# What commands that use the cache between builds get: nothing, for the user's.
function(_deepgen_cache_option result)
  set(option "")
  if(DEEPGEN_CACHE_DIR)
    cmake_path(ABSOLUTE_PATH DEEPGEN_CACHE_DIR BASE_DIRECTORY ${CMAKE_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE folder)
    set(option --cache ${folder})
  endif()
  set(${result} "${option}" PARENT_SCOPE)
endfunction()

# Runs when the directory of the first call ends: all problems of the library are known. Its variables are read and
# extended by the macros below.
function(_deepgen_finish_library target)
  get_property(tool GLOBAL PROPERTY DEEPGEN_TOOL)
  get_property(measure GLOBAL PROPERTY DEEPGEN_MEASURE)
  get_target_property(names ${target} DEEPGEN_NAMES)
  get_target_property(archs ${target} DEEPGEN_ARCHS)
  get_target_property(lock ${target} DEEPGEN_LOCK_FILE)
  get_target_property(mode ${target} DEEPGEN_MODE)
  set(shared ${CMAKE_BINARY_DIR}/_deepgen)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target})
  _deepgen_read_lock(${lock} entries)
  _deepgen_cache_option(cache)
  _deepgen_search_mode()

  set(select_args "") # a group per problem and arch
  set(select_deps ${shared}/codegen.id)
  set(choices "")
  set(embed_args "")
  set(embed_deps ${shared}/codegen.id)
  set(merge_args "")
  set(all_records "")
  set(finals "")
  set(dry_runs "") # a command for each problem and arch that is searched
  set(devices "") # --device of each arch
  set(device_files "")
  set(unattached "") # archs that are not searched here
  foreach(arch IN LISTS archs)
    _deepgen_device_edge(${target} ${arch} device_${arch})
    list(APPEND devices --device ${device_${arch}})
    list(APPEND device_files ${device_${arch}})
    list(APPEND select_deps ${device_${arch}})
    _deepgen_is_attached(${arch} attached_${arch})
    if(NOT attached_${arch})
      list(APPEND unattached ${arch})
    endif()
  endforeach()
  if(unattached AND mode STREQUAL "auto")
    list(JOIN unattached ", " text)
    message(STATUS "DeepGen: ${target}: no ${text} device here: built from the lock, else from default configs")
  endif()
  foreach(name IN LISTS names)
    list(APPEND select_deps ${folder}/${name}/problem.json)
    list(APPEND embed_deps ${folder}/${name}/problem.json)
    list(APPEND embed_args --problem ${name}/problem.json)
    foreach(arch IN LISTS archs)
      _deepgen_problem_edges()
    endforeach()
  endforeach()
  set(where ${devices} --lock ${lock})
  if(EXISTS ${lock})
    # Another order of words: a lock that appears changes the command, so Ninja runs it again however old the file is.
    set(where --lock ${lock} ${devices})
    list(APPEND select_deps ${lock})
  endif()

  add_custom_command(OUTPUT ${choices}
    COMMAND ${tool} select --mode ${mode} ${where} ${select_args}
    DEPENDS ${select_deps} WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: selecting configs")
  set(locked_by "") # a frozen build links what its lock names, whatever happened to the files between
  if(mode STREQUAL "frozen" AND EXISTS ${lock})
    set(locked_by --locked-by ${lock})
    list(APPEND embed_deps ${lock})
  endif()
  add_custom_command(OUTPUT ${folder}/${target}.cpp ${folder}/include/${target}.h
    COMMAND ${tool} embed --target ${target} --header include/${target}.h --source ${target}.cpp ${locked_by} ${embed_args}
    DEPENDS ${embed_deps} WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: embedding kernels")
  add_dependencies(${target} deepgen.setup)
  _deepgen_tune_target()
endfunction()

# Sets `can_search`, whether the tune target may search, and makes `mode` one that the generator can do.
macro(_deepgen_search_mode)
  set(can_search FALSE)
  if(CMAKE_GENERATOR MATCHES "Ninja" AND NOT mode STREQUAL "frozen")
    set(can_search TRUE)
  endif()
  if(mode STREQUAL "auto" AND NOT CMAKE_GENERATOR MATCHES "Ninja")
    set(mode lock)
    message(STATUS "DeepGen: ${target}: only Ninja generators search; ${CMAKE_GENERATOR} builds what the lock has, else defaults")
  endif()
endmacro()

# The edges of problem `name` on `arch`, and its words in the commands of the library.
macro(_deepgen_problem_edges)
  get_target_property(key ${target} DEEPGEN_KEY_${name})
  get_target_property(untuned ${target} DEEPGEN_UNTUNED_${name})
  set(here ${name}/${arch})
  list(APPEND select_args --problem ${name}/problem.json --arch ${arch})
  if(can_search AND NOT untuned AND attached_${arch})
    _deepgen_search_edges() # sets `records`, extends `dry_runs`
    list(APPEND merge_args --problem ${name}/problem.json --arch ${arch} --records ${records} ${here}/final.jsonl)
    list(APPEND all_records ${records} ${here}/final.jsonl)
    list(APPEND finals ${folder}/${here}/final.jsonl)
    string(FIND "${entries}" "\"problem\":\"${key}\",\"arch\":\"${arch}\"" locked)
    if(mode STREQUAL "auto" AND locked EQUAL -1)
      list(APPEND select_args --records ${here}/final.jsonl)
      list(APPEND select_deps ${folder}/${here}/final.jsonl)
    endif()
  endif()
  list(APPEND select_args -o ${here}/choice.json)
  list(APPEND choices ${folder}/${here}/choice.json)
  list(APPEND embed_args --kernel ${here}/winner.dgk)
  list(APPEND embed_deps ${folder}/${here}/winner.dgk)
  _deepgen_winner_edge()
  _deepgen_verified_edge() # extends `embed_args` and `embed_deps`
endmacro()

# The lock as text, read once per configure and path. CMake runs again when it changes or appears. An absent lock must
# not be a dependency, since a missing input is always out of date: a glob watches for it.
function(_deepgen_read_lock lock result)
  set(text "")
  if(EXISTS ${lock})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lock})
    get_property(known GLOBAL PROPERTY "DEEPGEN_LOCK ${lock}" SET)
    if(NOT known)
      _deepgen_read_text(${target} LOCK_FILE "${lock}" text)
      set_property(GLOBAL PROPERTY "DEEPGEN_LOCK ${lock}" "${text}")
    endif()
    get_property(text GLOBAL PROPERTY "DEEPGEN_LOCK ${lock}")
  else()
    string(REGEX REPLACE "([[*?])" "[\\1]" pattern "${lock}")
    file(GLOB ignored CONFIGURE_DEPENDS "${pattern}")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# The search of one problem on one arch. Reads the variables of _deepgen_finish_library; sets `records`.
function(_deepgen_search_edges)
  set(base ${folder}/${here})
  foreach(option SLOTS PLAN COMPILE MEASURE PLAYOFF SEARCH_FILES)
    string(TOLOWER ${option} variable)
    get_target_property(${variable}_option ${target} DEEPGEN_${option}_${name})
  endforeach()
  set(pool deepgen_measure)
  set(no_awkward "")
  if(NOT arch STREQUAL "cpu")
    set(pool deepgen_measure_gpu)
    set(no_awkward --no-awkward) # assemblers take most of the time: finalists alone get the kernel for an awkward shape
  endif()
  set(records "")
  set(record_files "")
  set(past "") # --records of the rounds so far
  set(anchor "")
  set(round 0)
  foreach(count IN LISTS slots_option)
    set(r r${round})
    # The lock gives the incumbent. No dependency: what `tune` has just merged is no reason to search again.
    set(plan plan --problem ${name}/problem.json --arch ${arch} --device ${device_${arch}} --round ${round} --slots ${count}
      --lock ${lock} ${plan_option})
    add_custom_command(OUTPUT ${base}/${r}/plan.json ${base}/${r}/commands.txt
      COMMAND ${tool} ${plan} ${past} --commands ${here}/${r}/commands.txt -o ${here}/${r}/plan.json
      DEPENDS ${folder}/${name}/problem.json ${device_${arch}} ${shared}/codegen.id ${search_files_option} ${record_files}
      WORKING_DIRECTORY ${folder} VERBATIM COMMENT "Planning ${target}: ${here} ${r}")
    if(round EQUAL 0)
      list(APPEND dry_runs COMMAND ${tool} ${plan} --dry-run)
    endif()
    set(kernels "")
    math(EXPR last "${count} - 1")
    foreach(slot RANGE ${last})
      set(file ${slot})
      if(slot LESS 10)
        set(file 0${slot})
      endif()
      set(file ${r}/s${file}.dgk)
      list(APPEND kernels ${base}/${file})
      add_custom_command(OUTPUT ${base}/${file}
        COMMAND ${tool} compile --plan ${here}/${r}/plan.json --slot ${slot} ${no_awkward} ${cache} ${compile_option} -o ${here}/${file}
        DEPENDS ${base}/${r}/plan.json ${shared}/codegen.id
        WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL deepgen_compile COMMENT "Compiling ${target}: ${here}/${file}")
    endforeach()
    if(round GREATER 0)
      set(anchor --anchor ${here}/r0/s00.dgk)
      list(APPEND kernels ${base}/r0/s00.dgk)
    endif()
    add_custom_command(OUTPUT ${base}/${r}/records.jsonl
      COMMAND ${measure} run --plan ${here}/${r}/plan.json --kernels ${here}/${r} --slots ${count}
        --device ${device_${arch}} ${anchor} ${past} ${measure_option} ${cache} -o ${here}/${r}/records.jsonl
      DEPENDS ${kernels} ${device_${arch}} ${record_files}
      WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${pool} COMMENT "Measuring ${target}: ${here} ${r}")
    list(APPEND records ${here}/${r}/records.jsonl)
    list(APPEND record_files ${base}/${r}/records.jsonl)
    set(past --records ${records})
    math(EXPR round "${round} + 1")
  endforeach()
  _deepgen_finalist_edges() # sets `awkward` and `awkward_files`
  add_custom_command(OUTPUT ${base}/final.jsonl
    COMMAND ${measure} playoff --device ${device_${arch}} --records ${records} ${awkward} ${playoff_option} -o ${here}/final.jsonl
    DEPENDS ${record_files} ${awkward_files} ${device_${arch}}
    WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${pool} COMMENT "Playoff ${target}: ${here}")
  list(POP_FRONT slots_option)
  list(JOIN slots_option ", " later)
  if(later)
    list(APPEND dry_runs COMMAND ${CMAKE_COMMAND} -E echo "then up to ${later} candidates in later rounds, chosen by what was measured")
  endif()
  set(dry_runs "${dry_runs}" PARENT_SCOPE)
  set(records "${records}" PARENT_SCOPE)
endfunction()

# What the rounds have left out of the default and the best: as many as kFinalists of base/finalists.h.
macro(_deepgen_finalist_edges)
  set(awkward "")
  set(awkward_files "")
  if(no_awkward)
    set(awkward --awkward)
    foreach(finalist RANGE 6)
      list(APPEND awkward ${here}/final/f${finalist}.dgk)
      list(APPEND awkward_files ${base}/final/f${finalist}.dgk)
      add_custom_command(OUTPUT ${base}/final/f${finalist}.dgk
        COMMAND ${tool} compile --finalist ${finalist} --records ${records} ${cache} ${compile_option}
          -o ${here}/final/f${finalist}.dgk
        DEPENDS ${record_files} ${shared}/codegen.id
        WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL deepgen_compile COMMENT "Compiling ${target}: ${here}/final/f${finalist}.dgk")
    endforeach()
  endif()
endmacro()

function(_deepgen_winner_edge)
  set(frozen "")
  if(mode STREQUAL "frozen")
    set(frozen --frozen)
  endif()
  set(pool "")
  if(CMAKE_GENERATOR MATCHES "Ninja")
    set(pool JOB_POOL deepgen_compile)
  endif()
  add_custom_command(OUTPUT ${folder}/${here}/winner.dgk
    COMMAND ${tool} compile --choice ${here}/choice.json ${frozen} ${cache} -o ${here}/winner.dgk
    DEPENDS ${folder}/${here}/choice.json ${shared}/codegen.id
    WORKING_DIRECTORY ${folder} VERBATIM ${pool} COMMENT "Compiling ${target}: ${here} winner")
endfunction()

# What no search has verified of a winner and its fallbacks is verified before it is linked: on the CPU always, on a GPU where it
# is attached and this is no build that has to give the same bytes everywhere. The rest is linked with "(not verified)".
macro(_deepgen_verified_edge)
  set(verify "")
  if(arch STREQUAL "cpu")
    set(pool deepgen_compile)
    set(verify verify ${here}/winner.dgk --unproven)
    if(mode STREQUAL "frozen")
      list(APPEND verify --any-host --no-cache)
    elseif(mode STREQUAL "lock")
      list(APPEND verify --any-host ${cache})
    else()
      list(APPEND verify ${cache})
    endif()
    list(APPEND verify -o ${here}/verified.json)
  elseif(mode STREQUAL "auto" AND attached_${arch})
    set(pool deepgen_measure_gpu)
    set(verify verify ${here}/winner.dgk --unproven --device ${device_${arch}} ${cache} -o ${here}/verified.json)
  endif()
  if(verify AND DEEPGEN_VERIFY)
    if(CMAKE_GENERATOR MATCHES "Ninja")
      set(pool JOB_POOL ${pool})
    else()
      set(pool "")
    endif()
    add_custom_command(OUTPUT ${folder}/${here}/verified.json
      COMMAND ${measure} ${verify}
      DEPENDS ${folder}/${here}/winner.dgk WORKING_DIRECTORY ${folder} VERBATIM ${pool}
      COMMENT "Verifying ${target}: ${here} winner and fallbacks")
    list(APPEND embed_args --verified ${here}/verified.json)
    list(APPEND embed_deps ${folder}/${here}/verified.json)
  endif()
endmacro()

# <target>.tune and the global target: one utility target a library, never one a slot. Merging the lock is a side
# effect that is declared nowhere; the stamp makes CMake run again, which then builds from the lock.
function(_deepgen_tune_target)
  set(stamp ${folder}/lock.stamp)
  if(NOT EXISTS ${stamp})
    file(TOUCH ${stamp})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${stamp})

  set(why "")
  if(mode STREQUAL "frozen")
    set(why "DEEPGEN_MODE is frozen, which never searches. Configure another build folder with -DDEEPGEN_MODE=auto and run its tune target")
  elseif(NOT can_search)
    set(why "only Ninja generators tune, and this is ${CMAKE_GENERATOR}. Configure another build folder with -G Ninja and run its tune target; it writes ${lock}, which this one builds from")
  endif()
  if(why)
    add_custom_target(${target}.tune
      COMMAND ${CMAKE_COMMAND} -E echo "DeepGen: cannot tune ${target}: ${why}." COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  elseif(merge_args)
    add_custom_target(${target}.tune
      COMMAND ${tool} lock merge --lock ${lock} ${devices} --stamp lock.stamp ${merge_args}
      COMMAND ${tool} report --records ${all_records}
      DEPENDS ${finals} WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: merging winners into ${lock}")
  else()
    set(why "has only UNTUNED problems")
    if(unattached)
      list(JOIN unattached ", " text)
      set(why "has nothing to tune here: no ${text} device is attached")
    endif()
    add_custom_target(${target}.tune COMMAND ${CMAKE_COMMAND} -E echo "DeepGen: ${target} ${why}" VERBATIM)
  endif()
  add_dependencies(${target}.tune deepgen.setup)
  if(dry_runs)
    add_custom_target(${target}.dry-run ${dry_runs} DEPENDS ${device_files} WORKING_DIRECTORY ${folder} VERBATIM)
    set_target_properties(${target}.dry-run PROPERTIES FOLDER DeepGen)
  endif()
  if(NOT TARGET ${DEEPGEN_TUNE_TARGET})
    add_custom_target(${DEEPGEN_TUNE_TARGET})
    set_target_properties(${DEEPGEN_TUNE_TARGET} PROPERTIES FOLDER DeepGen DEEPGEN_TUNES_ALL TRUE)
    _deepgen_report_target(${tool})
  endif()
  get_target_property(ours ${DEEPGEN_TUNE_TARGET} DEEPGEN_TUNES_ALL)
  if(NOT ours)
    _deepgen_fail(${target} DEEPGEN_TUNE_TARGET "${DEEPGEN_TUNE_TARGET}" "is already another target of this project"
      "a name that is free: -DDEEPGEN_TUNE_TARGET=<name>")
  endif()
  add_dependencies(${DEEPGEN_TUNE_TARGET} ${target}.tune)
  set_property(TARGET ${DEEPGEN_TUNE_TARGET} APPEND PROPERTY DEEPGEN_LOCKS ${lock})
  set_target_properties(${target}.tune PROPERTIES FOLDER DeepGen)
endfunction()

# <tune>-report: one page of all records that the build tree has. It tunes nothing.
function(_deepgen_report_target tool)
  set(name ${DEEPGEN_TUNE_TARGET}-report)
  if(TARGET ${name})
    return()
  endif()
  set(locks "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${DEEPGEN_TUNE_TARGET},DEEPGEN_LOCKS>>")
  add_custom_target(${name}
    COMMAND ${tool} report --build ${CMAKE_BINARY_DIR} --lock "${locks}" --html ${CMAKE_BINARY_DIR}/deepgen-report.html
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "DeepGen: writing ${CMAKE_BINARY_DIR}/deepgen-report.html")
  add_dependencies(${name} deepgen.setup)
  set_target_properties(${name} PROPERTIES FOLDER DeepGen)
endfunction()
