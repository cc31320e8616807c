// AMX tiles: the system's permission, and a thread's tile configuration while it uses them.
#pragma once

namespace nearwise::cpu::x86 {

// Asks the system once per process; false where the CPU, the kernel or a sandbox does not allow tiles.
bool tiles_permitted();

// Configures the calling thread's eight tiles as 16 rows of 64 bytes, and releases them in the end, so that nothing is
// saved at context switches afterwards. Requires tiles_permitted().
class TileScope {
 public:
  TileScope() noexcept;
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

}  // namespace nearwise::cpu::x86
