// nearwise info: what a file says of itself, or what this build finds on this machine.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/context.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

std::string join(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

// A line of /proc/meminfo, in bytes; 0 where the system has no such file.
std::uint64_t memory_bytes(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (file >> word)
    if (word == key + ":" && file >> kibibytes) return kibibytes * 1024;
  return 0;
}

Json describe_machine() {
  Json json = {{"version", version()}, {"devices", Json::array()}, {"instruction_sets", instruction_sets()}};
  for (const DeviceInfo& device : devices())
    json["devices"].push_back(
        {{"name", device.name}, {"model", device.model}, {"operations", device.operations}});
  json["threads"] = Context::cpu().threads();
  json["memory_total_bytes"] = memory_bytes("MemTotal");
  json["memory_available_bytes"] = memory_bytes("MemAvailable");
  json["scans"] = Json::array();
  for (const ScanInfo& scan : measure_scans())
    json["scans"].push_back(
        {{"rows", name(scan.rows)}, {"multiplied_as", scan.multiplied_as}, {"gflops", scan.gflops}});
  return json;
}

std::string format_machine(const Json& machine) {
  std::string text = fmt::format("nearwise {}\n", machine["version"].get<std::string>());
  for (const Json& device : machine["devices"])
    text += fmt::format("{:<18}{}\n{:<18}{}\n", device["name"].get<std::string>(),
                        device["model"].get<std::string>(), "  operations",
                        join(device["operations"].get<std::vector<std::string>>()));
  text += fmt::format("{:<18}{}\n", "instruction sets",
                      join(machine["instruction_sets"].get<std::vector<std::string>>()));
  text += fmt::format("{:<18}{}\n", "threads", machine["threads"].get<int>());
  text += fmt::format("{:<18}{}, {} available\n", "memory",
                      format_bytes(machine["memory_total_bytes"].get<std::uint64_t>()),
                      format_bytes(machine["memory_available_bytes"].get<std::uint64_t>()));
  for (const Json& scan : machine["scans"])
    text += fmt::format("{:<18}{} rows multiplied as {}, {:.0f} GFLOP/s on one thread\n", "exact search",
                        scan["rows"].get<std::string>(), scan["multiplied_as"].get<std::string>(),
                        scan["gflops"].get<double>());
  return text;
}

Json describe_container(const std::filesystem::path& path) {
  const ContainerInfo info = inspect(path);
  Json json = {{"path", path.string()},
               {"content", info.kind},
               {"format", "nw"},
               {"format_version", fmt::format("{}.{}", info.version_major, info.version_minor)},
               {"bytes", info.bytes}};
  for (const SectionInfo& section : info.sections) {
    if (info.kind == "neighbors" && section.name == "ids")
      json.update({{"rows", section.rows}, {"k", section.columns}, {"distances", true}});
    if (info.kind == "graph" && section.name == "ids")
      json.update({{"rows", section.rows}, {"degree", section.columns}});
    if (info.kind == "ivf" && section.name == "centroids")
      json.update({{"lists", section.rows}, {"dim", section.columns}});
    if (info.kind == "ivf" && section.name == "codes")
      json.update({{"rows", section.rows}, {"code_bytes", section.columns}});
    if (info.kind == "additive_quantizer" && section.name == "words")
      json.update({{"codebooks", section.rows / 256}, {"dim", section.columns}});
  }
  json["metadata"] = info.metadata;
  json["sections"] = Json::array();
  for (const SectionInfo& section : info.sections)
    json["sections"].push_back({{"name", section.name},
                                {"type", section.element},
                                {"rows", section.rows},
                                {"columns", section.columns},
                                {"offset", section.offset},
                                {"bytes", section.bytes},
                                {"blocks", section.blocks}});
  return json;
}

Json describe_file(const std::filesystem::path& path) {
  if (is_container(path)) return describe_container(path);
  const std::string format = path.extension().string().substr(1);
  Json json = {{"path", path.string()}};
  if (content_of(path) == Content::vectors) {
    const VectorFile file = open_vectors(path);
    const RowsView rows = file.rows();
    json.update({{"content", "vectors"},
                 {"format", format},
                 {"bytes", std::filesystem::file_size(path)},
                 {"rows", rows.rows()},
                 {"dim", rows.dim()},
                 {"type", name(rows.type())}});
  } else {
    const Neighbors neighbors = read_neighbor_file(path).neighbors;
    json.update({{"content", "neighbors"},
                 {"format", format},
                 {"bytes", std::filesystem::file_size(path)},
                 {"rows", neighbors.ids.rows()},
                 {"k", neighbors.ids.cols()},
                 {"distances", has_distances(neighbors)}});
  }
  return json;
}

std::string format_section(const Json& section) {
  return fmt::format("  section {:<10} {} x {} {}, {} bytes at {}, {} checksummed blocks\n",
                     section["name"].get<std::string>(), section["rows"].get<std::uint64_t>(),
                     section["columns"].get<std::uint64_t>(), section["type"].get<std::string>(),
                     section["bytes"].get<std::uint64_t>(), section["offset"].get<std::uint64_t>(),
                     section["blocks"].get<std::uint64_t>());
}

std::string format_file(const Json& file) {
  std::string text = fmt::format("{}\n", file["path"].get<std::string>());
  for (const auto& [key, value] : file.items()) {
    if (key == "path") continue;
    if (key == "metadata") {
      for (const auto& [field, content] : value.items())
        if (!file.contains(field)) text += fmt::format("  {:<26}{}\n", field, content.get<std::string>());
    } else if (key == "sections") {
      for (const Json& section : value) text += format_section(section);
    } else {
      text += fmt::format("  {:<26}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return text;
}

ExitCode run_info(const Session& session, const std::vector<std::string>& paths) {
  if (paths.empty()) {
    const Json machine = describe_machine();
    session.json ? print(machine) : print(format_machine(machine));
    return ExitCode::ok;
  }
  Json files = Json::array();
  for (const std::string& path : paths) files.push_back(describe_file(path));
  if (session.json) print(Json{{"files", files}});
  if (!session.json)
    for (const Json& file : files) print(format_file(file));
  return ExitCode::ok;
}

}  // namespace

void add_info(CLI::App& app, Session& session) {
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = add_command(
      app, session, "info", "Describe files, or this build and machine",
      "  nearwise info truth.nw\n  nearwise info --json\n\n"
      "With files: what they hold, from their headers. Without: version, devices and their operations,\n"
      "instruction sets, threads, memory, and the speed of exact search's products.");
  command->add_option("files", *paths, "Files to describe")->type_name("FILE");
  command->callback(
      [&session, paths] { session.run = [&session, paths] { return run_info(session, *paths); }; });
}

}  // namespace nearwise::cli
