// Folders that survive a power loss.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace nearwise {

// Creates a folder with these permissions (less the umask), and those above it that are missing with the
// default ones. Returns whether the folder is new. Throws Error(cannot_create).
bool create_folder(const std::filesystem::path& folder, mode_t mode = 0777);

// Makes the entries of a folder durable, as far as its file system can. Throws Error(io).
void sync_folder(const std::filesystem::path& folder);

// Makes an existing folder durable: its entry in the folder above, and theirs up to the root of the file
// system. POSIX promises nothing about files in a folder whose own entry is not synced. Throws Error(io).
void sync_entries_above(const std::filesystem::path& folder);

}  // namespace nearwise
