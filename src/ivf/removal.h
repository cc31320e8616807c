// Vectors on their way out of the lists of an inverted file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "core/memory.h"
#include "ivf/ivf_state.h"
#include "nearwise/context.h"

namespace nearwise {

class ProgressMeter;

namespace ivf {

// The constructor finds the vectors and own_lists() copies lists that are mapped; nothing fails afterwards.
class Removal {
 public:
  // Ids that the index does not hold are left out. Within Changing; all other methods, within Writing.
  Removal(IvfInternals::State& state, const Context& context, std::span<const Id> ids,
          ProgressMeter* progress = nullptr);

  // What the removal of as many ids takes at most: of the context's budget, and of the index's for lists that
  // are copied.
  static std::uint64_t bytes(const IvfInternals::State& state, std::size_t ids);
  static std::uint64_t kept_bytes(const IvfInternals::State& state, std::size_t ids);

  std::size_t count() const { return found_.size(); }
  void own_lists();
  // Takes the ids out of the table, and puts them back.
  void hide() noexcept;
  void show() noexcept;
  // Removes the hidden vectors from their lists. Entries may have been appended in between.
  void commit() noexcept;

 private:
  struct Found {
    Id id;
    std::uint32_t list;
  };

  IvfInternals::State& state_;
  Buffer<Found> found_;
  std::map<std::uint32_t, Buffer<std::uint8_t>> drop_;  // by list: for each entry whether it goes
};

}  // namespace ivf
}  // namespace nearwise
