# The CUDA backend. NEARWISE_CUDA says what its sources are compiled for:
#   OFF             nothing: the library loads a plugin when CUDA is asked for (src/backend/plugin)
#   ON              GPUs: kernels (.cu) by nvcc, what launches them (.cpp) by the compiler of all other files
#   emulated        the emulated device of the tests (cuda_emulation), by clang++
#   emulated-check  the same with every access of a kernel checked
# Where it is compiled, it is linked into the library, for tests; the target nearwise_cuda_plugin is the plugin.
set(NEARWISE_CUDA OFF CACHE STRING "The CUDA backend: OFF, ON, emulated or emulated-check")
set_property(CACHE NEARWISE_CUDA PROPERTY STRINGS OFF ON emulated emulated-check)
set(NEARWISE_CUDA_ARCHITECTURES 75-real 80 90-real 100-real 120 CACHE STRING
    "GPU architectures, as CMAKE_CUDA_ARCHITECTURES has them: PTX of 80 and 120 is for GPUs between them, and to come")

if(NEARWISE_CUDA MATCHES "^emulated")
  set(NEARWISE_CUDA_EMULATED ON)
elseif(NOT NEARWISE_CUDA MATCHES "^(OFF|ON|FALSE|TRUE|NO|YES|0|1)$")
  message(FATAL_ERROR "NEARWISE_CUDA must be OFF, ON, emulated or emulated-check, got '${NEARWISE_CUDA}'")
endif()

if(NEARWISE_CUDA)
  # Named by the environment; what tools/setup installed, where it found none that would do; on PATH; the usual place.
  if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(cuda_installed $ENV{HOME}/.cache/nearwise/cuda-env/toolkit)
  else()
    set(cuda_installed $ENV{XDG_CACHE_HOME}/nearwise/cuda-env/toolkit)
  endif()
  find_program(NEARWISE_NVCC nvcc HINTS $ENV{CUDA_PATH} $ENV{CUDA_HOME} ${cuda_installed} PATHS /usr/local/cuda
               PATH_SUFFIXES bin REQUIRED)
  file(REAL_PATH ${NEARWISE_NVCC} cuda_toolkit)
  cmake_path(GET cuda_toolkit PARENT_PATH cuda_toolkit)
  cmake_path(GET cuda_toolkit PARENT_PATH cuda_toolkit)
endif()

if(NEARWISE_CUDA_EMULATED)
  # The emulation needs clang; the CPU part of the library keeps its compiler and comes out of the release build's
  # cache. CMake has one compiler per language: the sources of the device are Objective-C++ to it, and C++ to clang.
  find_program(NEARWISE_CLANG NAMES clang++-14 clang++ REQUIRED)
  set(CMAKE_OBJCXX_COMPILER ${NEARWISE_CLANG})
  if(CCACHE_PROGRAM AND NOT CMAKE_OBJCXX_COMPILER_LAUNCHER)
    set(CMAKE_OBJCXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  enable_language(OBJCXX)
  set(CMAKE_OBJCXX_COMPILE_OBJECT
      "<CMAKE_OBJCXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -x c++ -o <OBJECT> -c <SOURCE>")
  set(CMAKE_OBJCXX_STANDARD 20)
  set(CMAKE_OBJCXX_EXTENSIONS OFF)
  find_path(NEARWISE_CUDA_INCLUDE cublas_v2.h HINTS ${cuda_toolkit} PATH_SUFFIXES include REQUIRED)
  if(NEARWISE_CUDA STREQUAL emulated-check)
    # Copies of structs reach the checks through these.
    add_link_options(-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset)
  endif()
elseif(NEARWISE_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND "$ENV{CUDACXX}" STREQUAL "")
    set(CMAKE_CUDA_COMPILER ${NEARWISE_NVCC})
  endif()
  if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${NEARWISE_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake before 3.26 does not know that nvcc has C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit REQUIRED)
endif()

# nearwise_cuda_target(TARGET): its files are compiled for what NEARWISE_CUDA says.
function(nearwise_cuda_target target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  if(NOT NEARWISE_CUDA_EMULATED)
    target_link_libraries(${target} PRIVATE CUDA::cudart_static CUDA::cublas)
    # As in all of the project, a * b + c is two operations; kernels that want FMA call it by name.
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr>"
      # A conversion of MatrixView<const T> to itself, which is never used.
      $<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=554>
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-ffp-contract=off>
      $<$<AND:$<BOOL:${NEARWISE_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>
      $<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:nearwise_options,INTERFACE_COMPILE_OPTIONS>>)
    # fmt 9 switches its constexpr functions off for nvcc, and then calls them from others that it left on.
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cu|cpp)$")
  set_source_files_properties(${sources} PROPERTIES LANGUAGE OBJCXX)
  target_compile_definitions(${target} PRIVATE CUDA_EMULATION)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${NEARWISE_CUDA_INCLUDE})
  target_link_libraries(${target} PRIVATE nearwise_options)
  # Loops that a kernel asks to be unrolled and clang leaves; checked copies that would escape the checks.
  target_compile_options(${target} PRIVATE -Wno-pass-failed -U_FORTIFY_SOURCE)
  if(NEARWISE_CUDA STREQUAL emulated-check)
    # The compiler's calls at every access are wanted, not ThreadSanitizer: it is not linked.
    target_compile_options(${target} PRIVATE -O1 -g -fsanitize=thread)
  endif()
endfunction()

# nearwise_emulated_tests(TARGET PREFIX [VARIABLE=VALUE...]): its tests with label `emulated`, on eight devices and with
# this environment. The check build runs them under several schedules, which share the generated cases among them
# (NEARWISE_TEST_SHARE); what fails on purpose or for lack of memory is the host's affair, whole trainings are made of kernels
# that other tests run, and both have the first only. The fast build has one schedule and all cases.
function(nearwise_emulated_tests target prefix)
  set(schedules 1)
  if(NEARWISE_CUDA STREQUAL emulated-check)
    set(schedules 5)
  endif()
  foreach(seed RANGE 1 ${schedules})
    set(filter "*")
    if(seed GREATER 1)
      set(filter "-*Failures*:*LeastMemory*:*LittleMemory*:*.Trains*")
    endif()
    gtest_discover_tests(${target} TEST_PREFIX ${prefix}.seed${seed}. TEST_LIST ${target}_${seed} TEST_FILTER ${filter}
                         DISCOVERY_TIMEOUT 60 PROPERTIES LABELS emulated TIMEOUT 300)
    # Not among the properties above, which take one element of a list.
    set(environment CUDA_EMULATION_DEVICES=8 CUDA_EMULATION_SEED=${seed} NEARWISE_TEST_SHARE=${seed}/${schedules} ${ARGN})
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}_environment_${seed}.cmake)
    file(WRITE ${script} "set_tests_properties(\${${target}_${seed}} PROPERTIES ENVIRONMENT \"${environment}\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  endforeach()
endfunction()
