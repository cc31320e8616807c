// Beam search in a graph: batches of queries are encoded on the host and traverse the graph on the device;
// what they find is evaluated by the vectors.
#include <algorithm>
#include <memory>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/graph/device_graph.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/pair_evaluator.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/search_graph.h"
#include "backend/cuda/warp/query_codes.cuh"
#include "core/distance.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t min_pairs = 16;
constexpr std::size_t squares_each = 2;  // of bytes, and of 4-bit codes

// An evaluated row; ordered by key, then row.
struct Evaluated {
  float key;
  std::uint32_t row;
  friend bool operator<(const Evaluated& left, const Evaluated& right) {
    return left.key < right.key || (left.key == right.key && left.row < right.row);
  }
};

// Sizes of one search, and the memory that they need.
struct SearchShape {
  SearchShape(const SearchGraphArgs& args, const SearchGraphView& graph, const GraphArrays& arrays,
              std::size_t thread_count)
      : queries(args.queries.rows()),
        evaluated(args.evaluated),
        threads(std::min(thread_count, queries)),
        code_dim(graph.codec->code_dim()),
        byte_codes(graph.codec->row_bytes()),
        nibble_codes(graph.codec->has_nibbles() ? graph.codec->nibble_query_size() : 0),
        query_codes(query_size<ByteCodes>(arrays.code_bytes) + query_size<NibbleCodes>(arrays.nibble_bytes)),
        absent(!args.absent.empty()),
        starved(!args.is_starved.empty()),
        words(args.allowed.any() ? (args.allowed.first % 64 + graph.codes.rows() + 63) / 64 : 0) {
    const RowsView& vectors = graph.vectors;
    // Vectors that are their own codes are on the device.
    const bool are_codes = vectors.data() == reinterpret_cast<const std::byte*>(graph.codes.data());
    pairs = {.dim = vectors.dim(),
             .query_bytes = args.queries.dim() * element_size(args.queries.type()),
             .row_bytes = are_codes ? 0 : vectors.dim() * element_size(vectors.type())};
    if (are_codes)
      vectors_on_device = RowsView(arrays.codes, vectors.type(), vectors.rows(), vectors.dim(),
                                   arrays.code_bytes, {DeviceKind::cuda, 0});
    // Which arrays a search needs depends on whether there is a filter, not on its bits.
    static constexpr std::uint64_t any_word = 0;
    const GraphSearchTask task = {.graph = arrays,
                                  .beam = static_cast<std::uint32_t>(args.beam),
                                  .evaluated = static_cast<std::uint32_t>(args.evaluated),
                                  .allowed = args.allowed.any() ? &any_word : nullptr};
    memory = graph_search_memory(task);
  }

  std::size_t queries, evaluated, threads, code_dim, byte_codes, nibble_codes;
  std::size_t query_codes;  // elements of a query on the device
  bool absent, starved;
  std::size_t words;  // of the filter
  PairEvaluator::Shape pairs = {};
  RowsView vectors_on_device = {};
  GraphSearchMemory memory = {};
};

using Capacity = PairEvaluator::Capacity;

// What a batch of queries needs.
class GraphSearch {
 public:
  GraphSearch(const CudaStream& stream, const SearchGraphArgs& args, const SearchGraphView& graph,
              const GraphArrays& arrays, const SearchShape& shape, const Capacity& capacity)
      : stream_(stream),
        args_(args),
        graph_(graph),
        shape_(shape),
        capacity_(capacity),
        evaluator_(stream, args.queries, graph.codec->metric, shape.pairs, capacity, search_graph_name),
        codes_(stream, capacity.queries * shape.query_codes, search_graph_name),
        squares_(stream, capacity.queries * squares_each, search_graph_name),
        absent_(stream, shape.absent ? capacity.queries : 0, search_graph_name),
        allowed_(stream, shape.words, search_graph_name),
        rows_(stream, entries(), search_graph_name),
        starved_(stream, shape.starved ? capacity.queries : 0, search_graph_name),
        beams_(stream, capacity.queries * shape.memory.beams, search_graph_name),
        found_(stream, capacity.queries * shape.memory.found, search_graph_name),
        ranked_(stream, capacity.queries * shape.memory.ranked, search_graph_name),
        slots_(stream, capacity.queries * shape.memory.slots, search_graph_name),
        keys_(stream, entries(), search_graph_name),
        host_codes_(stream.budget(), codes_.size()),
        host_squares_(stream.budget(), squares_.size()),
        host_rows_(stream.budget(), entries()),
        host_keys_(stream.budget(), entries()),
        pair_slots_(stream.budget(), entries()),
        pair_rows_(stream.budget(), entries()),
        answers_(stream.budget(), entries()),
        vectors_(stream.budget(), shape.threads * shape.code_dim),
        byte_codes_(stream.budget(), shape.threads * shape.byte_codes),
        nibble_codes_(stream.budget(), shape.threads * shape.nibble_codes) {
    task_ = {.graph = arrays,
             .k = static_cast<std::uint32_t>(args.k),
             .beam = static_cast<std::uint32_t>(args.beam),
             .evaluated = static_cast<std::uint32_t>(args.evaluated),
             .query_codes = codes_.data(),
             .query_squares = squares_.data(),
             .absent = absent_.data(),
             .allowed = allowed_.data(),
             .first_bit = static_cast<std::uint32_t>(args.allowed.first % 64),
             .rows = rows_.data(),
             .is_starved = starved_.data(),
             .beams = beams_.data(),
             .found = found_.data(),
             .ranked = ranked_.data(),
             .slots = slots_.data()};
    if (shape.words != 0)
      copy_to_device(stream, std::span(args.allowed.words + args.allowed.first / 64, shape.words),
                     allowed_.data(), search_graph_name);
  }
  ~GraphSearch() { stream_.settle(); }
  GraphSearch(const GraphSearch&) = delete;
  GraphSearch& operator=(const GraphSearch&) = delete;

  static std::uint64_t bytes(const SearchShape& shape, const Capacity& capacity) {
    const std::size_t queries = capacity.queries;
    const std::size_t entries = queries * shape.evaluated;
    return PairEvaluator::bytes(shape.pairs, capacity) +
           device_bytes(queries * shape.query_codes, sizeof(std::uint16_t)) +
           device_bytes(queries * squares_each, sizeof(std::uint32_t)) +
           device_bytes(shape.absent ? queries : 0, sizeof(std::uint32_t)) +
           device_bytes(shape.words, sizeof(std::uint64_t)) + device_bytes(shape.starved ? queries : 0, 1) +
           device_bytes(queries * shape.memory.beams, sizeof(std::int64_t)) +
           device_bytes(queries * shape.memory.found, sizeof(std::int64_t)) +
           device_bytes(queries * shape.memory.ranked, sizeof(std::int64_t)) +
           device_bytes(queries * shape.memory.slots, sizeof(std::uint32_t)) +
           2 * device_bytes(entries, sizeof(std::uint32_t)) +
           buffer_bytes(queries * shape.query_codes, sizeof(std::uint16_t)) +
           buffer_bytes(queries * squares_each, sizeof(std::uint32_t)) +
           3 * buffer_bytes(entries, sizeof(std::uint32_t)) + buffer_bytes(entries, sizeof(std::uint64_t)) +
           buffer_bytes(entries, sizeof(Evaluated)) +
           buffer_bytes(shape.threads * shape.code_dim, sizeof(double)) +
           buffer_bytes(shape.threads * shape.byte_codes, sizeof(std::int16_t)) +
           buffer_bytes(shape.threads * shape.nibble_codes, sizeof(std::int16_t));
  }

  std::size_t batch() const { return capacity_.queries; }

  void run(std::size_t first, std::size_t count) {
    encode(first, count);
    if (shape_.absent)
      copy_to_device(stream_, args_.absent.subspan(first, count), absent_.data(), search_graph_name);
    task_.queries = static_cast<std::uint32_t>(count);
    launch_search_graph(stream_.handle(), task_);
    const std::size_t all = count * shape_.evaluated;
    HostResults copies(stream_);
    copies.add(rows_.data(), host_rows_.span().first(all), search_graph_name);
    if (shape_.starved)
      copies.add(starved_.data(), args_.is_starved.subspan(first, count), search_graph_name);
    evaluator_.load_queries(first, count);
    copies.finish(search_graph_name);
    evaluate(all);
    for_each_query(count, [&](std::size_t query, std::size_t) { write(first + query, query); });
  }

 private:
  std::size_t entries() const { return capacity_.queries * shape_.evaluated; }

  // visit(query, thread)
  template <typename Visit>
  void for_each_query(std::size_t count, const Visit& visit) const {
    stream_.context.threads->for_each(shape_.threads, [&](std::size_t thread) {
      for (std::size_t query = thread; query < count; query += shape_.threads) visit(query, thread);
    });
  }

  void encode(std::size_t first, std::size_t count) {
    const std::size_t all = count * shape_.query_codes;
    const std::size_t nibbles = query_size<ByteCodes>(task_.graph.code_bytes);
    for_each_query(count, [&](std::size_t query, std::size_t thread) {
      std::int16_t* const bytes = byte_codes_.data() + thread * shape_.byte_codes;
      std::int16_t* const fours = nibble_codes_.data() + thread * shape_.nibble_codes;
      graph_.codec->encode_query(args_.queries, first + query, vectors_.data() + thread * shape_.code_dim,
                                 bytes, fours);
      std::uint16_t* const out = host_codes_.data() + query * shape_.query_codes;
      std::uint32_t* const squares = host_squares_.data() + query * squares_each;
      std::fill_n(out, shape_.query_codes, std::uint16_t{0});
      squares[0] = place_codes<ByteCodes>({bytes, shape_.code_dim}, byte_place, out);
      squares[1] = task_.graph.nibble_bytes == 0
                       ? 0
                       : place_codes<NibbleCodes>({fours, shape_.code_dim}, nibble_place, out + nibbles);
    });
    copy_to_device(stream_, std::span<const std::uint16_t>(host_codes_.data(), all), codes_.data(),
                   search_graph_name);
    copy_to_device(stream_, std::span<const std::uint32_t>(host_squares_.data(), count * squares_each),
                   squares_.data(), search_graph_name);
  }

  // Returns the sum of the squares.
  template <class Codes, typename Place>
  static std::uint32_t place_codes(std::span<const std::int16_t> codes, const Place& place,
                                   std::uint16_t* out) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::int32_t code = codes[i];
      sum += static_cast<std::uint32_t>(code * code);
      out[place(i)] = static_cast<std::uint16_t>(code + static_cast<std::int32_t>(Codes::shift));
    }
    return sum;
  }

  // Keys of the rows that were found, at their places.
  void evaluate(std::size_t all) {
    std::size_t pairs = 0;
    for (std::size_t slot = 0; slot < all; ++slot)
      if (host_rows_[slot] != no_graph_row) {
        pair_rows_[pairs] = host_rows_[slot];
        pair_slots_[pairs++] = slot;
      }
    // Those without a row are copied with the others.
    check(cudaMemsetAsync(keys_.data(), 0xFF, all * sizeof(float), stream_.handle()), search_graph_name);
    const std::span<const std::uint64_t> slots(pair_slots_.data(), pairs);
    if (shape_.vectors_on_device.rows() != 0) {
      evaluator_.evaluate(shape_.vectors_on_device, slots, {pair_rows_.data(), pairs}, shape_.evaluated,
                          keys_.data());
    } else {
      const std::size_t bytes = shape_.pairs.row_bytes;
      evaluator_.evaluate(graph_.vectors.type(), slots, shape_.evaluated, keys_.data(),
                          [&](std::size_t pair, std::byte* out) {
                            std::copy_n(graph_.vectors.row(pair_rows_[pair]), bytes, out);
                          });
    }
    fetch(stream_, keys_.data(), host_keys_.span().first(all), search_graph_name);
  }

  // The best of the rows that query `place` of the batch has found.
  void write(std::size_t query, std::size_t place) {
    const std::size_t first = place * shape_.evaluated;
    Evaluated* const all = answers_.data() + first;
    std::size_t count = 0;
    for (; count < shape_.evaluated && host_rows_[first + count] != no_graph_row; ++count)
      all[count] = {host_keys_[first + count], host_rows_[first + count]};
    const std::size_t best = std::min(count, args_.k);
    std::partial_sort(all, all + best, all + count);
    const Metric metric = graph_.codec->metric;
    for (std::size_t i = 0; i < args_.k; ++i) {
      args_.ids(query, i) = i < best ? static_cast<Id>(all[i].row) : no_id;
      args_.distances(query, i) = i < best ? distance_of_key(metric, all[i].key) : padding_distance(metric);
    }
  }

  const CudaStream& stream_;
  const SearchGraphArgs& args_;
  const SearchGraphView& graph_;
  const SearchShape& shape_;
  const Capacity capacity_;
  PairEvaluator evaluator_;
  DeviceBuffer<std::uint16_t> codes_;
  DeviceBuffer<std::uint32_t> squares_;
  DeviceBuffer<std::uint32_t> absent_;
  DeviceBuffer<std::uint64_t> allowed_;
  DeviceBuffer<std::uint32_t> rows_;  // [queries, evaluated]
  DeviceBuffer<std::uint8_t> starved_;
  DeviceBuffer<std::int64_t> beams_;
  DeviceBuffer<std::int64_t> found_;
  DeviceBuffer<std::int64_t> ranked_;
  DeviceBuffer<std::uint32_t> slots_;
  DeviceBuffer<float> keys_;  // [queries, evaluated]
  Buffer<std::uint16_t> host_codes_;
  Buffer<std::uint32_t> host_squares_;
  Buffer<std::uint32_t> host_rows_;
  Buffer<float> host_keys_;
  Buffer<std::uint64_t> pair_slots_;
  Buffer<std::uint32_t> pair_rows_;
  Buffer<Evaluated> answers_;
  Buffer<double> vectors_;  // of each thread
  Buffer<std::int16_t> byte_codes_;
  Buffer<std::int16_t> nibble_codes_;
  GraphSearchTask task_;
};

Capacity choose_capacity(const SearchShape& shape, std::uint64_t bytes) {
  Capacity capacity = {std::min(shape.queries, tuning::max_graph_queries), 0};
  const auto pairs_of = [&] {
    return std::min(tuning::max_graph_pairs, std::max(min_pairs, capacity.queries * shape.evaluated));
  };
  for (capacity.pairs = pairs_of(); capacity.queries > 1 && GraphSearch::bytes(shape, capacity) > bytes;
       capacity.pairs = pairs_of())
    capacity.queries = divide_up<std::size_t>(capacity.queries, 2);
  while (capacity.pairs > min_pairs && GraphSearch::bytes(shape, capacity) > bytes)
    capacity.pairs = std::max(min_pairs, divide_up<std::size_t>(capacity.pairs, 2));
  return capacity;
}

}  // namespace

std::unique_ptr<PreparedGraph> prepare_graph(Stream&, const PrepareGraphArgs& args) {
  return std::make_unique<DeviceGraph>(args);
}

void search_graph(Stream& stream, const SearchGraphArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const std::size_t queries = args.queries.rows();
  if (queries == 0) return;
  const auto& prepared = static_cast<const DeviceGraph&>(args.graph);
  const GraphArrays& arrays = prepared.arrays(cuda);
  const SearchShape shape(args, prepared.view(), arrays,
                          static_cast<std::size_t>(cuda.context.threads->count()));
  const auto search =
      with_working_memory(cuda, GraphSearch::bytes(shape, {1, min_pairs}), tuning::target_working_bytes, 0,
                          [&](std::uint64_t bytes) {
                            return std::make_unique<GraphSearch>(cuda, args, prepared.view(), arrays, shape,
                                                                 choose_capacity(shape, bytes));
                          });
  for (std::size_t first = 0; first < queries; first += search->batch()) {
    cuda.context.cancel.check();
    const std::size_t count = std::min(search->batch(), queries - first);
    search->run(first, count);
    if (args.progress != nullptr) args.progress->add(count);
  }
}

}  // namespace nearwise::gpu
