# Toolchain: Linux on 64-bit ARM, built on any other Debian machine. `tools/setup --arm64` installs compiler, libraries and
# emulator. Libraries are Debian's own for arm64, in /usr/lib/aarch64-linux-gnu next to those of the machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc-12)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# pkg-config would answer with libraries of the machine.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# How CTest starts what was built.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
