#include "cli/shared/work.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "cli/shared/command.h"
#include "cli/shared/elements.h"

namespace nearwise::cli {

void add_context_options(CLI::App& parser, ContextArguments& arguments) {
  add_memory_limit(parser, arguments.memory_limit,
                   "Bound on working memory and results: 2GiB, 500MB, 1073741824", "no limit");
  add_count(parser, "--threads", arguments.threads, 1, "Threads (default: all CPUs)")->default_str("");
  parser.add_option("--device", arguments.device, "Device: cpu, cuda or cuda:N")
      ->type_name("NAME")
      ->default_str(arguments.device);
  parser
      .add_option(
          "--isa", arguments.isa,
          "Highest instruction set to use (default: the best; see nearwise info); on a CUDA device the "
          "type of products: f32, tf32 or bf16")
      ->type_name("NAME");
}

Context open_context(const ContextArguments& arguments, std::uint64_t seed) {
  ContextOptions options;
  // A number too large for int is too large for the library as well, which says so.
  options.threads = static_cast<int>(std::min<std::size_t>(arguments.threads, INT_MAX));
  options.memory_limit = arguments.memory_limit;
  options.seed = seed;
  options.isa = arguments.isa;
  return Context::on(arguments.device, std::move(options));
}

Json describe_context(const Context& context) {
  return {{"device", name(context.place())},
          {"isa", context.isa()},
          {"threads", context.threads()},
          {"memory_peak_bytes", context.memory_peak()}};
}

Work::Work(Session& session, const Context& context, const std::string& label, const std::string& unit,
           std::uint64_t units)
    : session_(session),
      bar_(choose_progress_style(session.quiet), label, unit, units),
      context_(context.with_progress(bar_.callback())) {}

void Work::run_batches(RowsView rows, std::size_t batch_rows, const BatchCall& call,
                       const std::function<void()>& commit) {
  run([&](const Context& context) {
    const Context silent = context.without_progress();  // progress counts rows of all batches
    for (std::size_t first = 0; first < rows.rows(); first += batch_rows) {
      session_.interrupt->check();
      const RowsView batch = rows.slice(first, std::min(batch_rows, rows.rows() - first));
      require_finite(batch, first);
      call(silent, batch, first);
      bar_.update(first + batch.rows(), rows.rows());
    }
    session_.interrupt->check();
    if (commit) commit();
  });
}

void Work::finish() {
  bar_.finish();
  session_.interrupt->check();
}

std::size_t read_chunks(const Session& session, VectorReader& reader,
                        const std::function<void(RowsView chunk, std::size_t first_row)>& use,
                        std::size_t most_rows) {
  const std::size_t rows = std::min(reader.rows(), most_rows);
  ProgressBar bar(choose_progress_style(session.quiet), session.command, "vectors", rows);
  std::size_t done = 0;
  while (done < rows) {
    const RowsView chunk = reader.next();
    const std::size_t count = std::min(chunk.rows(), rows - done);
    session.interrupt->check();
    use(chunk.slice(0, count), done);
    done += count;
    bar.update(done, rows);
  }
  session.interrupt->check();
  return rows;
}

}  // namespace nearwise::cli
