// nearwise build: an inverted file of the rows of a file, trained on them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/index/index_arguments.h"
#include "cli/plan_report.h"
#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "build: " + message);
}

}  // namespace

void check_index_arguments(const IndexBuildArguments& arguments, RowsView base) {
  const std::string where = arguments.base.string();
  if (arguments.lists > base.rows())
    refuse(fmt::format("{} lists exceed the {} rows of '{}'", arguments.lists, base.rows(), where));
  if (arguments.lists != 0 && arguments.probes > arguments.lists)
    refuse(fmt::format("{} probes exceed the {} lists", arguments.probes, arguments.lists));
  if (arguments.codec == "flat") return;
  constexpr std::size_t most_codebooks = 32;
  if (arguments.codec == "lsq" && arguments.code_bytes > most_codebooks)
    refuse(fmt::format("codes of lsq have 1 to {} bytes, given {}", most_codebooks, arguments.code_bytes));
  if (arguments.codec == "pq" && arguments.code_bytes > base.dim())
    refuse(fmt::format("codes of {} bytes exceed the {} dimensions of '{}'", arguments.code_bytes, base.dim(),
                       where));
  if (base.rows() < (std::size_t{1} << arguments.bits))
    refuse(fmt::format("codes of {} bits need at least {} rows to train on, '{}' has {}", arguments.bits,
                       std::size_t{1} << arguments.bits, where, base.rows()));
}

namespace {

Ivf train(const Context& context, const IndexBuildArguments& arguments, RowsView base) {
  const Metric metric = parse_metric(arguments.metric);
  return blame_data([&]() -> Ivf {
    if (arguments.codec == "flat")
      return IvfFlat::train(context, base,
                            {.metric = metric,
                             .lists = arguments.lists,
                             .iterations = arguments.iterations,
                             .rows_per_list = arguments.rows_per_list});
    if (arguments.codec == "lsq")
      return IvfLsq::train(
          context, base,
          {.metric = metric,
           .lists = arguments.lists,
           .iterations = arguments.iterations,
           .rows_per_list = arguments.rows_per_list,
           .code_bytes = arguments.code_bytes != 0 ? arguments.code_bytes : IvfLsqOptions().code_bytes});
    return IvfPq::train(context, base,
                        {.metric = metric,
                         .lists = arguments.lists,
                         .iterations = arguments.iterations,
                         .rows_per_list = arguments.rows_per_list,
                         .code_bytes = arguments.code_bytes,
                         .bits = static_cast<unsigned>(arguments.bits)});
  });
}

// With a bar of its own, which follows the k-means: the rest is short beside it.
Ivf train_with_progress(Session& session, const Context& context, const IndexBuildArguments& arguments,
                        RowsView base) {
  ProgressBar bar(choose_progress_style(session.quiet), "train", "rows",
                  base.rows() * std::max<std::size_t>(arguments.iterations, 1));
  const Context own = context.with_progress([&bar](const Progress& now) {
    if (std::string_view(now.operation) == "train_kmeans") bar.update(now.done, now.total);
  });
  const Interrupt::Protection protection = session.interrupt->protect([&own] { own.cancel(); });
  return train(own, arguments, base);
}

void add_all(Session& session, const Context& machine, Ivf& index, RowsView base) {
  const Context context = machine.with_progress({});
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  ProgressBar bar(choose_progress_style(session.quiet), "add", "rows", base.rows());
  add_rows(session, context, index, base, {}, bar);
}

ExitCode run_build(Session& session, const IndexBuildArguments& arguments) {
  check_index_output(arguments.output);
  const VectorFile base_file = open_vectors(arguments.base);
  const RowsView base = base_file.rows();
  check_index_arguments(arguments, base);
  Provenance run = describe_run(session);
  run["base"] = describe_input(arguments.base, base);

  const Context machine = open_silent_context(arguments.machine, arguments.seed);
  const auto start = std::chrono::steady_clock::now();
  Ivf index = train_with_progress(session, machine, arguments, base);
  session.interrupt->check();
  if (arguments.probes > index.lists())
    refuse(fmt::format("{} probes exceed the {} lists", arguments.probes, index.lists()));
  if (arguments.probes != 0) index.set_probes(arguments.probes);

  if (!arguments.train_only) {
    add_all(session, machine, index, base);
    // A row alone has no neighbours.
    if (arguments.probes == 0 && index.size() >= 2)
      measure_index(session, machine, index, base, {.recall = arguments.recall});
  }
  record_run(run, index);
  const Interrupt::Protection protection = session.interrupt->protect();
  save(index, arguments.output);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Json json = describe_index(index, arguments.output);
  json.update({{"seed", arguments.seed},
               {"seconds", seconds},
               {"isa", machine.isa()},
               {"threads", machine.threads()},
               {"memory_peak_bytes", machine.memory_peak()}});
  tell_of_index(session, json, index, arguments.output,
                fmt::format("{} bytes a row, {:.3g} s", index.code_bytes(), seconds));
  return ExitCode::ok;
}

}  // namespace

std::function<void()> add_index_options(CLI::App& command, IndexBuildArguments& arguments) {
  add_path(command, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  command
      .add_option("--codec", arguments.codec,
                  "What is kept of a row: pq or lsq (a code), or flat (all of it) (pq)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"pq", "lsq", "flat"}));
  add_count(command, "--lists", arguments.lists, 1, "Lists (about 4 sqrt(rows))");
  CLI::Option* const code_bytes = add_count(command, "--code-bytes", arguments.code_bytes, 1,
                                            "Bytes of a code (one for every 8 dimensions, 8 to 64; lsq: 8)");
  CLI::Option* const bits = add_count(command, "--bits", arguments.bits, 4, "Of a part's code: 4 or 8 (8)");
  add_word(command, "--metric", arguments.metric, parse_metric,
           "sqeuclidean, euclidean, inner_product (largest first) or cosine (sqeuclidean)");
  add_count(command, "--iterations", arguments.iterations, 1, "Of k-means, at most (10)");
  add_count(command, "--rows-per-list", arguments.rows_per_list, 0,
            "Rows to train on, drawn by the seed; 0: all (256)");
  CLI::Option* const probes =
      add_count(command, "--probes", arguments.probes, 1,
                "Lists that a search looks at unless it says otherwise (measured: see --recall)");
  add_number(command, "--recall", arguments.recall,
             "Of the 10 nearest rows, the share that such a search must find (0.9)")
      ->excludes(probes);
  add_count(command, "--seed", arguments.seed, 0, "Of the random numbers (0)");
  add_machine_options(command, arguments.machine);
  return [&arguments, code_bytes, bits, probes] {
    check_recall(arguments.recall);
    if (arguments.bits != 4 && arguments.bits != 8)
      throw CLI::ValidationError("--bits", fmt::format("expected 4 or 8, given {}", arguments.bits));
    if (arguments.codec == "flat" && !code_bytes->empty())
      throw CLI::ValidationError(code_bytes->get_name(), "is for --codec pq and lsq");
    if (arguments.codec != "pq" && !bits->empty())
      throw CLI::ValidationError(bits->get_name(), "is for --codec pq");
    if (!arguments.work.empty() && !probes->empty())
      throw CLI::ValidationError(probes->get_name(), "is measured where --work is given");
  };
}

void add_build(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<IndexBuildArguments>();
  CLI::App* const command = add_command(
      app, session, "build", "Build an index of the rows of a file",
      "  nearwise build base.fbin --lists 4096 --code-bytes 16 --output index.nw\n"
      "  nearwise build sample.fbin --lists 4096 --train-only --output trained.nw\n\n"
      "An inverted file: rows in lists around centroids, each as a product code (pq), an additive\n"
      "code (lsq: slower to make, loses less) or as it is (flat).\n"
      "Rows have their numbers as ids. How many lists a search must look at is measured, and told.");
  const std::function<void()> check = add_index_options(*command, *arguments);
  add_path(*command, "-o,--output", arguments->output, "Where the index goes: .nw")->required();
  CLI::Option* const train_only =
      command->add_flag("--train-only", arguments->train_only,
                        "Leave the index without rows: for nearwise add, and parts that are merged");
  CLI::Option* const work =
      add_path(
          *command, "--work", arguments->work,
          "Build over files in this folder, for an index beyond --memory; stopped at any moment, the same "
          "command goes on")
          ->excludes(train_only);
  add_keep_work(*command, arguments->keep_work, work);
  command->callback([&session, arguments, check] {
    check();
    session.run = [&session, arguments] {
      return arguments->work.empty() ? run_build(session, *arguments)
                                     : run_planned_build(session, *arguments);
    };
  });
}

}  // namespace nearwise::cli
