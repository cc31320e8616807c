#include "plan/engine/work_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/files/atomic_file.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/folders.h"
#include "io/files/new_files.h"
#include "plan/engine/file_lock.h"

namespace nearwise::plan {
namespace {

namespace fs = std::filesystem;

// Permissions of the work folder and its files, before the umask: none for those who must not read the
// vectors, as they are copies of them.
class Permissions {
 public:
  explicit Permissions(const Plan::State& state) {
    if (file_calls().stat(state.vectors.c_str(), &vectors_) == 0) return;
    // Without vectors there is nothing to protect; the tasks report it.
    if (errno != ENOENT) fail_file(ErrorCode::io, "open", state.vectors, errno);
    vectors_.st_mode = S_IRGRP | S_IROTH;
  }

  // Of a folder or a file that belongs to this group.
  mode_t in_group(gid_t group) const {
    const bool all_read = (vectors_.st_mode & S_IROTH) != 0;
    // Another group gets no more than everybody.
    const bool group_reads = (vectors_.st_mode & S_IRGRP) != 0 && (vectors_.st_gid == group || all_read);
    return S_IRWXU | (group_reads ? S_IRWXG : 0U) | (all_read ? S_IRWXO : 0U);
  }
  bool are_for_all() const {
    constexpr mode_t readers = S_IRGRP | S_IROTH;
    return (vectors_.st_mode & readers) == readers;
  }

 private:
  FileStatus vectors_{};
};

// The group of what is made in a folder: that of the process, unless the folder passes on its own.
gid_t group_inside(const fs::path& folder) {
  FileStatus status{};
  const bool inherits = file_calls().stat(folder.c_str(), &status) == 0 && (status.st_mode & S_ISGID) != 0;
  return inherits ? status.st_gid : getegid();
}

// For tasks, the manifest and locks.
void limit_new_files(const Plan::State& state, const Permissions& permissions, const fs::path& folder) {
  if (permissions.are_for_all()) {
    state.permitted = all_permissions;
    return;
  }
  state.permitted = permissions.in_group(group_inside(folder));
  // Those who lock them later do so outside of a NewFilesScope.
  const NewFilesScope new_files(state.permitted);
  FileLock::create(state.lock());
  FileLock::create(state.repair_lock());
}

}  // namespace

fs::path make_work_folder(const Plan::State& state) {
  fs::path folder = fs::absolute(state.folder);
  // "work/" and "work/." are in the folder that they name.
  while (folder.has_relative_path() && (!folder.has_filename() || folder.filename() == "."))
    folder = folder.parent_path();
  create_folder(folder.parent_path());
  const gid_t group = group_inside(folder.parent_path());
  const Permissions permissions(state);
  // Permissions are right from the start: a process that is killed leaves the folder as it is.
  if (create_folder(folder, permissions.in_group(group))) {
    FileStatus made{};
    if (file_calls().stat(folder.c_str(), &made) != 0)
      fail_file(ErrorCode::cannot_create, "create", folder, errno);
    const mode_t mode = made.st_mode & 07777;
    // Some file systems choose groups by other rules.
    if (made.st_gid != group &&
        file_calls().chmod(folder.c_str(), mode & permissions.in_group(made.st_gid)) != 0)
      fail_file(ErrorCode::cannot_create, "close to others", folder, errno);
  }
  limit_new_files(state, permissions, folder);
  // Not only by the process that made it, which may have been killed before it came to this.
  if (!fs::exists(state.manifest().path())) sync_entries_above(folder);
  return state.folder;
}

void sweep_temporaries(const Plan::State& state) {
  sweep_folder(state.folder);
  sweep_stale_temporaries(state.published());
}

}  // namespace nearwise::plan
