// Parts of mapped files that will be used soon.
#pragma once

#include <cstddef>
#include <stop_token>

namespace nearwise {

// Asks the system to read this part of a mapping. A hint: nothing fails. Returns when all of it is in memory
// or on its way, which takes as long as reading where the disk has enough to do; or soon after it is asked to
// stop.
void ask_for(const std::byte* data, std::size_t bytes, const std::stop_token& stop = {}) noexcept;

}  // namespace nearwise
