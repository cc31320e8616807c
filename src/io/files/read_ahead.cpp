#include "io/files/read_ahead.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace nearwise {

void ask_for(const std::byte* data, std::size_t bytes, const std::stop_token& stop) noexcept {
  // Linux reads no more for one call than the window of its own read-ahead, 128 KiB by default.
  constexpr std::size_t piece = std::size_t{128} << 10;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(data) % page;
  auto* const begin = const_cast<std::byte*>(data - into_page);
  for (std::size_t done = 0; done < into_page + bytes && !stop.stop_requested(); done += piece)
    static_cast<void>(madvise(begin + done, std::min(piece, into_page + bytes - done), MADV_WILLNEED));
}

}  // namespace nearwise
