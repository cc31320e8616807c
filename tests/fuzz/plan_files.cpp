// Fuzz targets: the files between the tasks of a plan. The program's name chooses what the input is:
//
//   fuzz_work_files   the first byte chooses a file of a plan that has run, the rest is its new content, with
//                     right checksums and on record as that file. Then the tasks that read it run.
//   fuzz_manifest     the manifest, with right checksums of its lines. Then the plan is looked at and run.
//
// Either an Error or a plan that goes on.
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mutate_container.h"
#include "nearwise/plan.h"
#include "plan/engine/manifest.h"
#include "plan/engine/plan_state.h"
#include "small_plan.h"

namespace {

using namespace nearwise;
namespace fs = std::filesystem;
using Json = nlohmann::json;

bool is_manifest = false;

const Context& context() { return fuzz::small_plan_context(); }

// A plan that has run, in memory, and its files at that time.
struct Sample {
  Sample() {
    remove_abandoned();
    fuzz::run_small_plans(folder);
    for (const fs::path& name : fuzz::small_plans()) {
      plans.push_back(fuzz::small_plan(folder, name));
      for (const PlannedTask& task : plans.back().tasks())
        if (const fs::path path = folder / name / (task.name + ".nw"); fs::exists(path))
          files.push_back({plans.size() - 1, task.name, path});
    }
    fs::remove_all(kept);
    fs::copy(folder, kept, fs::copy_options::recursive);
  }
  ~Sample() {
    fs::remove_all(folder);
    fs::remove_all(kept);
  }

  // Replaces what an input has changed.
  void restore() const {
    for (const auto& entry : fs::recursive_directory_iterator(kept)) {
      if (!entry.is_regular_file()) continue;
      const fs::path now = folder / fs::relative(entry.path(), kept);
      if (fs::exists(now) && fs::file_size(now) == entry.file_size() && text_of(now) == text_of(entry.path()))
        continue;
      fs::copy_file(entry.path(), now, fs::copy_options::overwrite_existing);
    }
  }

  // Folders of runs that were killed.
  static void remove_abandoned() {
    for (const auto& entry : fs::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(prefix)) continue;
      if (kill(std::atoi(name.c_str() + prefix.size()), 0) == -1 && errno == ESRCH)
        fs::remove_all(entry.path());
    }
  }

  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  struct File {
    std::size_t plan;
    std::string task;
    fs::path path;
  };
  static constexpr std::string_view prefix = "nearwise_fuzz_";
  const fs::path folder = fs::path("/dev/shm") / (std::string(prefix) + std::to_string(getpid()));
  const fs::path kept = folder.string() + "_kept";
  std::vector<Plan> plans;
  std::vector<File> files;
};

const Sample& sample() {
  static const Sample made;
  return made;
}

template <typename Call>
void allow_errors(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
}

void write(const fs::path& path, const void* data, std::size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

// On record as the output of its task.
void record(const Sample::File& file) {
  const plan::Manifest manifest(file.path.parent_path() / "manifest");
  for (Json line : manifest.read()) {
    if (line.value("task", "") != file.task) continue;
    line["output"] = fmt::format("{:016x}", plan::fingerprint_of(ContainerReader::open(file.path)));
    manifest.append(line);
    return;
  }
}

void use_work_file(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const Sample::File& file = sample().files[data[0] % sample().files.size()];
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  testing_io::reseal(std::as_writable_bytes(std::span(bytes)));
  fs::remove(file.path);  // the file of an earlier input may be mapped
  write(file.path, bytes.data(), bytes.size());
  const Plan& plan = sample().plans[file.plan];
  allow_errors([&] { record(file); });
  for (const PlannedTask& task : plan.tasks())
    if (std::ranges::find(task.after, file.task) != task.after.end())
      allow_errors([&] { plan.run_task(context(), task.name); });
}

// The checksums of all lines, as plan/engine/manifest.cpp chains them.
std::string resealed_manifest(std::string_view text) {
  std::string sealed;
  std::uint64_t before = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view record = line.substr(0, line.rfind('\t'));
    before = XXH3_64bits_withSeed(record.data(), record.size(), before);
    sealed += fmt::format("{}\t{:016x}\n", record, before);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return sealed;
}

void use_manifest(const std::uint8_t* data, std::size_t size) {
  const Plan& plan = sample().plans.front();
  const fs::path path = sample().folder / fuzz::small_plans().front() / "manifest";
  const std::string text = resealed_manifest({reinterpret_cast<const char*>(data), size});
  write(path, text.data(), text.size());
  for (const PlannedTask& task : plan.tasks())
    allow_errors([&] { static_cast<void>(plan.is_done(task.name)); });
  allow_errors([&] { plan.run(context()); });
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  is_manifest = fs::path((*arguments)[0]).filename() == "fuzz_manifest";
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (is_manifest || size < 2) return LLVMFuzzerMutate(data, size, max_size);
  // A mapping of the container needs its own alignment.
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  bytes.resize(max_size - 1);
  const std::size_t changed = fuzz::mutate_container(bytes.data(), size - 1, max_size - 1, seed);
  std::copy_n(bytes.data(), changed, data + 1);
  return changed + 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (is_manifest)
    use_manifest(data, size);
  else
    use_work_file(data, size);
  sample().restore();
  return 0;
}
