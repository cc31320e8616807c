// Rows of a section, made by all threads while those before them are written.
#pragma once

#include <cstddef>
#include <functional>

#include "io/container/container_writer.h"
#include "nearwise/context.h"

namespace nearwise::plan {

// On the budget while rows are written.
inline constexpr std::size_t writing_bytes = std::size_t{2} << 20;

// Appends rows 0 to count - 1 to the section that was begun. make(row, out): puts the row's bytes there; by any thread.
void write_rows(const Context& context, ContainerWriter& writer, std::size_t count, std::size_t row_bytes,
                const std::function<void(std::size_t, std::byte*)>& make);

}  // namespace nearwise::plan
