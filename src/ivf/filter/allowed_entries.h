// The entries of an inverted file that a filter allows, list by list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/memory.h"
#include "ivf/entry_vectors.h"
#include "ivf/ivf_state.h"
#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/filter.h"

namespace nearwise::ivf {

class AllowedEntries {
 public:
  // Of the shared part of the filter. Remembered with the filter until the index changes.
  static std::shared_ptr<const AllowedEntries> of(const Context& context, const IvfInternals::State& state,
                                                  const Filter& filter);

  AllowedEntries(const Context& context, const IvfInternals::State& state, const Filter& filter);

  std::size_t count() const { return rows_.size(); }
  std::size_t lists() const { return lists_; }  // with an entry
  const Filter& list_filter() const { return list_filter_; }
  std::size_t count(std::size_t list) const { return offsets_[list + 1] - offsets_[list]; }
  // Rows of the list, ascending.
  std::span<const std::uint32_t> rows(std::size_t list) const {
    return rows_.span().subspan(offsets_[list], count(list));
  }

  struct Entry {
    Id id;
    std::uint32_t list;
    std::uint32_t row;
  };
  // All of them in the order of their ids. Any number of threads may call it.
  std::span<const Entry> by_id(const IvfInternals::State& state) const;

  // Their vectors in the order of their ids, packed for exact search.
  struct Packed {
    Context context;  // of the first search: its budget must outlive the copies
    Buffer<std::byte> vectors;
    std::optional<Exact> exact;
  };
  static constexpr std::uint64_t max_packed_bytes = std::uint64_t{256} << 20;
  // Whether searches in this context keep them: on the CPU, without a limit, if they take little memory.
  static bool keeps_packed(const Context& context, std::uint64_t vector_bytes);
  // Packed by the first search. Any number of threads may call it.
  std::shared_ptr<const Packed> packed(const Context& context, const IvfInternals::State& state) const;

 private:
  void count_by_scan(const Context& context, const IvfInternals::State& state, const Filter& filter);
  void find_listed(const IvfInternals::State& state, std::span<const Id> ids);

  std::shared_ptr<MemoryBudget> budget_;  // of the index
  Buffer<std::size_t> offsets_;           // [lists + 1]
  Buffer<std::uint32_t> rows_;
  std::size_t lists_ = 0;
  Filter list_filter_;
  mutable std::mutex mutex_;
  mutable Buffer<Entry> by_id_;
  mutable std::shared_ptr<const Packed> packed_;
};

// Vectors of entries, one after the other, on the budget of the context.
Buffer<std::byte> copy_vectors(const Context& context, const IvfInternals::State& state,
                               const EntryVectors& vectors, std::span<const AllowedEntries::Entry> entries);

}  // namespace nearwise::ivf
