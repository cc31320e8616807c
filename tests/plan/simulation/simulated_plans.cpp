#include "plan/simulation/simulated_plans.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/math/random.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/files/file_calls.h"
#include "io/files/input_file.h"
#include "nearwise/vector_file.h"
#include "plan/engine/plan_state.h"
#include "plan/graph_index/graph_index_work.h"
#include "plan/join/join_work.h"
#include "plan/pairs/pair_work.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan::simulation {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_attempts = 4;
constexpr std::uint64_t seed = 7;

// Of an index: so little that 4,300 rows are two blocks.
std::uint64_t memory_limit(const std::string& name) {
  return name == "index" ? 17'900'000 : std::uint64_t{64} << 20;
}

Bytes bytes_of(const fs::path& path) {
  const InputFile file(path);
  Bytes bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

// Writes a file as a careless task does: in place.
void write_in_place(const fs::path& path, const Bytes& bytes) {
  const FileCalls& calls = file_calls();
  const int file = calls.open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file == -1) throw Error(ErrorCode::io, "cannot create " + path.native());
  const bool is_written =
      calls.write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
      calls.fsync(file) == 0;
  calls.close(file);
  if (!is_written) throw Error(ErrorCode::io, "cannot write " + path.native());
}

// Tasks whose output is a container with the text of their inputs.
class PlainTasks {
 public:
  PlainTasks(const PlanFiles& files, TaskBug bug) : files_(files), bug_(bug) {}

  Task task(const std::string& name, std::vector<std::string> after) const {
    Task made;
    made.planned.name = name;
    made.planned.after = std::move(after);
    made.output = file_of(name);
    made.work = [own = *this, name, inputs = made.planned.after, output = made.output](const Context&) {
      own.write(name, inputs, output);
    };
    return made;
  }

  Task temporary(const std::string& name, std::vector<std::string> after) const {
    Task made = task(name, std::move(after));
    made.is_temporary = true;
    return made;
  }

  // needed: whether the deciding task's text contains this.
  Task decided(const std::string& name, std::vector<std::string> after, const std::string& by,
               const std::string& needed) const {
    Task made = task(name, std::move(after));
    made.planned.if_needed = true;
    made.decided_by = by;
    made.needed = [own = *this, by, needed] { return own.text_of(by).find(needed) != std::string::npos; };
    return made;
  }

  void write(const std::string& name, const std::vector<std::string>& inputs, const fs::path& output) const {
    const bool has_bug = name == "join";
    const bool trusts = name == "last" && bug_ == TaskBug::trusts_its_input;
    std::string text = name + std::string(900, name.front());
    for (const std::string& input : inputs)
      text += "(" + (trusts ? unverified_text(input) : text_of(input)) + ")";
    if (has_bug && bug_ == TaskBug::reads_another_file) text += text_of("other");
    if (has_bug && bug_ == TaskBug::deletes_its_input) file_calls().unlink(file_of(inputs.front()).c_str());
    const bool in_place = has_bug && bug_ == TaskBug::writes_in_place;
    const fs::path path = in_place ? fs::path(files_.vectors) += ".draft" : output;
    ContainerWriter writer(path, "text");
    writer.write_metadata({{"text", text}});
    writer.commit();
    if (!in_place) return;
    write_in_place(output, bytes_of(path));
  }

 private:
  fs::path file_of(const std::string& name) const { return files_.work / (name + ".nw"); }
  std::string text_of(const std::string& name) const {
    return ContainerReader::open(file_of(name)).metadata().at("text").get<std::string>();
  }
  std::string unverified_text(const std::string& name) const {
    const ContainerReader reader = ContainerReader::open(file_of(name));
    const auto bytes = reader.unverified_bytes(reader.section("metadata").info());
    const std::string json(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto parsed = nlohmann::json::parse(json, nullptr, false);
    return parsed.contains("text") ? parsed.at("text").get<std::string>() : json;
  }

  PlanFiles files_;
  TaskBug bug_;
};

}  // namespace

SimulationFolder::SimulationFolder() {
  const fs::path in_memory = "/dev/shm";
  const fs::path parent = access(in_memory.c_str(), W_OK) == 0 ? in_memory : fs::temp_directory_path();
  std::string pattern = (fs::canonical(parent) / "nearwise_simulation_XXXXXX").native();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create " + pattern);
  path_ = pattern;
}

SimulationFolder::~SimulationFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

const std::vector<std::string>& SimulatedPlan::names() {
  static const std::vector<std::string> all = {"graph",       "pairs",           "index",
                                               "graph_index", "plain",           "join",
                                               "dedup",       "join_partitions", "dedup_partitions"};
  return all;
}

SimulatedPlan::SimulatedPlan(const fs::path& folder, const std::string& name, TaskBug bug)
    : name_(name),
      root_(folder / "disk"),
      files_{.vectors = folder / (name + ".fbin"),
             .work = root_ / "plans" / name,
             .output = root_ / "results" / (name + ".nw")} {
  for (std::size_t i = 0; i < most_attempts; ++i)
    contexts_.push_back(Context::cpu({.threads = 1, .memory_limit = memory_limit(name), .seed = seed}));
  fs::remove_all(root_);
  fs::create_directories(root_ / "results");
  plan_ = std::make_unique<Plan>(make(contexts_.front(), bug));
  last_task_ = plan_->tasks().back().name;
  plan_->run(contexts_.front(), [&](const PlannedTask& task, TaskOutcome outcome) {
    if (outcome != TaskOutcome::not_needed)
      expected_.emplace(output_of(task.name), bytes_of(root_ / output_of(task.name)));
  });
}

std::string SimulatedPlan::output_of(std::string_view task) const {
  return task == last_task_ ? result() : work() + "/" + std::string(task) + ".nw";
}

void SimulatedPlan::write_vectors(std::size_t rows, std::size_t dim) const {
  const Random random(seed);
  Matrix<float> vectors(rows, dim);
  for (std::size_t i = 0; i < rows * dim; ++i) vectors.data()[i] = static_cast<float>(random.normal(i));
  VectorWriter writer(files_.vectors, ElementType::f32, dim);
  writer.append(vectors);
  writer.commit();
  // Work folders of private vectors are private.
  if (name_ == "pairs") chmod(files_.vectors.c_str(), 0600);
}

Plan SimulatedPlan::make(const Context& context, TaskBug bug) {
  if (name_ == "graph") return make_graph(context);
  if (name_ == "pairs") return make_pairs(context);
  if (name_ == "index") return make_index(context);
  if (name_ == "graph_index") return make_graph_index(context);
  if (name_ == "join") return make_join(context);
  if (name_ == "dedup") return make_dedup(context);
  if (name_ == "join_partitions") return make_join_partitions(context);
  if (name_ == "dedup_partitions") return make_dedup_partitions(context);
  if (name_ == "plain") return make_plain(bug);
  throw std::invalid_argument("there is no plan '" + name_ + "'");
}

// Two groups, whose files of vectors are temporary, and two blocks. A second pass is needed.
Plan SimulatedPlan::make_graph(const Context& context) const {
  write_vectors(240, 4);
  GraphWork work;
  work.files = files_;
  work.options = {.degree = 4, .target_recall = 0.9};
  work.shape = shape_of(context, VectorFile::open(files_.vectors).rows(), work.options);
  work.shape.partitions = work.shape.min_partitions = 4;
  work.shape.overlap = 2;
  work.shape.sampled_rows = 200;
  work.shape.measured_rows = 60;
  work.shape.groups = 2;
  work.shape.batch_rows = 160;
  work.shape.block_rows = 120;
  work.shape.blocks = 2;
  return plan_of(context, work);
}

// Three shards: the outputs of the first merges are temporary.
Plan SimulatedPlan::make_pairs(const Context& context) const {
  write_vectors(180, 4);
  GraphWork work;
  work.files = files_;
  work.options = {.degree = 4, .method = GraphPlanMethod::pairs};
  work.shape = shape_of_pairs(context, VectorFile::open(files_.vectors).rows(), work.options);
  work.shape.measured_rows = 60;
  work.shape.block_rows = 60;
  work.shape.blocks = 3;
  return plan_of(context, work);
}

// Two blocks.
Plan SimulatedPlan::make_index(const Context& context) const {
  write_vectors(4300, 2);
  return plan_index(context, files_,
                    {.index = {.lists = 4, .iterations = 2, .training_rows = 128, .encoding = Flat{}},
                     .calibration = {.queries = 20}});
}

// Two blocks, whose edges are temporary, of a k-NN graph by one partition.
Plan SimulatedPlan::make_graph_index(const Context& context) const {
  write_vectors(60, 4);
  GraphIndexWork work = graph_index_work(context, files_, VectorFile::open(files_.vectors).rows(),
                                         {.index = {.degree = 16}, .calibration = {.sample = 10}});
  work.graph.shape.partitions = work.graph.shape.min_partitions = 1;
  work.graph.shape.overlap = 1;
  work.graph.shape.measured_rows = 20;
  work.block_rows = 30;
  work.nibble_rows = 50;
  return plan_of(context, work);
}

// Three blocks.
Plan SimulatedPlan::make_join(const Context& context) const {
  write_vectors(120, 3);
  JoinWork work = join_work(context, files_, 0.5F, {});
  work.block_rows = 40;
  return plan_of(context, std::move(work));
}

// Two blocks.
Plan SimulatedPlan::make_dedup(const Context& context) const {
  write_vectors(120, 3);
  JoinWork work = dedup_work(context, files_, 0.5F, {.dedup = {.keep = KeptRow::medoid}});
  work.block_rows = 60;
  return plan_of(context, std::move(work));
}

// Two blocks, whose vectors by partition are temporary, and two groups of partitions.
Plan SimulatedPlan::make_join_partitions(const Context& context) const {
  write_vectors(120, 3);
  JoinWork work = join_work(context, files_, 0.5F, {.method = JoinMethod::partitions});
  work.block_rows = 60;
  work.partitions.groups = 2;
  return plan_of(context, std::move(work));
}

Plan SimulatedPlan::make_dedup_partitions(const Context& context) const {
  write_vectors(120, 3);
  JoinWork work = dedup_work(context, files_, 0.5F,
                             {.dedup = {.keep = KeptRow::medoid}, .method = JoinMethod::partitions});
  work.block_rows = 60;
  work.partitions.groups = 2;
  return plan_of(context, std::move(work));
}

Plan SimulatedPlan::make_plain(TaskBug bug) const {
  const PlainTasks tasks(files_, bug);
  auto state = std::make_unique<Plan::State>();
  state->identity = {{"kind", "plain"}};
  state->folder = files_.work;
  state->output = files_.output;
  state->seed = seed;
  state->tasks = {tasks.temporary("first", {}),
                  tasks.task("other", {}),
                  tasks.temporary("left", {"first"}),
                  tasks.temporary("right", {"first"}),
                  tasks.task("join", {"left", "right"}),
                  tasks.decided("skipped", {"join"}, "join", "nothing"),
                  tasks.decided("extra", {"join"}, "join", "left"),
                  tasks.task("last", {"other", "join", "extra"})};
  state->tasks.back().output = files_.output;
  state->tasks.back().work = [tasks, output = files_.output](const Context&) {
    tasks.write("last", {"other", "join", "extra"}, output);
  };
  return Plan(std::move(state));
}

}  // namespace nearwise::plan::simulation
