#include "cli/shared/work.h"

#include <algorithm>

#include "cli/shared/elements.h"

namespace nearwise::cli {

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

}  // namespace nearwise::cli
