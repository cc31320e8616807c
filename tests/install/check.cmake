# cmake -D BUILD=... -D CONFIG=... -D GENERATOR=... -D COMPILER=... -D EXAMPLE=... -D C_COMPILER=... -D C_EXAMPLES=...
#       -D SCRATCH=... -P check.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${SCRATCH}/first)
if(EXISTS ${SCRATCH}/first/bin/nearwise)
  file(STRINGS ${SCRATCH}/first/share/man/man1/nearwise.1 title LIMIT_COUNT 1)
  if(NOT title MATCHES "^\\.TH NEARWISE 1 ")
    message(FATAL_ERROR "the manual page begins with '${title}'")
  endif()
endif()
# Moved after the installation: an installed package must not remember where it was put.
file(RENAME ${SCRATCH}/first ${SCRATCH}/prefix)
run(${CMAKE_COMMAND} -S ${EXAMPLE} -B ${SCRATCH}/build -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D CMAKE_CXX_FLAGS=-Wall\ -Wextra\ -Werror)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${SCRATCH}/build/nearest)
# A project in C alone: no C++ compiler is enabled there.
run(${CMAKE_COMMAND} -S ${C_EXAMPLES} -B ${SCRATCH}/build_c -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D CMAKE_C_FLAGS=-Werror)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build_c)
run(${CMAKE_CTEST_COMMAND} --test-dir ${SCRATCH}/build_c --output-on-failure)
