# The edges behind deepgen_add_gemm(): a static graph, so Ninja sees every candidate and resumes an interrupted search.
#
#   header
#   plan r0 -> compile slots -> measure r0 -> plan r1 -> ... -> playoff -> select -> compile winner -> embed
#
# What keeps it from running again without need (each of these was paid for once):
# * Edges run the tool but do not depend on its file: they depend on codegen.id, which one edge rewrites only when the
#   generated code may change. So a relink of the tool re-runs that edge alone.
# * Measuring depends on kernels only, and kernels, plans and choices are left alone when equal (restat prunes).
# * The lock is an input and never an OUTPUT or BYPRODUCT: `ninja clean` deletes those.
# * Commands hold paths and numbers, never configs: tuning does not change build.ninja.
# * Paths in commands are relative to the library's folder: hundreds of problems fit into one command line.
#
# What keeps configuring linear, and a null build fast, with a thousand problems:
# * Words of the commands that see all problems are gathered in properties: appending to a variable copies it.
# * The first searches of a build tree have an edge a slot, so that a single problem keeps all cores busy. Later ones have
#   one for many slots: the cores have other problems then.
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)

set_property(GLOBAL PROPERTY DEEPGEN_SEARCH_COUNT 0)
set_property(GLOBAL PROPERTY DEEPGEN_SINGLE_SLOTS 16) # searches with an edge a slot
set_property(GLOBAL PROPERTY DEEPGEN_SLOTS_PER_EDGE 64) # of the later ones

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
  list(REMOVE_ITEM languages NONE)
  if(NOT CXX IN_LIST languages)
    list(JOIN languages " " languages)
    _deepgen_fail(${target} "languages" "${languages}"
      "lack CXX: DeepGen generates a C++ source for the library, also where only C calls it"
      "project(<name> LANGUAGES ${languages} CXX)")
  elseif(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    _deepgen_fail(${target} "target system" "${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}" "is not served"
      "Linux x86_64")
  endif()
  _deepgen_check_variables(${target})
  _deepgen_find_tools(${target})
  _deepgen_read_sites(${target})
  set_property(GLOBAL PROPERTY DEEPGEN_SETUP TRUE)
  # At the end of the project, after its own pools and the GPUs are known; a pool that is defined twice is an error of
  # Ninja's.
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [=[${CMAKE_SOURCE_DIR}]=] CALL _deepgen_define_pools)")
  _deepgen_codegen_edge()
endfunction()

# Cache variables that concern no single problem.
function(_deepgen_check_variables target)
  if(CMAKE_BINARY_DIR MATCHES "[#<>|]")
    _deepgen_fail(${target} "binary folder" "${CMAKE_BINARY_DIR}"
      "has one of # < > |, which custom commands of CMake or files of Ninja do not take" "a folder without")
  endif()
  if(DEEPGEN_COMPILE_JOBS)
    _deepgen_check_counts(${target} DEEPGEN_COMPILE_JOBS "${DEEPGEN_COMPILE_JOBS}" 4096)
  endif()
  if(DEEPGEN_GPU_JOBS)
    _deepgen_check_counts(${target} DEEPGEN_GPU_JOBS "${DEEPGEN_GPU_JOBS}" 64)
  endif()
  if(NOT DEEPGEN_MEASURE_SECONDS MATCHES "^([0-9]?[0-9]?[0-9]?[0-9]?[0-9](\\.[0-9]+)?)?$")
    _deepgen_fail(${target} DEEPGEN_MEASURE_SECONDS "${DEEPGEN_MEASURE_SECONDS}" "is not a number of seconds"
      "a decimal number below 100000, or empty")
  endif()
  if(NOT DEEPGEN_UPLIFT MATCHES "^([0-9]?[0-9]?[0-9](\\.[0-9]+)?)?$")
    _deepgen_fail(${target} DEEPGEN_UPLIFT "${DEEPGEN_UPLIFT}" "is no factor" "a decimal number such as 1.03, or empty")
  endif()
  foreach(variable DEEPGEN_CACHE_DIR DEEPGEN_EXECUTABLE DEEPGEN_MEASURE_EXECUTABLE DEEPGEN_REFERENCE DEEPGEN_TUNE_TARGET)
    _deepgen_check_printable(${target} ${variable} "${${variable}}")
  endforeach()
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

# Appends words to list `what` of the library that is finished now.
macro(_deepgen_gather what)
  set_property(GLOBAL APPEND PROPERTY DEEPGEN_GATHERED_${what} ${ARGN})
endmacro()

# Runs when the directory of the first call ends: all problems of the library are known. The functions below read its
# variables: tool, measure, archs, lock, mode, shared, folder, cache, can_search, from_folder, compiles, device_<arch>,
# attached_<arch>, sites_<arch>.
function(_deepgen_finish_library target)
  get_property(tool GLOBAL PROPERTY DEEPGEN_TOOL)
  get_property(measure GLOBAL PROPERTY DEEPGEN_MEASURE)
  get_target_property(names ${target} DEEPGEN_NAMES)
  get_target_property(archs ${target} DEEPGEN_ARCHS)
  get_target_property(lock ${target} DEEPGEN_LOCK_FILE)
  get_target_property(mode ${target} DEEPGEN_MODE)
  set(shared ${CMAKE_BINARY_DIR}/_deepgen)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target})
  _deepgen_read_lock(${lock})
  _deepgen_cache_option(cache)
  _deepgen_search_mode()
  _deepgen_vendored_mode()

  # select_*: a group per problem and arch; embed_*: one per problem; dry_runs: a command for each search
  foreach(what select_args select_deps choices problems header_args embed_args winners merge_args finals dry_runs)
    set_property(GLOBAL PROPERTY DEEPGEN_GATHERED_${what} "")
  endforeach()
  set(devices "") # --device of each arch
  set(device_files "")
  set(unattached "") # archs that are not searched here
  set(device_targets "")
  set(site_device_files "")
  foreach(arch IN LISTS archs)
    if(NOT compiles)
      break()
    endif()
    _deepgen_sites_of(${arch} sites_${arch})
    _deepgen_check_start_only(${arch} "${sites_${arch}}")
    if(NOT sites_${arch} STREQUAL "")
      _deepgen_arch_at_sites()
    else()
      _deepgen_device_edge(${arch} device_${arch})
      list(APPEND devices --device ${device_${arch}})
      list(APPEND device_files ${device_${arch}})
      list(APPEND device_targets deepgen.device.${arch})
      _deepgen_is_attached(${arch} attached_${arch})
    endif()
    if(NOT attached_${arch})
      list(APPEND unattached ${arch})
    endif()
  endforeach()
  if(unattached AND mode STREQUAL "auto")
    list(JOIN unattached ", " text)
    message(STATUS "DeepGen: ${target}: no ${text} device here: built from the lock, else from default configs")
  endif()
  foreach(name IN LISTS names)
    _deepgen_gather(problems ${folder}/${name}/problem.json)
    _deepgen_gather(header_args --problem ${name}/problem.json)
    _deepgen_gather(embed_args --problem ${name}/problem.json)
    foreach(arch IN LISTS archs)
      _deepgen_problem_edges(${name} ${arch})
    endforeach()
  endforeach()
  foreach(what select_args select_deps choices problems header_args embed_args winners merge_args finals dry_runs)
    get_property(${what} GLOBAL PROPERTY DEEPGEN_GATHERED_${what})
  endforeach()
  _deepgen_library_edges()
  _deepgen_tune_target()
  _deepgen_announce_later()
endfunction()

# The edges that see all problems of the library, and the targets that have its files.
function(_deepgen_library_edges)
  set(header ${folder}/include/${target}.h)
  set(where ${devices} --lock ${lock})
  list(APPEND select_deps ${problems} ${device_files} ${shared}/codegen.id)
  if(EXISTS ${lock})
    # Another order of words: a lock that appears changes the command, so Ninja runs it again however old the file is.
    set(where --lock ${lock} ${devices})
    list(APPEND select_deps ${lock})
  endif()
  set(words "")
  foreach(arch IN LISTS archs)
    list(APPEND words --arch ${arch})
  endforeach()
  add_custom_command(OUTPUT ${header}
    COMMAND ${tool} header --target ${target} --header include/${target}.h ${words} ${header_args}
    DEPENDS ${problems} ${shared}/codegen.id
    WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: writing the header")
  if(compiles)
    add_custom_command(OUTPUT ${choices}
      COMMAND ${tool} select --mode ${mode} ${where} ${select_args}
      DEPENDS ${select_deps} WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: selecting configs")
  endif()
  set(locked_by "") # a frozen build links what its lock names, whatever happened to the files between
  if(mode STREQUAL "frozen" AND EXISTS ${lock})
    set(locked_by --locked-by ${lock})
    list(APPEND winners ${lock})
  endif()
  if(from_folder)
    set(locked_by --locked-by ${lock})
    _deepgen_vendored_files(${lock} files)
    list(APPEND winners ${files})
  endif()
  add_custom_command(OUTPUT ${folder}/${target}.cpp
    COMMAND ${tool} embed --target ${target} --header include/${target}.h --source ${target}.cpp ${locked_by} ${embed_args}
    DEPENDS ${problems} ${winners} ${shared}/codegen.id
    WORKING_DIRECTORY ${folder} VERBATIM COMMENT "DeepGen: ${target}: embedding kernels")
  add_custom_target(${target}.header DEPENDS ${header})
  add_custom_target(${target}.source DEPENDS ${folder}/${target}.cpp)
  set_target_properties(${target}.header ${target}.source PROPERTIES FOLDER DeepGen)
  if(compiles AND device_targets)
    add_dependencies(${target}.source ${device_targets})
  endif()
  add_dependencies(${target}.header deepgen.setup)
  add_dependencies(${target}.source deepgen.setup)
  add_dependencies(${target} ${target}.header)
  if(NOT CMAKE_GENERATOR MATCHES "Ninja") # which knows whose rule makes the source
    add_dependencies(${target} ${target}.source)
  endif()
  _deepgen_bundle_target()
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

# The edges of a problem on an arch, and its words in the commands of the library.
function(_deepgen_problem_edges name arch)
  get_property(untuned TARGET ${target} PROPERTY DEEPGEN_UNTUNED_${name})
  if(from_folder AND NOT untuned)
    _deepgen_gather(embed_args --vendored ${arch})
    return()
  endif()
  set(here ${name}/${arch})
  _deepgen_gather(select_args --problem ${name}/problem.json --arch ${arch})
  if(can_search AND NOT untuned AND attached_${arch})
    get_property(key TARGET ${target} PROPERTY DEEPGEN_KEY_${name})
    get_property(locked GLOBAL PROPERTY "DEEPGEN_LOCKED ${lock} ${key} ${arch}" SET)
    set(selected_by "") # the first place's search, of several
    if(sites_${arch} STREQUAL "")
      _deepgen_place_edges("" ${here})
    endif()
    foreach(site IN LISTS sites_${arch})
      _deepgen_place_edges(${site} ${name}/${arch}@${site})
    endforeach()
    if(mode STREQUAL "auto" AND NOT locked)
      _deepgen_gather(select_args --records ${selected_by})
      _deepgen_gather(select_deps ${folder}/${selected_by})
    endif()
  endif()
  _deepgen_gather(select_args -o ${here}/choice.json)
  _deepgen_gather(choices ${folder}/${here}/choice.json)
  _deepgen_gather(embed_args --kernel ${here}/winner.dgk)
  _deepgen_gather(winners ${folder}/${here}/winner.dgk)
  get_property(fallback TARGET ${target} PROPERTY DEEPGEN_FALLBACK_${name})
  if(fallback)
    _deepgen_gather(embed_args --choice ${here}/choice.json)
    _deepgen_gather(winners ${folder}/${here}/choice.json)
  endif()
  _deepgen_winner_edge()
  _deepgen_verified_edge()
endfunction()

# Sets for each entry of the lock the property "DEEPGEN_LOCKED <lock> <key> <arch>", once per configure and path. CMake runs
# again when the lock changes or appears. An absent lock must not be a dependency, since a missing input is always out of
# date: a glob watches for it.
function(_deepgen_read_lock lock)
  if(NOT EXISTS ${lock})
    string(REGEX REPLACE "([[*?])" "[\\1]" pattern "${lock}")
    file(GLOB ignored CONFIGURE_DEPENDS "${pattern}")
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lock})
  get_property(known GLOBAL PROPERTY "DEEPGEN_LOCK ${lock}" SET)
  if(known)
    return()
  endif()
  set_property(GLOBAL PROPERTY "DEEPGEN_LOCK ${lock}" TRUE)
  _deepgen_read_text("${target}" LOCK_FILE "${lock}" text)
  string(REGEX MATCHALL "\"problem\":\"[^\"]*\",\"arch\":\"[^\"]*\"" entries "${text}")
  foreach(entry IN LISTS entries)
    if(entry MATCHES "^\"problem\":\"(.*)\",\"arch\":\"(.*)\"$")
      set_property(GLOBAL PROPERTY "DEEPGEN_LOCKED ${lock} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}" TRUE)
    endif()
  endforeach()
endfunction()

# The search of one problem on one arch. Reads the variables of _deepgen_place_edges; sets `records`.
function(_deepgen_search_edges)
  set(base ${folder}/${here})
  set(label "${target} ${name}")
  get_property(id TARGET ${target} PROPERTY DEEPGEN_OPTIONS_${name})
  foreach(option SLOTS PLAN COMPILE MEASURE PLAYOFF REGIME FILES FINALISTS)
    get_property(${option} GLOBAL PROPERTY DEEPGEN_SEARCH_${id}_${option})
  endforeach()
  set(device ${device_${arch}})
  set(compile_by ${tool})
  set(measure_by ${measure})
  set(compile_pool deepgen_compile)
  set(pool deepgen_measure)
  set(step 1)
  set(no_awkward "")
  if(NOT arch STREQUAL "cpu")
    set(pool deepgen_measure_gpu)
    list(APPEND MEASURE --regime ${REGIME})
    list(APPEND PLAYOFF --regime ${REGIME})
    set(no_awkward --no-awkward) # assemblers take most of the time: finalists alone get the kernel for an awkward shape
  endif()
  if(NOT site STREQUAL "")
    set(device ${device_${arch}_${site}})
    _deepgen_site_commands()
  endif()
  foreach(list records record_files past anchor anchor_files) # past: --records of the rounds so far
    set(${list} "")
  endforeach()
  set(round 0)
  foreach(count IN LISTS SLOTS)
    set(r r${round})
    # The lock gives the incumbent. No dependency: what `tune` has just merged is no reason to search again.
    set(plan plan --problem ${name}/problem.json --arch ${arch} --device ${device} --round ${round} --slots ${count}
      --lock ${lock} ${PLAN})
    add_custom_command(OUTPUT ${base}/${r}/plan.json
      COMMAND ${tool} ${plan} ${past} --commands ${here}/${r}/commands.txt -o ${here}/${r}/plan.json
      DEPENDS ${folder}/${name}/problem.json ${device} ${shared}/codegen.id ${FILES} ${record_files}
      WORKING_DIRECTORY ${folder} VERBATIM COMMENT "Planning ${target}: ${here} ${r}")
    if(round EQUAL 0)
      _deepgen_gather(dry_runs COMMAND ${tool} ${plan} --dry-run)
    endif()
    _deepgen_slot_edges(kernels) # sets `kernels`, files of all slots
    if(round EQUAL 0)
      list(GET kernels 0 anchor_files)
    else()
      set(anchor --anchor ${here}/r0/s00.dgk)
      list(APPEND kernels ${anchor_files})
    endif()
    add_custom_command(OUTPUT ${base}/${r}/records.jsonl
      COMMAND ${measure_by} run --plan ${here}/${r}/plan.json --kernels ${here}/${r} --slots ${count} --label ${label}
        --device ${device} ${anchor} ${past} ${MEASURE} ${cache} -o ${here}/${r}/records.jsonl
      DEPENDS ${kernels} ${device} ${record_files}
      WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${pool} COMMENT "Measuring ${target}: ${here} ${r}")
    list(APPEND records ${here}/${r}/records.jsonl)
    list(APPEND record_files ${base}/${r}/records.jsonl)
    set(past --records ${records})
    math(EXPR round "${round} + 1")
  endforeach()
  _deepgen_playoff_edge()
  list(POP_FRONT SLOTS)
  list(JOIN SLOTS ", " later)
  if(later)
    _deepgen_gather(dry_runs COMMAND ${CMAKE_COMMAND} -E echo
      "then up to ${later} candidates in later rounds, chosen by what was measured")
  endif()
  set(records "${records}" PARENT_SCOPE)
endfunction()

# Reads the variables of _deepgen_search_edges, behind its rounds.
function(_deepgen_playoff_edge)
  _deepgen_finalist_edges() # sets `awkward` and `awkward_files`
  add_custom_command(OUTPUT ${base}/final.jsonl
    COMMAND ${measure_by} playoff --device ${device} --records ${records} ${awkward} ${PLAYOFF} --label ${label}
      --searches ${shared}/searches.txt -o ${here}/final.jsonl
    DEPENDS ${record_files} ${awkward_files} ${device}
    WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${pool} COMMENT "Playoff ${target}: ${here}")
endfunction()

# Compiles the `count` slots of round `r`, `step` an edge or more. Sets `result` to the files that tell Ninja of all kernels,
# slot 0's first: the kernels, or lists of what they hold.
function(_deepgen_slot_edges result)
  get_property(searches GLOBAL PROPERTY DEEPGEN_SEARCH_COUNT)
  get_property(single GLOBAL PROPERTY DEEPGEN_SINGLE_SLOTS)
  if(NOT searches LESS single)
    get_property(step GLOBAL PROPERTY DEEPGEN_SLOTS_PER_EDGE)
  elseif(NOT site STREQUAL "")
    _deepgen_even_batch(${count} step)
  endif()
  set(files "")
  math(EXPR last "${count} - 1")
  foreach(slot RANGE 0 ${last} ${step})
    set(number ${slot})
    if(slot LESS 10)
      set(number 0${slot})
    endif()
    set(file ${r}/s${number}.dgk)
    set(slots --slot ${slot})
    if(step GREATER 1)
      math(EXPR many "${count} - ${slot}")
      if(many GREATER step)
        set(many ${step})
      endif()
      set(file ${r}/s${number}.list)
      list(APPEND slots --count ${many})
    endif()
    list(APPEND files ${base}/${file})
    add_custom_command(OUTPUT ${base}/${file}
      COMMAND ${compile_by} compile --plan ${here}/${r}/plan.json ${slots} ${no_awkward} ${cache} ${COMPILE} -o ${here}/${file}
      DEPENDS ${base}/${r}/plan.json ${shared}/codegen.id
      WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${compile_pool} COMMENT "Compiling ${target}: ${here}/${file}")
  endforeach()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

# What the rounds have left out of the default and the best: as many as base/search/finalists.h has.
macro(_deepgen_finalist_edges)
  set(awkward "")
  set(awkward_files "")
  if(no_awkward)
    set(awkward --awkward)
    foreach(finalist RANGE ${FINALISTS})
      list(APPEND awkward ${here}/final/f${finalist}.dgk)
      list(APPEND awkward_files ${base}/final/f${finalist}.dgk)
      add_custom_command(OUTPUT ${base}/final/f${finalist}.dgk
        COMMAND ${compile_by} compile --finalist ${finalist} --records ${records} ${cache} ${COMPILE}
          -o ${here}/final/f${finalist}.dgk
        DEPENDS ${record_files} ${shared}/codegen.id
        WORKING_DIRECTORY ${folder} VERBATIM JOB_POOL ${compile_pool} COMMENT "Compiling ${target}: ${here}/final/f${finalist}.dgk")
    endforeach()
  endif()
endmacro()

function(_deepgen_winner_edge)
  set(frozen "")
  if(mode STREQUAL "frozen")
    set(frozen --frozen)
  endif()
  set(compile_by ${tool})
  set(compile_pool deepgen_compile)
  _deepgen_linked_elsewhere()
  _deepgen_in_pool(compile_pool)
  add_custom_command(OUTPUT ${folder}/${here}/winner.dgk
    COMMAND ${compile_by} compile --choice ${here}/choice.json ${frozen} ${cache} -o ${here}/winner.dgk
    DEPENDS ${folder}/${here}/choice.json ${shared}/codegen.id
    WORKING_DIRECTORY ${folder} VERBATIM ${compile_pool} COMMENT "Compiling ${target}: ${here} winner")
endfunction()

# What no search has verified of a winner and its fallbacks is verified before it is linked: on the CPU always, on a GPU where it
# is attached and this is no build that has to give the same bytes everywhere. The rest is linked with "(not verified)".
function(_deepgen_verified_edge)
  set(verify "")
  set(measure_by ${measure})
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
    if(NOT sites_${arch} STREQUAL "")
      list(GET sites_${arch} 0 site)
      _deepgen_site_commands()
    endif()
  endif()
  if(verify AND DEEPGEN_VERIFY)
    _deepgen_linked_elsewhere()
    _deepgen_in_pool(pool)
    add_custom_command(OUTPUT ${folder}/${here}/verified.json
      COMMAND ${measure_by} ${verify}
      DEPENDS ${folder}/${here}/winner.dgk WORKING_DIRECTORY ${folder} VERBATIM ${pool}
      COMMENT "Verifying ${target}: ${here} winner and fallbacks")
    _deepgen_gather(embed_args --verified ${here}/verified.json)
    _deepgen_gather(winners ${folder}/${here}/verified.json)
  endif()
endfunction()
