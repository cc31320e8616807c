# Compile options of every target of ours: warnings, sanitizers, and arithmetic that means what it says.
add_library(nearwise_options INTERFACE)
target_compile_options(nearwise_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<NOT:$<COMPILE_LANGUAGE:C>>:-Wnon-virtual-dtor> $<$<NOT:$<COMPILE_LANGUAGE:C>>:-Woverloaded-virtual>
  # g++ 12 reports impossible overlaps in std::string's operator+ (its bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  # The reported distance is defined without fused multiply-add. Compilers fuse a * b + c on their own unless told
  # not to; kernels that want FMA call it by name.
  -ffp-contract=off)
# Instrumented code hides ranges and initialisation from the compiler, which then warns in vain.
if(NEARWISE_WERROR AND NOT NEARWISE_SANITIZE)
  target_compile_options(nearwise_options INTERFACE -Werror)
endif()
# UndefinedBehaviorSanitizer is for the library: half of the time to compile a test would be checks of the test itself.
set(NEARWISE_LIBRARY_SANITIZE)
if(NEARWISE_SANITIZE)
  string(REPLACE ",undefined" "" sanitizers "${NEARWISE_SANITIZE}")
  target_compile_options(nearwise_options INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(NEARWISE_SANITIZE MATCHES undefined)
    # AddressSanitizer finds what the excepted checks are about.
    set(NEARWISE_LIBRARY_SANITIZE -fsanitize=undefined -fno-sanitize=null,object-size,vptr,pointer-overflow)
  endif()
  target_link_options(nearwise_options INTERFACE -fsanitize=${NEARWISE_SANITIZE})
else()
  target_compile_options(nearwise_options INTERFACE -fstack-protector-strong)
  # Indirect jumps land where jumps are meant to: one thing, two names.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(nearwise_options INTERFACE -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(nearwise_options INTERFACE -mbranch-protection=standard)
  endif()
  target_compile_definitions(nearwise_options INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_link_options(nearwise_options INTERFACE -Wl,-z,relro,-z,now)
endif()
