# Compile options of every target of ours: warnings, sanitizers, and arithmetic that means what it says.

# nearwise_define_options(NAME SANITIZERS): an interface library with the options; no sanitizers are what ships.
function(nearwise_define_options name sanitizers)
  add_library(${name} INTERFACE)
  target_compile_options(${name} INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    $<$<NOT:$<COMPILE_LANGUAGE:C>>:-Wnon-virtual-dtor> $<$<NOT:$<COMPILE_LANGUAGE:C>>:-Woverloaded-virtual>
    # g++ 12 reports impossible overlaps in std::string's operator+ (its bug 105651).
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
    # The reported distance is defined without fused multiply-add. Compilers fuse a * b + c on their own unless told
    # not to; kernels that want FMA call it by name.
    -ffp-contract=off)
  if(sanitizers)
    target_compile_options(${name} INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    if(sanitizers MATCHES address)
      target_compile_options(${name} INTERFACE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Release>:-g1>)
      target_compile_definitions(${name} INTERFACE _GLIBCXX_ASSERTIONS)
    endif()
    return()
  endif()
  if(NEARWISE_WERROR)
    target_compile_options(${name} INTERFACE -Werror)
  endif()
  target_compile_options(${name} INTERFACE -fstack-protector-strong)
  # Indirect jumps land where jumps are meant to: one thing, two names.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(${name} INTERFACE -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(${name} INTERFACE -mbranch-protection=standard)
  endif()
  target_compile_definitions(${name} INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_link_options(${name} INTERFACE -Wl,-z,relro,-z,now)
endfunction()

# UndefinedBehaviorSanitizer is for the library: half of the time to compile a test would be checks of the test itself.
string(REPLACE ",undefined" "" sanitizers "${NEARWISE_SANITIZE}")
nearwise_define_options(nearwise_options "${sanitizers}")
set(NEARWISE_LIBRARY_SANITIZE)
if(NEARWISE_SANITIZE MATCHES undefined)
  # AddressSanitizer finds what the excepted checks are about.
  set(NEARWISE_LIBRARY_SANITIZE -fsanitize=undefined -fno-sanitize=null,object-size,vptr,pointer-overflow)
endif()
# Tests without sanitizers have the options of the release build, so that they come out of its compiler cache.
if(NEARWISE_SANITIZE_TESTS)
  add_library(nearwise_test_options ALIAS nearwise_options)
else()
  nearwise_define_options(nearwise_test_options "")
endif()
if(NEARWISE_SANITIZE)
  target_link_options(nearwise_options INTERFACE -fsanitize=${NEARWISE_SANITIZE})
  if(NOT NEARWISE_SANITIZE_TESTS)
    target_link_options(nearwise_test_options INTERFACE -fsanitize=${NEARWISE_SANITIZE})
  endif()
endif()
