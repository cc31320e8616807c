// The metadata section of a container: one JSON object, within the limits of docs/format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "nearwise/recall_estimate.h"

namespace nearwise {

inline constexpr std::size_t most_metadata_bytes = std::size_t{1} << 20;
inline constexpr std::size_t most_metadata_depth = 32;

// Text that is not UTF-8 (a file name in a command line, say) is mended rather than refused: provenance must
// not make a result unsavable. Throws Error(invalid_argument) beyond the limits.
std::string metadata_text(const nlohmann::json& metadata);

// Throws Error(corrupt): not JSON, no object, too large, too deep, or a key twice in one object.
nlohmann::json parse_metadata(std::span<const std::byte> bytes, const std::string& source);

// The object `provenance` of texts. Throws Error(corrupt) where it is missing or something else.
std::map<std::string, std::string> read_provenance(const nlohmann::json& metadata, const std::string& source);

// Of a whole number that nothing else bounds: the largest that every language can read.
inline constexpr std::uint64_t most_metadata_number = std::numeric_limits<std::int64_t>::max();

// A required key. Throw Error(corrupt) if it is missing, has another type, or is larger than `most`. Without
// `most`, callers check it by the shape of the file.
std::uint64_t read_number(const nlohmann::json& metadata, const char* key, const std::string& source,
                          std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
std::string read_text(const nlohmann::json& metadata, const char* key, const std::string& source);

// {"value", "low", "high", "rows"}. decode_recall throws nlohmann's exceptions or std::out_of_range, also for
// a sample of more than `most_rows`.
nlohmann::json encode(const RecallEstimate& recall);
RecallEstimate decode_recall(const nlohmann::json& json, std::uint64_t most_rows);

// For people: nested keys joined by dots, strings as they are, other values as JSON.
std::map<std::string, std::string> flatten_metadata(const nlohmann::json& metadata);

}  // namespace nearwise
