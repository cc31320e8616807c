#include "cuda_emulation/engine/memory.h"

#include <map>
#include <string>

#include "cuda_emulation/control.h"
#include "cuda_emulation/engine/failure.h"

namespace cuda_emulation {
namespace {

std::map<const char*, Region> regions;
Region* last_found = nullptr;  // consecutive accesses often hit the same region

// Calls visit(cell, byte mask) for the cells of [offset, offset + size).
template <typename Visit>
void for_each_cell(Region& region, std::size_t offset, std::size_t size, const Visit& visit) {
  const std::size_t end = offset + size;
  for (std::size_t at = offset; at < end;) {
    const std::size_t next = at / 4 * 4 + 4 < end ? at / 4 * 4 + 4 : end;
    const unsigned bytes = (1u << (next - at)) - 1u;
    visit(region.cell(at / 4), static_cast<std::uint8_t>(bytes << (at % 4)));
    at = next;
  }
}

}  // namespace

void add_region(const void* begin, std::size_t size, int device) {
  const auto* const address = static_cast<const char*>(begin);
  regions[address] = Region{address, size, device};
  last_found = nullptr;
}

void remove_region(const void* begin) {
  regions.erase(static_cast<const char*>(begin));
  last_found = nullptr;
}

Region* find_region(const char* address) {
  if (last_found != nullptr && last_found->contains(address)) return last_found;
  auto after = regions.upper_bound(address);
  if (after == regions.begin()) return nullptr;
  Region& region = std::prev(after)->second;
  if (!region.contains(address)) return nullptr;
  last_found = &region;
  return last_found;
}

void mark_initialised(const void* begin, std::size_t size) {
  if (!checks_accesses()) return;
  const auto* const address = static_cast<const char*>(begin);
  Region* const region = find_region(address);
  if (region == nullptr) return;
  for_each_cell(*region, static_cast<std::size_t>(address - region->begin), size,
                [](Cell& cell, std::uint8_t bytes) { cell.initialised |= bytes; });
}

void require_region(const void* begin, std::size_t size, Use use, const char* what) {
  if (size == 0) return;
  const auto* const address = static_cast<const char*>(begin);
  Region* const region = find_region(address);
  if (region == nullptr)
    throw Failure(cudaErrorIllegalAddress,
                  std::string(what) + ": the memory is not allocated at this point of the stream");
  const auto offset = static_cast<std::size_t>(address - region->begin);
  if (size > region->size - offset)
    throw Failure(cudaErrorIllegalAddress, std::string(what) + " past the end of an allocation");
  if (use == Use::write || !checks_accesses()) return;
  for_each_cell(*region, offset, size, [&](const Cell& cell, std::uint8_t bytes) {
    if ((cell.initialised & bytes) != bytes)
      throw Failure(cudaErrorIllegalAddress, std::string(what) + ": read of uninitialised memory");
  });
}

}  // namespace cuda_emulation
