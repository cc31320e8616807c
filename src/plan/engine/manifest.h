// The journal of a work folder: append-only checksummed records.
//
// A record is one line: a JSON object, a tab, a checksum of 16 hexadecimal digits, a line feed. The checksum
// is XXH3-64 of the JSON with the previous line's checksum (0 for the first) as seed, so that a changed line,
// and the line after one that was lost, moved or repeated, do not fit and are ignored: the other records
// hold. Bytes after the last line feed are an interrupted write. The next append leaves such lines out.
//
// Several processes may append concurrently; each locks a file next to the manifest.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "io/files/new_files.h"

namespace nearwise::plan {

class Manifest {
 public:
  // permitted: permissions that the file may have, before the umask.
  explicit Manifest(std::filesystem::path path, mode_t permitted = all_permissions)
      : path_(std::move(path)), permitted_(permitted) {}

  // The records whose checksums fit. Empty if there is no file.
  std::vector<nlohmann::json> read() const;
  // Durable on return. Throws Error(io | cannot_create), after which the manifest holds the earlier records.
  void append(const nlohmann::json& record) const;

  // Makes all records durable: one that is read may be of a process that was killed before it synced it.
  // Throws Error(io).
  void sync() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  mode_t permitted_;
};

}  // namespace nearwise::plan
