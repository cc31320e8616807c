#include "io/container/metadata.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/check.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

void flatten(const Json& object, const std::string& prefix, std::map<std::string, std::string>& into) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", into);
    } else {
      into[prefix + key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
}

// Objects and arrays around the innermost value.
std::size_t depth_of(const Json& value) {
  if (!value.is_structured()) return 0;
  std::size_t deepest = 0;
  for (const Json& child : value) deepest = std::max(deepest, depth_of(child));
  return 1 + deepest;
}

}  // namespace

std::string metadata_text(const Json& metadata) {
  NEARWISE_ASSERT(metadata.is_object());
  require(depth_of(metadata) <= most_metadata_depth, "metadata: nested at most {} deep", most_metadata_depth);
  std::string text = metadata.dump(-1, ' ', false, Json::error_handler_t::replace);
  require(text.size() <= most_metadata_bytes, "metadata: at most {} bytes of JSON, got {}",
          most_metadata_bytes, text.size());
  return text;
}

Json parse_metadata(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() > most_metadata_bytes)
    fail(ErrorCode::corrupt, "{}: metadata: at most {} bytes expected, {} found", source, most_metadata_bytes,
         bytes.size());
  // The parser takes a zero byte for the end and would ignore what follows.
  if (std::find(bytes.begin(), bytes.end(), std::byte{0}) != bytes.end())
    fail(ErrorCode::corrupt, "{}: metadata: text expected, found a zero byte", source);
  const char* text = reinterpret_cast<const char*>(bytes.data());

  // The keys of every object that is open at this point of the text.
  std::vector<std::set<std::string>> open_objects;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool starts =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (starts && depth >= static_cast<int>(most_metadata_depth))
      fail(ErrorCode::corrupt, "{}: metadata: nested deeper than {}", source, most_metadata_depth);
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    // Readers would disagree on which of two equal keys counts.
    if (event == Json::parse_event_t::key && !open_objects.back().insert(parsed.get<std::string>()).second)
      fail(ErrorCode::corrupt, "{}: metadata: key '{}' twice in one object", source,
           parsed.get<std::string>());
    return true;
  };
  Json metadata;
  try {
    metadata = Json::parse(text, text + bytes.size(), check);
  } catch (const Json::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
  if (!metadata.is_object())
    fail(ErrorCode::corrupt, "{}: metadata: a JSON object expected, found {}", source, metadata.type_name());
  return metadata;
}

std::map<std::string, std::string> read_provenance(const Json& metadata, const std::string& source) {
  std::map<std::string, std::string> provenance;
  const auto entries = metadata.find("provenance");
  if (entries == metadata.end() || !entries->is_object())
    fail(ErrorCode::corrupt, "{}: metadata: an object 'provenance' expected", source);
  for (const auto& [key, value] : entries->items()) {
    if (!value.is_string())
      fail(ErrorCode::corrupt, "{}: metadata: provenance '{}': a text expected, found {}", source, key,
           value.type_name());
    provenance[key] = value.get<std::string>();
  }
  return provenance;
}

std::map<std::string, std::string> flatten_metadata(const Json& metadata) {
  std::map<std::string, std::string> flat;
  flatten(metadata, "", flat);
  return flat;
}

std::uint64_t read_number(const nlohmann::json& metadata, const char* key, const std::string& source,
                          std::uint64_t most) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_number_unsigned())
    fail(ErrorCode::corrupt, "{}: metadata: a whole number '{}' expected", source, key);
  const auto number = found->get<std::uint64_t>();
  if (number > most)
    fail(ErrorCode::corrupt, "{}: metadata: {} of at most {} expected, {} found", source, key, most, number);
  return number;
}

std::string read_text(const nlohmann::json& metadata, const char* key, const std::string& source) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_string())
    fail(ErrorCode::corrupt, "{}: metadata: a text '{}' expected", source, key);
  return found->get<std::string>();
}

nlohmann::json encode(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

RecallEstimate decode_recall(const nlohmann::json& json, std::uint64_t most_rows) {
  const auto share = [&](const char* key) {
    if (!json.at(key).is_number()) throw std::out_of_range("a number expected");
    return json.at(key).get<double>();
  };
  if (!json.at("rows").is_number_unsigned()) throw std::out_of_range("a whole number expected");
  const RecallEstimate recall = {.value = share("value"),
                                 .low = share("low"),
                                 .high = share("high"),
                                 .rows = json.at("rows").get<std::size_t>()};
  if (!(0 <= recall.low && recall.low <= recall.value && recall.value <= recall.high && recall.high <= 1))
    throw std::out_of_range("shares in the order low, value, high expected");
  if (recall.rows > most_rows)
    throw std::out_of_range(
        fmt::format("a sample of at most {} rows expected, {} found", most_rows, recall.rows));
  return recall;
}

}  // namespace nearwise
