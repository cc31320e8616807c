// The copies of an index's lists that devices keep between searches (Ivf::to). A copy is of one version of
// the lists: after a change, the next search on its device drops it and makes another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/list_search.h"
#include "nearwise/context.h"

namespace nearwise::ivf {

// Any number of threads may call it while the lists do not change. Searches on the CPU do not: they work in a
// forked child, too.
class ResidentLists {
 public:
  struct Source {
    std::uint64_t version = 0;  // of the lists
    ListCodec codec;
    Metric metric = Metric::sqeuclidean;
    std::span<const float> centre;
    std::span<const ListView> lists;
    KeptVectors kept = {};
  };

  // On the device of the context, whose budget the copy is on. The kept vectors are left out if they do not
  // fit. Throws Error(out_of_memory) if the rest does not, and then keeps nothing there.
  void keep(const Context& context, const Source& source);
  void drop();

  // The lists as they are now. Null: keep() was not called for this device, or they do not fit any more.
  std::shared_ptr<const PreparedLists> on(const Context& context, const Source& source);

  std::uint64_t bytes(Place place) const;  // of the copy on this device; 0: none

 private:
  struct Copy {
    Context context;            // owns the budget
    std::uint64_t version = 0;  // of `lists`, or of those that did not fit
    std::shared_ptr<const PreparedLists> lists = {};
  };

  Copy* find(Place place);
  static std::shared_ptr<const PreparedLists> make(const Context& context, const Source& source);

  mutable std::mutex mutex_;
  std::vector<Copy> copies_;
};

}  // namespace nearwise::ivf
