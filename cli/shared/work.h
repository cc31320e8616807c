// A computation of a command: device, threads and memory limit; shows its progress, and Ctrl-C cancels it.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>

#include "cli/shared/progress_bar.h"
#include "cli/shared/session.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {

struct ContextArguments {
  std::uint64_t memory_limit = 0;  // 0: the option was not given
  std::size_t threads = 0;
  std::string device = "cpu";
  std::string isa;
};

// --memory-limit, --threads, --device and --isa.
void add_context_options(CLI::App& parser, ContextArguments& arguments);

// Reports no progress: see Work.
Context open_context(const ContextArguments& arguments, std::uint64_t seed = 0);

// device, isa, threads and memory_peak_bytes.
Json describe_context(const Context& context);

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

class Work {
 public:
  // Shares the memory budget of `context`. The rate is in `unit`s per second, of which the whole work has
  // `units`; without a unit none is shown.
  Work(Session& session, const Context& context, const std::string& unit = {}, std::uint64_t units = 0)
      : Work(session, context, session.command, unit, units) {}
  Work(Session& session, const Context& context, const std::string& label, const std::string& unit,
       std::uint64_t units);

  // Returns call(context). Throws Error(cancelled) if it was interrupted.
  template <typename Call>
  auto run(const Call& call) {
    const Interrupt::Protection protection = session_.interrupt->protect(context_);
    if constexpr (std::is_void_v<std::invoke_result_t<Call, const Context&>>) {
      call(context_);
      finish();
    } else {
      auto result = call(context_);
      finish();
      return result;
    }
  }

  // As run(), where all arguments were checked before: what the library refuses as an invalid argument is the
  // content of a file.
  template <typename Call>
  auto run_on_data(const Call& call) {
    return run([&call](const Context& context) { return blame_data([&] { return call(context); }); });
  }

  // Calls `call` with consecutive batches and the row each begins at. NaN and infinity are reported by row
  // and column.
  using BatchCall = std::function<void(const Context& context, RowsView batch, std::size_t first_row)>;
  // `commit` follows the last one; Ctrl-C stops it, too.
  void run_batches(RowsView rows, std::size_t batch_rows, const BatchCall& call,
                   const std::function<void()>& commit = {});

  ProgressBar& bar() { return bar_; }

 private:
  void finish();

  Session& session_;
  ProgressBar bar_;
  Context context_;
};

// Calls `use` with all chunks of the first `most_rows` of a file and the row each begins at, and returns the
// number of rows. Shows progress; throws Error(cancelled) once a signal has arrived, from which the caller
// protects itself.
std::size_t read_chunks(const Session& session, VectorReader& reader,
                        const std::function<void(RowsView chunk, std::size_t first_row)>& use,
                        std::size_t most_rows = std::numeric_limits<std::size_t>::max());

}  // namespace nearwise::cli
