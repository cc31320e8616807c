// Plans of tasks that write a few bytes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/temporary_folder.h"
#include "plan/engine/plan_state.h"

namespace nearwise {

class ExecutorThreads : public ::testing::Test {
 protected:
  static void write(const std::filesystem::path& path, const std::string& text) {
    ContainerWriter writer(path, "test");
    writer.write_metadata({{"text", text}});
    writer.commit();
  }
  static Context context() { return Context::cpu({.threads = 2, .seed = 7}); }

  plan::Task task(const std::string& name, std::vector<std::string> after = {}) const {
    plan::Task task;
    task.planned.name = name;
    task.planned.after = std::move(after);
    task.output = work / (name + ".nw");
    task.work = [name, output = task.output](const Context&) { write(output, name); };
    return task;
  }
  // The last one publishes.
  Plan plan(std::vector<plan::Task> tasks) const {
    auto state = std::make_unique<Plan::State>();
    state->identity = {{"kind", "test"}};
    state->folder = work;
    state->output = tasks.back().output;
    state->seed = 7;
    state->tasks = std::move(tasks);
    return Plan(std::move(state));
  }

  const testing_io::TemporaryFolder folder;
  const std::filesystem::path work = folder / "work";
};

// Tasks that read their inputs, and what is done about damaged ones.
class ExecutorRepairs : public ExecutorThreads {
 protected:
  // Its output holds its own name and the text of its inputs.
  plan::Task reader(const std::string& name, std::vector<std::string> after = {}, bool is_temporary = false) {
    plan::Task made = task(name, std::move(after));
    made.is_temporary = is_temporary;
    made.work = [this, name, output = made.output, inputs = made.planned.after](const Context&) {
      ++runs[name];
      std::string text = name;
      for (const std::string& input : inputs)
        text += "(" + ContainerReader::open(work / (input + ".nw")).metadata().at("text").get<std::string>() +
                ")";
      write(output, text);
    };
    return made;
  }
  // Flips a bit of the metadata section: header and table stay valid.
  void damage(const std::string& name) const {
    const std::filesystem::path path = work / (name + ".nw");
    const std::uint64_t offset = ContainerReader::open(path).section("metadata").info().offset;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset) + 3);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(offset) + 3);
    file.put(byte);
  }
  std::vector<std::string> run(const Plan& plan) const {
    std::vector<std::string> outcomes;
    plan.run(context(), [&](const PlannedTask& task, TaskOutcome outcome) {
      outcomes.push_back(task.name + " " + std::string(name(outcome)));
    });
    return outcomes;
  }
  std::string text(const std::string& name) const {
    return ContainerReader::open(work / (name + ".nw")).metadata().at("text").get<std::string>();
  }

  std::map<std::string, int> runs;
};

}  // namespace nearwise
