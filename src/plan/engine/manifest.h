// What is done in a work folder: an append-only journal of checksummed records.
//
// A record is one line: a JSON object, a tab, a checksum of 16 hexadecimal digits, a line feed. The checksum is XXH3-64
// of the JSON under the checksum of the line before (0 for the first) as seed: a line that is changed, lost, moved or doubled
// breaks the chain and is Error(corrupt). What follows the last line feed was being written when somebody was killed, and is
// dropped; the next record takes its place.
//
// Several processes may append at once: each holds a lock on a file beside the manifest while it does.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace nearwise::plan {

class Manifest {
 public:
  explicit Manifest(std::filesystem::path path) : path_(std::move(path)) {}

  // None where there is no file.
  std::vector<nlohmann::json> read() const;
  // On the disk on return. Throws Error(io | cannot_create); then the manifest is as it was, or ends in what is dropped.
  void append(const nlohmann::json& record) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace nearwise::plan
