#include "ivf/resident_lists.h"

#include <algorithm>

#include "backend/dispatch.h"
#include "nearwise/error.h"

namespace nearwise::ivf {

std::shared_ptr<const PreparedLists> ResidentLists::make(const Context& context, const Source& source) {
  const auto prepare = [&](const KeptVectors& kept) {
    const auto stream = open_stream(context);
    return dispatch(&Ops::prepare_lists, "Ivf.to", *stream,
                    PrepareListsArgs{.lists = source.lists,
                                     .codec = source.codec,
                                     .metric = source.metric,
                                     .centre = source.centre,
                                     .kept = kept});
  };
  if (source.kept.any()) {
    try {
      return prepare(source.kept);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
    }
  }
  return prepare({});
}

ResidentLists::Copy* ResidentLists::find(Place place) {
  const auto found = std::ranges::find(copies_, place, [](const Copy& copy) { return copy.context.place(); });
  return found == copies_.end() ? nullptr : &*found;
}

void ResidentLists::keep(const Context& context, const Source& source) {
  const std::lock_guard lock(mutex_);
  std::erase_if(copies_, [&](const Copy& copy) { return copy.context.place() == context.place(); });
  // Progress and cancellation belong to this call.
  copies_.push_back({context.with_progress({}), source.version, make(context, source)});
}

void ResidentLists::drop() {
  const std::lock_guard lock(mutex_);
  copies_.clear();
}

std::shared_ptr<const PreparedLists> ResidentLists::on(const Context& context, const Source& source) {
  const std::lock_guard lock(mutex_);
  Copy* const copy = find(context.place());
  if (copy == nullptr) return nullptr;
  if (copy->version == source.version) return copy->lists;
  copy->lists = nullptr;  // makes room for the new one
  try {
    copy->lists = make(copy->context, source);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory && error.code() != ErrorCode::unsupported) throw;
  }
  copy->version = source.version;
  return copy->lists;
}

std::uint64_t ResidentLists::bytes(Place place) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(copies_, place, [](const Copy& copy) { return copy.context.place(); });
  return found == copies_.end() || !found->lists ? 0 : found->lists->bytes();
}

}  // namespace nearwise::ivf
