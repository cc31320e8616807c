// Cache of the norms of decoded vectors (CodeNorms): computed when a list is first probed, dropped when it
// changes.
//
// 4 bytes per vector, reserved for the whole index before a search divides the rest of the memory limit, and
// only if that leaves half of the limit free; otherwise each search computes its own. Concurrent searches may
// share it.
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

namespace nearwise::ivf {

class CachedNorms {
 public:
  // Inputs of the computation, as in ListSearchArgs.
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

  static std::uint64_t bytes(std::size_t rows, std::size_t lists);
  // Reserves memory for the norms of `rows` vectors in all; false if it does not fit.
  bool reserve(std::size_t rows);
  // Computes missing norms of these lists (no_id is skipped); requires reserve(). budget: for working memory.
  void make(const Threads& threads, MemoryBudget& budget, const Source& source, std::span<const Id> lists);
  // For ListSearchArgs.
  std::span<const std::atomic<const float*>> pointers() const { return pointers_; }
  // Called before a list changes, while no search uses it.
  void discard(std::size_t list) noexcept;

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::mutex mutex_;
  std::uint64_t reserved_bytes_ = 0;
  MemoryBudget kept_budget_;  // unlimited: reserve() has charged budget_
  std::vector<Buffer<float>> kept_;
  std::vector<std::atomic<const float*>> pointers_;
};

}  // namespace nearwise::ivf
