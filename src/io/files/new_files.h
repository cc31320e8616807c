// Permissions of the files that a thread makes. A plan narrows them for its work folder, which holds copies
// of the vectors.
#pragma once

#include <sys/types.h>

namespace nearwise {

inline constexpr mode_t all_permissions = 07777;

// While one exists, AtomicFile and FileLock give files that this thread makes or replaces no permissions but
// `permitted`. The innermost counts.
class NewFilesScope {
 public:
  explicit NewFilesScope(mode_t permitted) noexcept;
  ~NewFilesScope();
  NewFilesScope(const NewFilesScope&) = delete;
  NewFilesScope& operator=(const NewFilesScope&) = delete;

 private:
  const mode_t before_;
};

// Those of `mode` that the thread's scope permits; outside of scopes all.
mode_t permitted_mode(mode_t mode) noexcept;

}  // namespace nearwise
