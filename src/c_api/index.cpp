// Indexes of the C interface: one handle for inverted files and graph indexes.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "c_api/arguments.h"
#include "c_api/call.h"
#include "c_api/objects.h"
#include "nearwise/storage.h"

namespace nearwise::c_api {
namespace {

std::optional<std::size_t> count_of(std::size_t given) {
  return given == 0 ? std::nullopt : std::optional(given);
}

// Options of another kind of index are refused, not ignored.
void require_absent(const char* function, bool absent, const char* option, const char* owner) {
  require(absent, "{}: {} is an option of {}", function, option, owner);
}

Encoding encoding_of(const char* function, const nearwise_index_options& given) {
  if (given.kind != NEARWISE_IVF_PQ) require_absent(function, given.bits == 0, "bits", "NEARWISE_IVF_PQ");
  if (given.kind == NEARWISE_IVF_PQ)
    return Pq{.code_bytes = count_of(given.code_bytes), .bits = given.bits == 0 ? Pq().bits : given.bits};
  if (given.kind == NEARWISE_IVF_LSQ) {
    Lsq lsq;
    if (given.code_bytes != 0) lsq.code_bytes = given.code_bytes;
    return lsq;
  }
  require_absent(function, given.code_bytes == 0, "code_bytes", "NEARWISE_IVF_PQ and NEARWISE_IVF_LSQ");
  require_absent(function, given.vectors == NEARWISE_KEEP_VECTORS, "vectors",
                 "NEARWISE_IVF_PQ and NEARWISE_IVF_LSQ");
  return Flat{};
}

VectorStorage storage_of(const char* function, const nearwise_index_options& given) {
  require(given.vectors >= NEARWISE_KEEP_VECTORS && given.vectors <= NEARWISE_KEEP_FILE,
          "{}: vectors from {} to {} expected, got {}", function, NEARWISE_KEEP_VECTORS, NEARWISE_KEEP_FILE,
          given.vectors);
  require((given.vectors == NEARWISE_KEEP_FILE) == (given.vector_file != nullptr),
          "{}: vector_file is given with NEARWISE_KEEP_FILE, and only then", function);
  constexpr VectorStorage storages[] = {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8,
                                        VectorStorage::none, VectorStorage::file};
  return storages[given.vectors];
}

Ivf build_ivf(const char* function, const Context& context, RowsView rows, std::span<const Id> ids,
              const nearwise_index_options& given) {
  require_absent(function, given.degree == 0, "degree", "NEARWISE_GRAPH");
  require_absent(function, given.graph_recall == 0, "graph_recall", "NEARWISE_GRAPH");
  IvfOptions options = {.metric = metric_of(function, given.metric),
                        .lists = count_of(given.lists),
                        .encoding = encoding_of(function, given),
                        .vectors = storage_of(function, given)};
  if (given.vector_file != nullptr) options.vector_file = given.vector_file;
  std::optional<CalibrationOptions> calibration;
  if (given.no_calibration == 0)
    calibration = {.target_recall = share_of(function, "target_recall", given.target_recall,
                                             CalibrationOptions().target_recall)};
  if (ids.empty()) return Ivf::build(context, rows, options, calibration);
  Ivf index = Ivf::train(context, rows, options);
  index.add(context, rows, ids);
  if (calibration) index.calibrate(context, *calibration);
  return index;
}

GraphIndex build_graph(const char* function, const Context& context, RowsView rows, std::span<const Id> ids,
                       const nearwise_index_options& given) {
  constexpr const char* lists = "inverted files";
  require_absent(function, given.lists == 0, "lists", lists);
  require_absent(function, given.code_bytes == 0, "code_bytes", lists);
  require_absent(function, given.bits == 0, "bits", lists);
  require_absent(function, given.vectors == NEARWISE_KEEP_VECTORS, "vectors", lists);
  require_absent(function, given.vector_file == nullptr, "vector_file", lists);
  GraphIndexOptions options = {.metric = metric_of(function, given.metric), .ids = ids};
  if (given.degree != 0) options.degree = given.degree;
  options.graph_recall = share_of(function, "graph_recall", given.graph_recall, options.graph_recall);
  std::optional<GraphCalibrationOptions> calibration;
  if (given.no_calibration == 0)
    calibration = {.target_recall = share_of(function, "target_recall", given.target_recall,
                                             GraphCalibrationOptions().target_recall)};
  return GraphIndex::build(context, rows, options, calibration);
}

OnDuplicate on_duplicate_of(const char* function, nearwise_on_duplicate given) {
  switch (given) {
    case NEARWISE_REFUSE: return OnDuplicate::refuse;
    case NEARWISE_REPLACE: return OnDuplicate::replace;
    case NEARWISE_SKIP: return OnDuplicate::keep;
    default: break;
  }
  fail(ErrorCode::invalid_argument, "{}: on_duplicate from {} to {} expected, got {}", function,
       NEARWISE_REFUSE, NEARWISE_SKIP, given);
}

nearwise_index_kind kind_of(const Ivf& index) {
  if (index.encoding() == "flat") return NEARWISE_IVF_FLAT;
  return index.encoding() == "pq" ? NEARWISE_IVF_PQ : NEARWISE_IVF_LSQ;
}
nearwise_index_kind kind_of(const GraphIndex&) { return NEARWISE_GRAPH; }

nearwise_index_info info_of(const auto& index) {
  nearwise_index_info info = {.size = sizeof(nearwise_index_info),
                              .kind = kind_of(index),
                              .metric = static_cast<nearwise_metric>(index.metric()),
                              .rows = index.size(),
                              .dim = index.dim(),
                              .next_id = index.next_id(),
                              .calibrated = 0,
                              .reached = 0,
                              .target_recall = 0,
                              .recall = 0,
                              .recall_low = 0,
                              .recall_high = 0};
  if (const auto calibration = index.calibration()) {
    info.calibrated = 1;
    info.reached = calibration->reached() ? 1 : 0;
    info.target_recall = calibration->target_recall;
    info.recall = calibration->recall.value;
    info.recall_low = calibration->recall.low;
    info.recall_high = calibration->recall.high;
  }
  return info;
}

Neighbors search_in(const char* function, const Ivf& index, const Context& context, RowsView queries,
                    std::size_t k, const nearwise_search_options& given) {
  require_absent(function, given.beam == 0, "beam", "graph indexes");
  return index.search(context, queries, k,
                      {.probes = count_of(given.probes),
                       .candidates = count_of(given.candidates),
                       .filter = filter_of(function, given.filter)});
}

Neighbors search_in(const char* function, const GraphIndex& index, const Context& context, RowsView queries,
                    std::size_t k, const nearwise_search_options& given) {
  require_absent(function, given.probes == 0, "probes", "inverted files");
  require_absent(function, given.candidates == 0, "candidates", "inverted files");
  return index.search(context, queries, k,
                      {.beam = count_of(given.beam), .filter = filter_of(function, given.filter)});
}

nearwise_index* build(const char* function, const Context& context, RowsView rows, std::span<const Id> ids,
                      const nearwise_index_options& given) {
  require(given.kind >= NEARWISE_IVF_FLAT && given.kind <= NEARWISE_GRAPH,
          "{}: a kind from {} to {} expected, got {}", function, NEARWISE_IVF_FLAT, NEARWISE_GRAPH,
          given.kind);
  require(given.no_calibration == 0 || given.target_recall == 0,
          "{}: target_recall and no_calibration exclude each other", function);
  if (given.kind == NEARWISE_GRAPH)
    return new nearwise_index{build_graph(function, context, rows, ids, given)};
  return new nearwise_index{build_ivf(function, context, rows, ids, given)};
}

nearwise_index* open(const char* function, const Context& context, const char* path) {
  const std::string kind = inspect(path).kind;
  if (kind == "ivf") return new nearwise_index{load_ivf(context, path)};
  if (kind == "graph_index") return new nearwise_index{load_graph_index(context, path)};
  fail(ErrorCode::invalid_argument, "{}: an index expected, {} is a file of {}", function, path, kind);
}

}  // namespace
}  // namespace nearwise::c_api

namespace c_api = nearwise::c_api;

nearwise_status nearwise_index_build(const nearwise_context* context, const nearwise_rows* rows,
                                     const int64_t* ids, const nearwise_index_options* options,
                                     nearwise_index** index) {
  constexpr const char* name = "nearwise_index_build";
  return c_api::call([&] {
    const nearwise::Context& own = c_api::deref(name, "context", context).context;
    const nearwise::RowsView vectors = c_api::rows_of(name, "rows", rows);
    c_api::deref(name, "options", options);
    nearwise_index*& out = c_api::deref(name, "index", index);
    out = c_api::build(name, own, vectors, c_api::ids_of(ids, vectors.rows()),
                       c_api::options_of(name, options));
  });
}

nearwise_status nearwise_index_open(const nearwise_context* context, const char* path,
                                    nearwise_index** index) {
  constexpr const char* name = "nearwise_index_open";
  return c_api::call([&] {
    const nearwise::Context& own = c_api::deref(name, "context", context).context;
    c_api::deref(name, "path", path);
    nearwise_index*& out = c_api::deref(name, "index", index);
    out = c_api::open(name, own, path);
  });
}

nearwise_status nearwise_index_save(const nearwise_index* index, const char* path) {
  constexpr const char* name = "nearwise_index_save";
  return c_api::call([&] {
    const nearwise_index& own = c_api::deref(name, "index", index);
    c_api::deref(name, "path", path);
    std::visit([path](const auto& each) { save(each, path); }, own.index);
  });
}

void nearwise_index_destroy(nearwise_index* index) { delete index; }

nearwise_status nearwise_index_add(nearwise_index* index, const nearwise_context* context,
                                   const nearwise_rows* rows, const int64_t* ids,
                                   nearwise_on_duplicate on_duplicate, size_t* added) {
  constexpr const char* name = "nearwise_index_add";
  return c_api::call([&] {
    nearwise_index& own = c_api::deref(name, "index", index);
    const nearwise::Context& on = c_api::deref(name, "context", context).context;
    const nearwise::RowsView vectors = c_api::rows_of(name, "rows", rows);
    const nearwise::OnDuplicate choice = c_api::on_duplicate_of(name, on_duplicate);
    const std::size_t count = std::visit(
        [&](auto& each) { return each.add(on, vectors, c_api::ids_of(ids, vectors.rows()), choice); },
        own.index);
    if (added != nullptr) *added = count;
  });
}

nearwise_status nearwise_index_remove(nearwise_index* index, const nearwise_context* context,
                                      const int64_t* ids, size_t count, size_t* removed) {
  constexpr const char* name = "nearwise_index_remove";
  return c_api::call([&] {
    nearwise_index& own = c_api::deref(name, "index", index);
    const nearwise::Context& on = c_api::deref(name, "context", context).context;
    if (count != 0) c_api::deref(name, "ids", ids);
    const std::size_t found =
        std::visit([&](auto& each) { return each.remove(on, c_api::ids_of(ids, count)); }, own.index);
    if (removed != nullptr) *removed = found;
  });
}

nearwise_status nearwise_index_search(const nearwise_index* index, const nearwise_context* context,
                                      const nearwise_rows* queries, size_t k,
                                      const nearwise_search_options* options, int64_t* ids,
                                      float* distances) {
  constexpr const char* name = "nearwise_index_search";
  return c_api::call([&] {
    const nearwise_index& own = c_api::deref(name, "index", index);
    const nearwise::Context& on = c_api::deref(name, "context", context).context;
    const nearwise::RowsView rows = c_api::rows_of(name, "queries", queries);
    const nearwise_search_options given = c_api::options_of(name, options);
    c_api::deref(name, "ids", ids);
    const nearwise::Neighbors found = std::visit(
        [&](const auto& each) { return c_api::search_in(name, each, on, rows, k, given); }, own.index);
    c_api::write_neighbors(found, ids, distances);
  });
}

nearwise_status nearwise_index_describe(const nearwise_index* index, nearwise_index_info* info) {
  constexpr const char* name = "nearwise_index_describe";
  return c_api::call([&] {
    const nearwise_index& own = c_api::deref(name, "index", index);
    c_api::check_size(name, c_api::deref(name, "info", info).size, sizeof(nearwise_index_info));
    c_api::write_result(std::visit([](const auto& each) { return c_api::info_of(each); }, own.index), info);
  });
}
