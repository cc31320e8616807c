// nearwise info: what files contain, or what this build supports on this machine.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/context.h"
#include "nearwise/cuda_device.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct InfoArguments {
  std::vector<std::filesystem::path> files;
  bool verbose = false;
};

// A value as text: words separated by commas.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  const auto words = value.get<std::vector<std::string>>();
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

// A value of /proc/meminfo in bytes; 0 if the system has no such file.
std::uint64_t memory_bytes(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (file >> word)
    if (word == key + ":" && file >> kibibytes) return kibibytes * 1024;
  return 0;
}

Json describe_devices() {
  Json json = Json::array();
  for (const DeviceInfo& device : devices())
    json.push_back({{"name", device.name},
                    {"model", device.model},
                    {"operations", device.operations},
                    {"missing_operations", device.missing_operations}});
  return json;
}

Json describe_cuda() {
  const CudaDriver driver = cuda_driver();
  return {{"driver_version", driver.driver_version},
          {"runtime_version", driver.runtime_version},
          {"problem", driver.problem},
          {"library", driver.library}};
}

Json describe_machine() {
  Json json = {
      {"version", version()}, {"devices", describe_devices()}, {"instruction_sets", instruction_sets()}};
  json["cuda"] = describe_cuda();
  json["threads"] = Context::cpu().threads();
  json["memory_total_bytes"] = memory_bytes("MemTotal");
  json["memory_available_bytes"] = memory_bytes("MemAvailable");
  json["scans"] = Json::array();
  for (const ScanInfo& scan : measure_scans())
    json["scans"].push_back(
        {{"rows", name(scan.rows)}, {"multiplied_as", scan.multiplied_as}, {"gflops", scan.gflops}});
  return json;
}

std::string format_machine(const Json& machine, bool verbose) {
  std::string text = fmt::format("nearwise {}\n", text_of(machine["version"]));
  const auto line = [&text](const std::string& title, const std::string& content) {
    text += fmt::format("{:<18}{}\n", title, content);
  };
  for (const Json& device : machine["devices"]) {
    line(text_of(device["name"]), text_of(device["model"]));
    if (!verbose) continue;
    line("  operations", text_of(device["operations"]));
    line("  missing", text_of(device["missing_operations"]));
  }
  const Json& cuda = machine["cuda"];
  if (const std::string problem = text_of(cuda["problem"]); !problem.empty())
    line("cuda", "no device can be used: " + problem);
  if (const std::string library = text_of(cuda["library"]); verbose && !library.empty())
    line("  library", library);
  line("instruction sets", text_of(machine["instruction_sets"]));
  line("threads", text_of(machine["threads"]));
  line("memory", fmt::format("{}, {} available", format_bytes(machine["memory_total_bytes"]),
                             format_bytes(machine["memory_available_bytes"])));
  for (const Json& scan : machine["scans"])
    line("exact search",
         fmt::format("{} vectors multiplied as {}, {:.0f} GFLOP/s on one thread", text_of(scan["rows"]),
                     text_of(scan["multiplied_as"]), scan["gflops"].get<double>()));
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
    if (info.kind == "names" && section.name == "offsets" && section.rows >= 1)
      json.update({{"names", section.rows - 1}});
    if (info.kind == "pairs" && section.name == "offsets" && section.rows >= 1)
      json.update({{"rows", section.rows - 1}});
    if (info.kind == "pairs" && section.name == "ids") json.update({{"pairs", section.rows}});
    if (info.kind == "deduplication" && section.name == "kept") json.update({{"kept", section.rows}});
    if (info.kind == "deduplication" && section.name == "groups") json.update({{"rows", section.rows}});
    if (info.kind == "graph_index" && section.name == "edges")
      json.update({{"rows", section.rows}, {"degree", section.columns}});
    if (info.kind == "graph_index" && section.name == "removed") {  // follows the edges of a whole file
      const std::uint64_t rows = json.value("rows", std::uint64_t{0});
      json.update({{"rows", rows - std::min(rows, section.rows)}, {"removed", section.rows}});
    }
    if (info.kind == "additive_quantizer" && section.name == "codewords")
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
  if (holds_container(path)) return describe_container(path);
  const bool is_vectors = content_of(path) == Content::vectors;
  Json json = {{"path", path.string()},
               {"content", is_vectors ? "vectors" : "neighbors"},
               {"format", format_of(path)}};
  if (is_vectors) {
    const VectorFile file = open_vectors(path);
    const RowsView rows = file.rows();
    json.update({{"bytes", std::filesystem::file_size(path)},
                 {"rows", rows.rows()},
                 {"dim", rows.dim()},
                 {"type", name(rows.type())}});
  } else {
    const Neighbors neighbors = read_neighbor_file(path).neighbors;
    json.update({{"bytes", std::filesystem::file_size(path)},
                 {"rows", neighbors.ids.rows()},
                 {"k", neighbors.ids.cols()},
                 {"distances", has_distances(neighbors)}});
  }
  return json;
}

std::string format_file(const Json& file) {
  std::string text = fmt::format("{}\n", text_of(file["path"]));
  for (const auto& [key, value] : file.items()) {
    if (key == "path") continue;
    if (key == "metadata") {
      for (const auto& [field, content] : value.items())
        if (!file.contains(field)) text += fmt::format("  {:<26}{}\n", field, text_of(content));
    } else if (key == "sections") {
      for (const Json& section : value)
        text += fmt::format("  section {:<10} {} x {} {}, {} bytes at {}, {} checksummed blocks\n",
                            text_of(section["name"]), text_of(section["rows"]), text_of(section["columns"]),
                            text_of(section["type"]), text_of(section["bytes"]), text_of(section["offset"]),
                            text_of(section["blocks"]));
    } else {
      text += fmt::format("  {:<26}{}\n", key, text_of(value));
    }
  }
  return text;
}

ExitCode run_info(Session& session, const InfoArguments& arguments) {
  if (arguments.files.empty()) {
    const Json machine = describe_machine();
    session.json ? print(machine) : print(format_machine(machine, arguments.verbose));
    return ExitCode::ok;
  }
  Json files = Json::array();
  ExitCode first_failure = ExitCode::ok;
  for (const std::filesystem::path& path : arguments.files) {
    try {
      files.push_back(describe_file(path));
    } catch (const std::exception& exception) {
      const Failure failure = describe(exception);
      report(failure, session.json);
      if (first_failure == ExitCode::ok) first_failure = failure.exit_code;
    }
  }
  if (session.json && !files.empty()) print(Json{{"files", files}});
  if (!session.json)
    for (const Json& file : files) print(format_file(file));
  return first_failure;
}

}  // namespace

void add_info(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_info, "info", "Describe files, or this build and machine",
      "  nearwise info truth.nw\n  nearwise info --json\n\n"
      "With files: their content, from the headers; continues with the next one if a file cannot be read.\n"
      "Without: version, devices, instruction sets, threads, memory, and the speed of exact search; with\n"
      "--verbose and in JSON also the internal operations that each device supports and lacks.");
  add_paths(parser, "files", arguments.files, "Files to describe");
  parser.add_flag("-v,--verbose", arguments.verbose, "List the operations of every device");
}

}  // namespace nearwise::cli
