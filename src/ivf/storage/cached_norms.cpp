#include "ivf/storage/cached_norms.h"

#include <algorithm>

#include "codes/code_norms.h"
#include "core/fork.h"
#include "nearwise/error.h"

namespace nearwise::ivf {

CachedNorms::CachedNorms(std::shared_ptr<MemoryBudget> budget, std::size_t lists)
    : budget_(std::move(budget)), kept_(lists), pointers_(lists) {}

CachedNorms::~CachedNorms() { budget_->give_back(reserved_bytes_); }

std::uint64_t CachedNorms::bytes(std::size_t rows, std::size_t lists) {
  // Each list also stores its smallest norm, and buffers are rounded up.
  return rows * sizeof(float) + lists * std::uint64_t{128};
}

bool CachedNorms::reserve(std::size_t rows) {
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  const std::uint64_t wanted = bytes(rows, kept_.size());
  if (wanted <= reserved_bytes_) return true;
  const std::uint64_t more = wanted - reserved_bytes_;
  if (budget_->limit() != 0 && budget_->used() + more > budget_->limit() / 2) return false;
  try {
    budget_->take(more);
  } catch (const Error&) {  // taken by a concurrent call
    return false;
  }
  reserved_bytes_ = wanted;
  return true;
}

void CachedNorms::make(const Threads& threads, MemoryBudget& budget, const Source& source,
                       std::span<const Id> lists) {
  std::vector<std::size_t> missing;
  for (const Id list : lists)
    if (list != no_id && pointers_[static_cast<std::size_t>(list)].load(std::memory_order_relaxed) == nullptr)
      missing.push_back(static_cast<std::size_t>(list));
  if (missing.empty()) return;
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const std::size_t tasks = std::min(missing.size(), 4 * static_cast<std::size_t>(threads.count()));
  threads.for_each(tasks, [&](std::size_t task) {
    CodeNorms norms(budget, source.codec, source.codewords, source.metric, source.centre);
    for (std::size_t i = missing.size() * task / tasks; i < missing.size() * (task + 1) / tasks; ++i) {
      const ListView& view = source.lists[missing[i]];
      if (view.rows == 0) continue;
      Buffer<float> made(kept_budget_, view.rows + 1);
      norms.begin_list(missing[i]);
      norms.fill(view.codes, view.rows, made.data());
      made[view.rows] = *std::min_element(made.data(), made.data() + view.rows);
      // A concurrent search may have computed them.
      const NoFork whole;
      const std::lock_guard lock(mutex_);
      if (pointers_[missing[i]].load(std::memory_order_relaxed) != nullptr) continue;
      kept_[missing[i]] = std::move(made);
      pointers_[missing[i]].store(kept_[missing[i]].data(), std::memory_order_release);
    }
  });
}

void CachedNorms::discard(std::size_t list) noexcept {
  pointers_[list].store(nullptr, std::memory_order_relaxed);
  kept_[list] = Buffer<float>();
}

}  // namespace nearwise::ivf
