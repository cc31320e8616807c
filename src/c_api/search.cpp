// Exact search, k-NN graphs and k-means of the C interface.
#include <algorithm>
#include <optional>

#include "c_api/arguments.h"
#include "c_api/call.h"
#include "c_api/objects.h"
#include "nearwise/exact.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/kmeans.h"

using nearwise::Context;
using nearwise::Neighbors;
using nearwise::RowsView;
using nearwise::c_api::call;
using nearwise::c_api::deref;
using nearwise::c_api::options_of;
using nearwise::c_api::rows_of;

nearwise_status nearwise_knn(const nearwise_context* context, const nearwise_rows* queries,
                             const nearwise_rows* base, size_t k, const nearwise_knn_options* options,
                             int64_t* ids, float* distances) {
  constexpr const char* name = "nearwise_knn";
  return call([&] {
    const Context& own = deref(name, "context", context).context;
    const RowsView query_rows = rows_of(name, "queries", queries);
    const RowsView base_rows = rows_of(name, "base", base);
    const nearwise_knn_options given = options_of(name, options);
    deref(name, "ids", ids);
    const Neighbors found =
        nearwise::knn(own, query_rows, base_rows, k,
                      {.metric = nearwise::c_api::metric_of(name, given.metric),
                       .short_rows = given.pad != 0 ? nearwise::ShortRows::pad : nearwise::ShortRows::refuse,
                       .exclude_self = given.exclude_self != 0,
                       .filter = nearwise::c_api::filter_of(name, given.filter)});
    nearwise::c_api::write_neighbors(found, ids, distances);
  });
}

nearwise_status nearwise_knn_graph(const nearwise_context* context, const nearwise_rows* rows, size_t degree,
                                   const nearwise_knn_graph_options* options, int64_t* ids, float* distances,
                                   nearwise_graph_report* report) {
  constexpr const char* name = "nearwise_knn_graph";
  return call([&] {
    const Context& own = deref(name, "context", context).context;
    const RowsView vectors = rows_of(name, "rows", rows);
    const nearwise_knn_graph_options given = options_of(name, options);
    if (report != nullptr) nearwise::c_api::check_size(name, report->size, sizeof(nearwise_graph_report));
    deref(name, "ids", ids);
    const nearwise::KnnGraph graph = nearwise::build_knn_graph(
        own, vectors,
        {.degree = degree,
         .metric = nearwise::c_api::metric_of(name, given.metric),
         .target_recall = nearwise::c_api::share_of(name, "target_recall", given.target_recall,
                                                    nearwise::KnnGraphOptions().target_recall)});
    nearwise::c_api::write_neighbors(graph.neighbors, ids, distances);
    if (report == nullptr) return;
    const nearwise::RecallEstimate& recall = graph.report.recall;
    nearwise::c_api::write_result({.size = report->size,
                                   .reached = graph.report.reached ? 1 : 0,
                                   .recall = recall.value,
                                   .recall_low = recall.low,
                                   .recall_high = recall.high},
                                  report);
  });
}

nearwise_status nearwise_kmeans(const nearwise_context* context, const nearwise_rows* rows, size_t clusters,
                                const nearwise_kmeans_options* options, float* centroids, size_t* sizes) {
  constexpr const char* name = "nearwise_kmeans";
  return call([&] {
    const Context& own = deref(name, "context", context).context;
    const RowsView vectors = rows_of(name, "rows", rows);
    const nearwise_kmeans_options given = options_of(name, options);
    deref(name, "centroids", centroids);
    nearwise::KMeansOptions wanted = {.metric = nearwise::c_api::metric_of(name, given.metric)};
    if (given.iterations != 0) wanted.iterations = given.iterations;
    if (given.balance != 0) wanted.balance = given.balance;
    const nearwise::KMeans trained = nearwise::train_kmeans(own, vectors, clusters, wanted);
    std::copy_n(trained.centroids.data(), clusters * vectors.dim(), centroids);
    if (sizes != nullptr) std::ranges::copy(trained.sizes, sizes);
  });
}
