#include "plan/engine/work_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/files/atomic_file.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/folders.h"

namespace nearwise::plan {
namespace {

namespace fs = std::filesystem;

// Permissions of the work folder: closed to those who must not read the vectors, as it holds copies of them.
mode_t folder_mode(const Plan::State& state, gid_t group) {
  FileStatus vectors{};
  if (file_calls().stat(state.vectors.c_str(), &vectors) != 0) {
    // Without vectors there is nothing to protect; the tasks report it.
    if (errno != ENOENT) fail_file(ErrorCode::io, "open", state.vectors, errno);
    vectors.st_mode = S_IROTH;
  }
  if ((vectors.st_mode & S_IROTH) != 0) return S_IRWXU | S_IRWXG | S_IRWXO;
  const bool group_reads = (vectors.st_mode & S_IRGRP) != 0 && vectors.st_gid == group;
  return group_reads ? S_IRWXU | S_IRWXG : S_IRWXU;
}

// The group of a folder made in another: that of the process, unless the folder above passes on its own.
gid_t group_of_new_folder(const fs::path& above) {
  FileStatus status{};
  const bool inherits = file_calls().stat(above.c_str(), &status) == 0 && (status.st_mode & S_ISGID) != 0;
  return inherits ? status.st_gid : getegid();
}

}  // namespace

fs::path make_work_folder(const Plan::State& state) {
  fs::path folder = fs::absolute(state.folder);
  // "work/" and "work/." are in the folder that they name.
  while (folder.has_relative_path() && (!folder.has_filename() || folder.filename() == "."))
    folder = folder.parent_path();
  create_folder(folder.parent_path());
  const gid_t group = group_of_new_folder(folder.parent_path());
  // Permissions are right from the start: a process that is killed leaves the folder as it is.
  if (create_folder(folder, folder_mode(state, group))) {
    FileStatus made{};
    if (file_calls().stat(folder.c_str(), &made) != 0)
      fail_file(ErrorCode::cannot_create, "create", folder, errno);
    const mode_t mode = made.st_mode & 07777;
    // Some file systems choose groups by other rules.
    if (made.st_gid != group &&
        file_calls().chmod(folder.c_str(), mode & folder_mode(state, made.st_gid)) != 0)
      fail_file(ErrorCode::cannot_create, "close to others", folder, errno);
  }
  // Not only by the process that made it, which may have been killed before it came to this.
  if (!fs::exists(state.manifest().path())) sync_entries_above(folder);
  return state.folder;
}

void sweep_temporaries(const Plan::State& state) {
  sweep_folder(state.folder);
  sweep_stale_temporaries(state.published());
}

}  // namespace nearwise::plan
