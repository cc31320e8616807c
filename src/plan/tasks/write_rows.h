// Writes a section whose rows are computed on all threads while earlier rows are written.
#pragma once

#include <cstddef>
#include <functional>

#include "io/container/container_writer.h"
#include "nearwise/context.h"

namespace nearwise::plan {

// Budget of the two buffers in bytes: one is written while the other is filled.
inline constexpr std::size_t writing_bytes = std::size_t{2} << 20;

// Appends `count` rows to the current section. make(row, out) writes the bytes of a row; called on any
// thread.
void write_rows(const Context& context, ContainerWriter& writer, std::size_t count, std::size_t row_bytes,
                const std::function<void(std::size_t, std::byte*)>& make);

}  // namespace nearwise::plan
