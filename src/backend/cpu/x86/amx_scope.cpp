#include "backend/cpu/x86/amx_scope.h"

#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace nearwise::cpu::x86 {
namespace {

// Linux: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
constexpr long request_permission = 0x1023;
constexpr long tile_data = 18;

// The operand of ldtilecfg.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

// Free functions: a member declared in a header does not take the target attributes of its definition.
HWY_PUSH_ATTRIBUTES("amx-tile")
void load(const TileConfiguration& configuration) {
  // g++ assumes the intrinsic reads 8 bytes: without this barrier it may drop the stores to the others.
  asm volatile("" ::"r"(&configuration) : "memory");
  _tile_loadconfig(&configuration);
}
void release() { _tile_release(); }
HWY_POP_ATTRIBUTES

}  // namespace

bool tiles_permitted() {
  static const bool permitted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return permitted;
}

AmxScope::AmxScope() noexcept {
  TileConfiguration configuration;
  for (int tile = 0; tile < 8; ++tile) {
    configuration.row_bytes[tile] = 64;
    configuration.rows[tile] = 16;
  }
  load(configuration);
}

AmxScope::~AmxScope() { release(); }

}  // namespace nearwise::cpu::x86
