# Unity builds: the sources of one folder are compiled as one file. Most of a small file's time goes into the same headers
# again and again (CLI11, GoogleTest, nanobind), so this halves a build from nothing. It is for CI: while editing, one file
# at a time is faster, and compiling files one by one shows what one of them forgets to include (`dev` and `tidy` do).
option(NEARWISE_UNITY "Compile the sources of a folder as one file" OFF)

option(NEARWISE_UNITY_BACKEND "Unity builds: also the CPU backend, except its kernels" OFF)

# Kernels, which Highway compiles once per instruction set, and files that share a private name with a neighbour. With -O3
# a group of the backend's other files takes too long for one compilation; with -O1 it does not.
set(backend_alone "^src/backend/")
if(NEARWISE_UNITY_BACKEND)
  # Without parentheses: CMake takes ten in one expression.
  set(backend_alone "^src/backend/cuda/|^src/backend/cpu/kernels/|^src/backend/cpu/x86/|^src/backend/cpu/codes/part_codes"
                    "|^src/backend/cpu/codes/rotate|^src/backend/cpu/exact/fallback|^src/backend/cpu/graph/prune_edges")
endif()
set(NEARWISE_COMPILED_ALONE
    ${backend_alone} "|^src/cluster/(mini_batch|seeding|split)|^src/graph/build/sample_neighbors|^src/ivf/(ivf_(search|train)|resident_lists)"
    "|^src/ops/(gather_rows|prepared_base)|^src/plan/tasks/write_rows|^src/quantize/(quantizer_shape|training_rows)"
    "|^src/quantize/additive/additive_(search|training)|^src/quantize/linear_algebra/"
    "|^src/quantize/product/product_quantizer|^tests/(ivf|shard)/")
string(CONCAT NEARWISE_COMPILED_ALONE ${NEARWISE_COMPILED_ALONE})

# nearwise_unity(TARGET): a group for each folder of its sources, of at most eight files.
function(nearwise_unity target)
  if(NOT NEARWISE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(path MATCHES "${NEARWISE_COMPILED_ALONE}")
      continue()
    endif()
    cmake_path(GET path PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    math(EXPR part "0${files_${group}} / 8")
    math(EXPR files_${group} "0${files_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    # A local name may hide one of another file.
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wshadow\"")
endfunction()
