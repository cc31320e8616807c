# Compile options of every target of ours: warnings, sanitizers, and arithmetic that means what it says.
add_library(nearwise_options INTERFACE)
target_compile_options(nearwise_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  # g++ 12 reports impossible overlaps in std::string's operator+ (its bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  # The reported distance is defined without fused multiply-add. Compilers fuse a * b + c on their own unless told
  # not to; kernels that want FMA call it by name.
  -ffp-contract=off
  $<$<BOOL:${NEARWISE_WERROR}>:-Werror>)
if(NEARWISE_SANITIZE)
  target_compile_options(nearwise_options INTERFACE -fsanitize=${NEARWISE_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  # g++ loses track of initialisation in instrumented code (std::regex, std::function).
  target_compile_options(nearwise_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(nearwise_options INTERFACE -fsanitize=${NEARWISE_SANITIZE})
else()
  target_compile_options(nearwise_options INTERFACE -fstack-protector-strong -fcf-protection)
  target_compile_definitions(nearwise_options INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_link_options(nearwise_options INTERFACE -Wl,-z,relro,-z,now)
endif()
