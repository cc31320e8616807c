// A graph as each device that searches it needs it.
#pragma once

#include <atomic>
#include <memory>

#include "backend/graph_search.h"
#include "nearwise/context.h"

namespace nearwise::graph_index {

// Any number of threads may call on(). Without locks, which a forked child could inherit.
class PreparedGraphs {
 public:
  // For the device of the context, and for others when they are first asked for. The view's memory outlives
  // the object. budget: of memory that is kept between searches, on any device.
  PreparedGraphs(const Context& context, const SearchGraphView& view, std::shared_ptr<MemoryBudget> budget);
  PreparedGraphs(const PreparedGraphs&) = delete;
  PreparedGraphs& operator=(const PreparedGraphs&) = delete;
  ~PreparedGraphs();

  const PreparedGraph& on(const Context& context) const;

 private:
  struct Prepared {
    Place place = {};
    std::unique_ptr<PreparedGraph> graph = {};
    Prepared* next = nullptr;
  };

  const SearchGraphView view_;
  const std::shared_ptr<MemoryBudget> budget_;
  mutable std::atomic<Prepared*> first_ = nullptr;  // entries are added in front, and never change
};

}  // namespace nearwise::graph_index
