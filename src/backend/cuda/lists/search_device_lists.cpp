// Search in lists that the device keeps. Queries are copied to it, and answers from it: the lists that they
// probe, their scores and the candidates stay there. The host decides by a few numbers of a query whether the
// scores certify its candidates.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/codes/part_tables.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/lists/device_lists.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/list_search.h"
#include "core/checked.h"
#include "core/distance.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t most_scores = std::size_t{1} << 31;  // of a tile of queries; also pairs of other steps

// Sizes of a search, for a tile of queries.
struct DeviceSearchShape {
  DeviceSearchShape(const DeviceLists& lists, const PreparedListSearchArgs& args)
      : rerank(args.rerank),
        dim(lists.dim),
        query_bytes(lists.dim * element_size(args.queries.type())),
        centroids(lists.lists()),
        probes(args.probes),
        columns(std::max<std::size_t>(1, lists.most_columns(args.probes))),
        candidates(args.candidates),
        taken(std::min(args.k, args.candidates)),
        length(TopKCollector::list_length(args.candidates, Encoding::f32)),
        scanned(std::min(columns, length)),
        width(lists.packed_width),
        table_entries(lists.scans_codes ? lists.parts << lists.bits : 0),
        decoded(lists.is_flat ? 0 : lists.dim) {}

  bool fits(std::size_t queries) const {
    return queries * std::max({columns, centroids, length, table_entries}) < most_scores &&
           columns <= max_selection_columns;
  }

  bool rerank;
  std::size_t dim, query_bytes, centroids, probes, columns, candidates, taken, length;
  std::size_t scanned;  // entries of a query's list of scores
  std::size_t width, table_entries, decoded;
};

// Scratch memory of selections, one after the other.
std::size_t selection_bytes(const DeviceSearchShape& shape, std::size_t queries) {
  return std::max({RowSelection(queries, shape.centroids, shape.probes).workspace_bytes(),
                   RowSelection(queries, shape.columns, shape.scanned).workspace_bytes(),
                   RowSelection(queries, shape.length, shape.candidates).workspace_bytes(),
                   RowSelection(queries, shape.candidates, shape.taken).workspace_bytes()});
}

class DeviceListSearch {
 public:
  DeviceListSearch(const CudaStream& stream, const PreparedListSearchArgs& args, const DeviceLists& lists,
                   std::span<const double> squares, const DeviceSearchShape& shape, std::size_t queries)
      : stream_(stream),
        args_(args),
        lists_(lists),
        bound_(lists.metric, products_of(Encoding::f32), shape.dim),
        shape_(shape),
        queries_(queries),
        raw_(stream, queries * shape.query_bytes, list_search_name),
        rows_(stream, queries * shape.dim, list_search_name),
        packed_(stream, queries * shape.width, list_search_name),
        lengths_(stream, shape.width == 0 ? 0 : queries, list_search_name),
        summary_(stream, 1, list_search_name),
        tables_(stream, queries * shape.table_entries, list_search_name),
        offsets_(stream, shape.table_entries == 0 ? 0 : queries * shape.probes, list_search_name),
        values_(stream, queries * std::max(shape.centroids, shape.columns), list_search_name),
        probe_keys_(stream, queries * shape.probes, list_search_name),
        probes_(stream, queries * shape.probes, list_search_name),
        pairs_(stream, queries * shape.probes, list_search_name),
        scores_(stream, queries * shape.length, list_search_name),
        columns_(stream, queries * shape.length, list_search_name),
        ids_(stream, queries * shape.length, list_search_name),
        found_(stream, queries * shape.length, list_search_name),
        found_lists_(stream, queries * shape.length, list_search_name),
        decoded_(stream, queries * shape.length * shape.decoded, list_search_name),
        keys_(stream, queries * shape.length, list_search_name),
        best_keys_(stream, queries * shape.candidates, list_search_name),
        best_ids_(stream, queries * shape.candidates, list_search_name),
        best_rows_(stream, shape.rerank ? queries * shape.candidates : 0, list_search_name),
        exact_keys_(stream, shape.rerank ? queries * shape.candidates : 0, list_search_name),
        answer_keys_(stream, shape.rerank ? queries * shape.taken : 0, list_search_name),
        answer_ids_(stream, shape.rerank ? queries * shape.taken : 0, list_search_name),
        last_scores_(stream, queries, list_search_name),
        last_keys_(stream, queries, list_search_name),
        workspace_(stream, selection_bytes(shape, queries), list_search_name),
        host_keys_(stream.budget(), queries * shape.taken),
        host_ids_(stream.budget(), queries * shape.taken),
        host_last_scores_(stream.budget(), queries),
        host_last_keys_(stream.budget(), queries),
        host_lengths_(stream.budget(), shape.width == 0 ? 0 : queries) {
    if (lists.scans_codes) code_bound_.emplace(lists.bound->of(squares));
  }
  ~DeviceListSearch() { stream_.settle(); }
  DeviceListSearch(const DeviceListSearch&) = delete;
  DeviceListSearch& operator=(const DeviceListSearch&) = delete;

  // Of the device and of the host.
  static std::uint64_t bytes(const DeviceSearchShape& shape, std::size_t queries) {
    const std::size_t listed = queries * shape.length;
    const std::size_t best = queries * shape.candidates;
    const std::size_t reranked = shape.rerank ? best : 0;
    const std::size_t answers = queries * shape.taken;
    const std::size_t packed = shape.width == 0 ? 0 : queries;
    const auto floats = [](std::size_t count) { return device_bytes(count, sizeof(float)); };
    const auto wide = [](std::size_t count) { return device_bytes(count, sizeof(Id)); };
    return device_bytes(queries * shape.query_bytes, 1) + floats(queries * shape.dim) +
           floats(queries * shape.width) + device_bytes(packed, sizeof(Lengths)) +
           device_bytes(1, sizeof(PackedSummary)) + floats(queries * shape.table_entries) +
           floats(queries * shape.probes) + floats(queries * std::max(shape.centroids, shape.columns)) +
           floats(queries * shape.probes) + wide(queries * shape.probes) +
           device_bytes(queries * shape.probes, sizeof(ScanPair)) + 4 * floats(listed) + 2 * wide(listed) +
           floats(listed * shape.decoded) + floats(best) + wide(best) + 2 * floats(reranked) +
           floats(answers) + wide(answers) + 2 * floats(queries) +
           device_bytes(selection_bytes(shape, queries), 1) + buffer_bytes(answers, sizeof(float)) +
           buffer_bytes(answers, sizeof(Id)) + 2 * buffer_bytes(queries, sizeof(float)) +
           buffer_bytes(packed, sizeof(Lengths));
  }

  std::size_t tile_queries() const { return queries_; }

  // Appends the queries that are not certified.
  void run(std::size_t first, std::size_t count, std::vector<std::uint32_t>& uncertified) {
    stream_.context.cancel.check();
    const RowsView queries = args_.queries.slice(first, count);
    load(queries);
    choose_lists(count);
    scan(count);
    locate(count);
    evaluate(count);
    if (shape_.rerank) rerank(count);
    fetch_answers(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (is_certified(first + i, i))
        write(first + i, i);
      else
        uncertified.push_back(static_cast<std::uint32_t>(first + i));
    }
  }

 private:
  void fill(void* memory, int byte, std::size_t bytes) {
    if (bytes != 0) check(cudaMemsetAsync(memory, byte, bytes, stream_.handle()), list_search_name);
  }

  void load(const RowsView& queries) {
    const std::size_t count = queries.rows();
    copy_rows_to_device(stream_, queries, raw_.data());
    launch_widen_rows(stream_.handle(), queries.type(), raw_.data(), count, shape_.dim, rows_.data());
    if (lists_.scans_codes) {
      launch_part_tables(stream_.handle(), TableEntry::negated_product,
                         {.queries = rows_.data(),
                          .count = count,
                          .centre = lists_.centre.data(),
                          .books = lists_.books.view(),
                          .tables = tables_.data()});
      return;
    }
    fill(summary_.data(), 0, sizeof(PackedSummary));
    fill(&summary_.data()->first_bad_row, 0xFF, sizeof(PackedSummary::first_bad_row));
    launch_pack_rows(stream_.handle(), queries.type(), Encoding::f32,
                     {.rows = raw_.data(),
                      .stride_bytes = shape_.query_bytes,
                      .count = count,
                      .dim = static_cast<std::uint32_t>(shape_.dim),
                      .width = static_cast<std::uint32_t>(shape_.width),
                      .centre = lists_.centre.data(),
                      .normalise = lists_.metric == Metric::cosine,
                      .bias = is_euclidean(lists_.metric) ? Bias::minus_one : Bias::none,
                      .out = reinterpret_cast<std::byte*>(packed_.data()),
                      .lengths = lengths_.data(),
                      .summary = summary_.data()});
  }

  void select(Ties ties, SelectionTask task, std::size_t most_rows) {
    RowSelection(most_rows, task.cols, task.k).run(stream_.handle(), ties, task, workspace_.data());
  }

  // By the reported distances to all centroids, the lower list first among equal ones, as knn.
  void choose_lists(std::size_t count) {
    launch_evaluate_rows(stream_.handle(), ElementType::f32,
                         {.queries = rows_.data(),
                          .rows = reinterpret_cast<const std::byte*>(lists_.centroids.data()),
                          .stride_bytes = shape_.dim * sizeof(float),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = lists_.metric,
                          .pairs = count * shape_.centroids,
                          .columns = shape_.centroids,
                          .keys = values_.data()});
    select(Ties::positions,
           {.values = values_.data(),
            .value_stride = shape_.centroids,
            .rows = count,
            .cols = static_cast<std::uint32_t>(shape_.centroids),
            .k = static_cast<std::uint32_t>(shape_.probes),
            .best = probe_keys_.data(),
            .ids = probes_.data(),
            .best_stride = shape_.probes},
           queries_);
    launch_probe_pairs(stream_.handle(), {.probes = probes_.data(),
                                          .queries = count,
                                          .count = static_cast<std::uint32_t>(shape_.probes),
                                          .first_rows = lists_.first_rows.data(),
                                          .sizes = lists_.sizes.data(),
                                          .lists = static_cast<std::uint32_t>(shape_.centroids),
                                          .pairs = pairs_.data()});
  }

  void scan(std::size_t count) {
    // Columns past a query's last row get 3.4e38, which sorts after all valid scores.
    fill(values_.data(), 0x7F, count * shape_.columns * sizeof(float));
    const ScanTask task = {.pairs = pairs_.data(),
                           .count = count * shape_.probes,
                           .max_rows = lists_.longest,
                           .scores = values_.data(),
                           .columns = shape_.columns};
    if (lists_.scans_codes) {
      launch_pair_offsets(stream_.handle(), task,
                          {.queries = rows_.data(),
                           .centroids = lists_.centroids.data(),
                           .centre = lists_.centre.data(),
                           .dim = static_cast<std::uint32_t>(shape_.dim),
                           .offsets = offsets_.data()});
      launch_scan_codes(stream_.handle(), task,
                        {.codes = lists_.interleaved.data(),
                         .half_norms = lists_.half_norms.data(),
                         .tables = tables_.data(),
                         .offsets = offsets_.data(),
                         .parts = static_cast<std::uint32_t>(lists_.parts),
                         .words_per_code = static_cast<std::uint32_t>(words_of_code(lists_.code_bytes)),
                         .bits = lists_.bits,
                         .pairs_per_block = static_cast<std::uint32_t>(std::clamp<std::size_t>(
                             task.count / tuning::target_scan_blocks, 1, tuning::max_pairs_per_block))});
    } else {
      launch_scan_packed(stream_.handle(), task,
                         {.queries = packed_.data(),
                          .rows = lists_.packed.data(),
                          .width = static_cast<std::uint32_t>(shape_.width)});
    }
    if (shape_.scanned < shape_.length) {
      static_assert(no_id == -1);
      fill(columns_.data(), 0xFF, count * shape_.length * sizeof(Id));
      fill(scores_.data(), 0xFF, count * shape_.length * sizeof(float));
    }
    select(Ties::positions,
           {.values = values_.data(),
            .value_stride = shape_.columns,
            .rows = count,
            .cols = static_cast<std::uint32_t>(shape_.columns),
            .k = static_cast<std::uint32_t>(shape_.scanned),
            .best = scores_.data(),
            .ids = columns_.data(),
            .best_stride = shape_.length},
           queries_);
  }

  void locate(std::size_t count) {
    launch_locate_rows(stream_.handle(), {.scores = scores_.data(),
                                          .columns = columns_.data(),
                                          .queries = count,
                                          .length = static_cast<std::uint32_t>(shape_.length),
                                          .pairs = pairs_.data(),
                                          .probes = static_cast<std::uint32_t>(shape_.probes),
                                          .row_ids = lists_.ids.data(),
                                          .ids = ids_.data(),
                                          .rows = found_.data(),
                                          .lists = lists_.is_flat ? nullptr : found_lists_.data(),
                                          .last_scores = last_scores_.data()});
  }

  EvaluateLocatedTask evaluation(std::size_t count, std::size_t columns) const {
    return {.queries = rows_.data(),
            .dim = static_cast<std::uint32_t>(shape_.dim),
            .metric = lists_.metric,
            .pairs = count * columns,
            .columns = columns};
  }

  // The best candidates by their reported distances to decoded vectors, the lower id first among equal ones.
  void evaluate(std::size_t count) {
    EvaluateLocatedTask task = evaluation(count, shape_.length);
    task.row_indices = found_.data();
    task.keys = keys_.data();
    if (lists_.is_flat) {
      task.rows = lists_.raw.data();
      task.stride_bytes = lists_.code_bytes;
    } else {
      launch_decode_located(stream_.handle(),
                            {.codes = lists_.interleaved.data(),
                             .words_per_code = static_cast<std::uint32_t>(words_of_code(lists_.code_bytes)),
                             .centroids = lists_.centroids.data(),
                             .books = lists_.books.view(),
                             .rows = found_.data(),
                             .lists = found_lists_.data(),
                             .count = count * shape_.length,
                             .out = decoded_.data()});
      task.rows = reinterpret_cast<const std::byte*>(decoded_.data());
      task.stride_bytes = shape_.dim * sizeof(float);
      task.is_dense = true;
    }
    launch_evaluate_located(stream_.handle(), lists_.type, task);
    select_best({.values = keys_.data(),
                 .value_stride = shape_.length,
                 .wide_ids = ids_.data(),
                 .id_stride = shape_.length,
                 .rows = count,
                 .cols = static_cast<std::uint32_t>(shape_.length),
                 .k = static_cast<std::uint32_t>(shape_.candidates),
                 .best = best_keys_.data(),
                 .ids = best_ids_.data(),
                 .best_stride = shape_.candidates});
  }

  void select_best(const SelectionTask& task) { select(Ties::wide_ids, task, queries_); }

  void rerank(std::size_t count) {
    launch_find_rows(stream_.handle(), {.wanted = best_ids_.data(),
                                        .keys = best_keys_.data(),
                                        .queries = count,
                                        .count = static_cast<std::uint32_t>(shape_.candidates),
                                        .ids = ids_.data(),
                                        .rows = found_.data(),
                                        .length = static_cast<std::uint32_t>(shape_.length),
                                        .found = best_rows_.data(),
                                        .last_keys = last_keys_.data()});
    EvaluateLocatedTask task = evaluation(count, shape_.candidates);
    task.rows = lists_.vectors.data();
    task.stride_bytes = lists_.vector_bytes;
    task.row_indices = best_rows_.data();
    task.keys = exact_keys_.data();
    launch_evaluate_located(stream_.handle(), lists_.vector_type, task);
    select_best({.values = exact_keys_.data(),
                 .value_stride = shape_.candidates,
                 .wide_ids = best_ids_.data(),
                 .id_stride = shape_.candidates,
                 .rows = count,
                 .cols = static_cast<std::uint32_t>(shape_.candidates),
                 .k = static_cast<std::uint32_t>(shape_.taken),
                 .best = answer_keys_.data(),
                 .ids = answer_ids_.data(),
                 .best_stride = shape_.taken});
  }

  void fetch_answers(std::size_t first, std::size_t count) {
    const std::size_t answers = count * shape_.taken;
    PackedSummary summary = {};
    HostResults copies(stream_);
    copies.add(last_scores_.data(), host_last_scores_.span().first(count), list_search_name);
    if (!lists_.scans_codes) {
      copies.add(summary_.data(), std::span(&summary, 1), list_search_name);
      copies.add(lengths_.data(), host_lengths_.span().first(count), list_search_name);
    }
    if (shape_.rerank) copies.add(last_keys_.data(), host_last_keys_.span().first(count), list_search_name);
    copies.add(shape_.rerank ? answer_keys_.data() : best_keys_.data(), host_keys_.span().first(answers),
               list_search_name);
    copies.add(shape_.rerank ? answer_ids_.data() : best_ids_.data(), host_ids_.span().first(answers),
               list_search_name);
    copies.finish(list_search_name);
    if (lists_.scans_codes) return;
    if (summary.first_bad_row < count) refuse_row(RowsRole::queries, first + summary.first_bad_row);
    for (Lengths& lengths : host_lengths_.span().first(count)) lengths.residual *= norm_margin;
  }

  // Whether no row that was not evaluated can be a candidate: all are in the list of scores, or those that
  // are not have a score above what the last candidate's distance allows.
  bool is_certified(std::size_t query, std::size_t i) const {
    const float score = host_last_scores_[i];
    const float key = shape_.rerank ? host_last_keys_[i] : host_keys_[(i + 1) * shape_.candidates - 1];
    const bool is_whole = score == std::numeric_limits<float>::infinity();
    if (lists_.scans_codes) {
      const CodeBound& bound = *code_bound_;
      return bound.holds_for(query) && (is_whole || score > bound.cutoff(query, bound.limit_from_key(key)));
    }
    const Lengths& lengths = host_lengths_[i];
    return ScoreBound::holds_for(lengths, lists_.longest_row) &&
           (is_whole || score > bound_.cutoff(lengths, lists_.longest_row, bound_.limit_from_key(key)));
  }

  void write(std::size_t query, std::size_t place) {
    const std::span<const float> keys = host_keys_.span().subspan(place * shape_.taken, shape_.taken);
    const std::span<const Id> ids = host_ids_.span().subspan(place * shape_.taken, shape_.taken);
    for (std::size_t i = 0; i < args_.k; ++i) {
      const bool is_found = i < ids.size() && ids[i] != no_id;
      args_.ids(query, i) = is_found ? ids[i] : no_id;
      args_.distances(query, i) =
          is_found ? distance_of_key(lists_.metric, keys[i]) : padding_distance(lists_.metric);
    }
  }

  const CudaStream& stream_;
  const PreparedListSearchArgs& args_;
  const DeviceLists& lists_;
  const ScoreBound bound_;               // of packed rows
  std::optional<CodeBound> code_bound_;  // of codes
  const DeviceSearchShape shape_;
  const std::size_t queries_;
  DeviceBuffer<std::byte> raw_;
  DeviceBuffer<float> rows_;
  DeviceBuffer<float> packed_;  // [queries, width]
  DeviceBuffer<Lengths> lengths_;
  DeviceBuffer<PackedSummary> summary_;
  DeviceBuffer<float> tables_;   // [queries, entries]
  DeviceBuffer<float> offsets_;  // [queries, probes]
  DeviceBuffer<float> values_;   // keys of centroids, then scores [queries, columns]
  DeviceBuffer<float> probe_keys_;
  DeviceBuffer<Id> probes_;
  DeviceBuffer<ScanPair> pairs_;
  DeviceBuffer<float> scores_;  // [queries, length] best first
  DeviceBuffer<Id> columns_;
  DeviceBuffer<Id> ids_;
  DeviceBuffer<std::uint32_t> found_;  // [queries, length] rows
  DeviceBuffer<std::uint32_t> found_lists_;
  DeviceBuffer<float> decoded_;
  DeviceBuffer<float> keys_;
  DeviceBuffer<float> best_keys_;  // [queries, candidates]
  DeviceBuffer<Id> best_ids_;
  DeviceBuffer<std::uint32_t> best_rows_;
  DeviceBuffer<float> exact_keys_;
  DeviceBuffer<float> answer_keys_;  // [queries, taken]
  DeviceBuffer<Id> answer_ids_;
  DeviceBuffer<float> last_scores_;
  DeviceBuffer<float> last_keys_;
  DeviceBuffer<std::byte> workspace_;
  Buffer<float> host_keys_;
  Buffer<Id> host_ids_;
  Buffer<float> host_last_scores_;
  Buffer<float> host_last_keys_;
  Buffer<Lengths> host_lengths_;
};

std::size_t choose_queries(const DeviceSearchShape& shape, std::size_t queries, std::uint64_t bytes) {
  queries = std::min(queries, tuning::max_tile_queries);
  while (queries > 1 && (!shape.fits(queries) || DeviceListSearch::bytes(shape, queries) > bytes))
    queries = divide_up<std::size_t>(queries, 2);
  return queries;
}

std::vector<std::uint32_t> all_of(std::size_t queries) {
  std::vector<std::uint32_t> all(queries);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

}  // namespace

std::vector<std::uint32_t> search_prepared_lists(Stream& stream, const PreparedListSearchArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const auto& lists = static_cast<const DeviceLists&>(args.lists);
  const std::size_t queries = args.queries.rows();
  if (queries == 0) return {};
  const DeviceSearchShape shape(lists, args);
  const std::uint64_t least = DeviceListSearch::bytes(shape, 1);
  const std::uint64_t squares_bytes = lists.scans_codes ? buffer_bytes(queries, sizeof(double)) : 0;
  if (lists.rows == 0 || !shape.fits(1) || least + squares_bytes > cuda.budget().available())
    return all_of(queries);
  const Buffer<double> squares =
      lists.scans_codes ? squared_norms(cuda, args.queries, lists.host_centre) : Buffer<double>();
  std::unique_ptr<DeviceListSearch> search;
  try {
    search = with_working_memory(cuda, least, tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
      return std::make_unique<DeviceListSearch>(cuda, args, lists, squares.span(), shape,
                                                choose_queries(shape, queries, bytes));
    });
  } catch (const Error& error) {
    // list_search does with less.
    if (error.code() != ErrorCode::out_of_memory) throw;
    return all_of(queries);
  }
  std::vector<std::uint32_t> uncertified;
  for (std::size_t first = 0; first < queries; first += search->tile_queries())
    search->run(first, std::min(search->tile_queries(), queries - first), uncertified);
  return uncertified;
}

}  // namespace nearwise::gpu
