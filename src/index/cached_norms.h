// The terms of rows of codes (CodeNorms): made when a search first looks at a list, kept until the list
// changes.
//
// They take 4 bytes per row, reserved for all rows at once before a search divides what is left of a memory
// limit, and only where half of the limit has room for them; without them a search makes its own. Any number
// of searches may use this at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/list_search.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "nearwise/types.h"

namespace nearwise::index {

class CachedNorms {
 public:
  // What terms are made of; as in ListSearchArgs.
  struct Source {
    const ListCodec& codec;
    const CodewordTables& codewords;
    Metric metric;
    std::span<const float> centre;
    std::span<const ListView> lists;
  };

  CachedNorms(std::shared_ptr<MemoryBudget> budget, std::size_t lists);
  ~CachedNorms();
  CachedNorms(const CachedNorms&) = delete;
  CachedNorms& operator=(const CachedNorms&) = delete;

  // Reserves memory for the norms of this many vectors; returns whether it is available.
  bool reserve(std::size_t rows);
  // Makes what is missing of these lists (no_id: none). After reserve(). budget: of working memory.
  void make(const Threads& threads, MemoryBudget& budget, const Source& source, std::span<const Id> lists);
  // As ListSearchArgs has them.
  std::span<const std::atomic<const float*>> pointers() const { return pointers_; }
  // The list is about to change, and nobody searches in it.
  void discard(std::size_t list) noexcept;

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::mutex mutex_;
  std::uint64_t reserved_bytes_ = 0;
  MemoryBudget kept_budget_;  // without a limit: all is reserved
  std::vector<Buffer<float>> kept_;
  std::vector<std::atomic<const float*>> pointers_;
};

}  // namespace nearwise::index
