// build_knn_graph: checks arguments and chooses between exact search and NN-Descent.
#include "nearwise/graph/knn_graph.h"

#include <algorithm>

#include "core/float_environment.h"
#include "graph/build/nn_descent.h"
#include "ops/finite_rows.h"

namespace nearwise {

std::string_view name(GraphMethod method) { return method == GraphMethod::exact ? "exact" : "nn_descent"; }

KnnGraph build_knn_graph(const Context& context, RowsView rows, const KnnGraphOptions& options) {
  KnnGraph built =
      graph::build(context, rows, options, graph::default_tuning(options.degree, options.target_recall));
#ifndef NDEBUG
  built.validate();
#endif
  return built;
}

namespace {

bool is_exact(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
              const graph::Tuning& tuning) {
  return rows.rows() <= std::max(tuning.exact_rows, options.degree + 1) || options.target_recall == 1 ||
         context.state().backend.ops.join_groups == nullptr;
}

}  // namespace

std::uint64_t graph::building_bytes(const Context& context, const RowsView& rows,
                                    const KnnGraphOptions& options) {
  // Blocks of packed rows, queries and candidates of an exact search of vectors among themselves, which needs
  // less where memory is scarce.
  constexpr std::uint64_t search_bytes = std::uint64_t{4} << 20;
  const Tuning tuning = default_tuning(options.degree, options.target_recall);
  const std::uint64_t exact = rows.rows() * options.degree * (sizeof(Id) + sizeof(float)) + search_bytes +
                              std::min<std::uint64_t>(search_bytes, rows.rows() * rows.dim() * sizeof(float));
  return is_exact(context, rows, options, tuning)
             ? exact
             : std::max(exact, Builder::bytes(context, rows, options, tuning));
}

KnnGraph graph::build(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                      const Tuning& tuning) {
  check_arguments("build_knn_graph", context, rows, options);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  const Context::State& state = context.state();
  state.cancel.check();
  check_finite("build_knn_graph", context, rows);
  if (is_exact(context, rows, options, tuning)) return exact_graph(context, rows, options);
  return run_nn_descent("build_knn_graph", context, rows, options, tuning);
}

}  // namespace nearwise
