// Fuzz targets: the input is the file of an object, with right checksums. Loaded, the object is used for a
// moment. Either an Error, or an object that works with whatever numbers it has.
//
// One program for all kinds: its name chooses the kind (fuzz_index_pq, fuzz_graph, ...; CMakeLists.txt makes
// the links).
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "memory_file.h"
#include "mutate_container.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;
namespace fs = std::filesystem;

const Context& context() {
  static const Context made = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{256} << 20});
  return made;
}

// Vectors of any dimension that a small file can have; larger ones are only loaded.
constexpr std::size_t max_dim = 4096;

std::vector<float> some_vectors(std::size_t count, std::size_t dim) {
  std::vector<float> values(count * dim);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return values;
}

void use_index(const fs::path& path) {
  Ivf index = load_ivf(context(), path);
  if (index.dim() > max_dim) return;
  const std::vector<float> values = some_vectors(20, index.dim());
  const MatrixView<const float> queries(values.data(), 20, index.dim());
  index.search(context(), queries, 3);
  index.search(context(), queries.slice(0, 1), 5, {.probes = index.lists()});
  index.search(context(), queries, 3, {.filter = Filter::deny(std::vector<Id>{1})});
  index.range_search(context(), queries, 2.0F);
  // Only rows of its file can be added to an index whose vectors are in one.
  const bool takes_floats = index.vectors() != VectorStorage::file &&
                            (index.encoding() != "flat" || index.code_bytes() == index.dim() * sizeof(float));
  if (takes_floats) {
    // Ids up to the largest have no successor.
    const std::size_t before = index.size();
    index.add(context(), queries);
    if (index.size() != before + 20) std::abort();
    index.search(context(), queries, 3);
  }
  index.remove(context(), std::vector<Id>{0, 1, 2});
  index.part(context(), 0, index.size() / 2);
}

void use_graph_index(const fs::path& path) {
  GraphIndex index = load_graph_index(context(), path);
  if (index.dim() > max_dim) return;
  const std::vector<float> values = some_vectors(5, index.dim());
  const MatrixView<const float> queries(values.data(), 5, index.dim());
  index.search(context(), queries, 3, {.beam = 10});
  index.search(context(), queries, 3, {.beam = 10, .filter = Filter::deny(std::vector<Id>{1})});
  index.range_search(context(), queries, 2.0F, {.beam = 10});
  for (const Id id : index.ids())
    if (!index.contains(id)) std::abort();
  index.remove(context(), std::vector<Id>{0, 1, 2});
  if (index.element_type() == ElementType::f32) {
    // Ids up to the largest have no successor.
    const std::size_t before = index.size();
    index.add(context(), queries);
    if (index.size() != before + 5) std::abort();
  }
  index.search(context(), queries, 3);
  index.compact(context());
  index.search(context(), queries, 3, {.beam = 10});
}

void use_graph(const fs::path& path) {
  const KnnGraph graph = load_knn_graph(path);
  graph.validate();
  connected_components(graph);
  near_duplicates(graph, 0.5F);
  mutual_neighbors(graph);
  smoothest_path(graph, 0, static_cast<Id>(graph.rows()) - 1);
}

void use_product(const fs::path& path) {
  const ProductQuantizer quantizer = load_product_quantizer(path);
  if (quantizer.dim() > max_dim) return;
  const std::vector<float> values = some_vectors(4, quantizer.dim());
  const MatrixView<const float> rows(values.data(), 4, quantizer.dim());
  quantizer.decode(context(), quantizer.encode(context(), rows));
  quantizer.tables(context(), rows);
}

void use_optimized(const fs::path& path) {
  const OptimizedProductQuantizer quantizer = load_optimized_product_quantizer(path);
  if (quantizer.rotation.dim() > max_dim) return;
  const std::vector<float> values = some_vectors(4, quantizer.rotation.dim());
  const MatrixView<const float> rows(values.data(), 4, quantizer.rotation.dim());
  quantizer.decode(context(), quantizer.encode(context(), rows));
  quantizer.tables(context(), rows);
}

void use_additive(const fs::path& path) {
  const AdditiveQuantizer quantizer = load_additive_quantizer(path);
  if (quantizer.dim() > max_dim) return;
  const std::vector<float> values = some_vectors(4, quantizer.dim());
  const MatrixView<const float> rows(values.data(), 4, quantizer.dim());
  const Matrix<std::uint8_t> codes = quantizer.encode(context(), rows);
  quantizer.decode(context(), codes);
  quantizer.search(context(), rows, codes, 2);
}

void use_neighbors(const fs::path& path) {
  const SavedNeighbors saved = load_neighbors(path);
  for (std::size_t i = 0; i < saved.neighbors.ids.rows() * saved.neighbors.ids.cols(); ++i)
    if (saved.neighbors.ids.data()[i] < no_id) std::abort();
}

void use_names(const fs::path& path) {
  const SavedNames saved = load_names(path);
  if (saved.offsets.empty() || saved.offsets.back() != saved.text.size()) std::abort();
}

void use_pairs(const fs::path& path) {
  const SavedPairs saved = load_pairs(path);
  const DedupOptions options = {.metric = saved.metric};
  if (saved.pairs.offsets.size() > 1) dedup_pairs(context(), saved.pairs, options);
}

void use_deduplication(const fs::path& path) {
  const Deduplication found = load_deduplication(path).deduplication;
  for (std::size_t row = 0; row < found.groups.size(); ++row)
    if (found.removed_by[static_cast<std::size_t>(found.groups[row])] != no_id) std::abort();
}

const std::map<std::string, std::function<void(const fs::path&)>> kinds = {
    {"fuzz_index_flat", use_index},
    {"fuzz_index_pq", use_index},
    {"fuzz_index_lsq", use_index},
    {"fuzz_graph_index", use_graph_index},
    {"fuzz_graph", use_graph},
    {"fuzz_product_quantizer", use_product},
    {"fuzz_optimized_product_quantizer", use_optimized},
    {"fuzz_additive_quantizer", use_additive},
    {"fuzz_neighbors", use_neighbors},
    {"fuzz_names", use_names},
    {"fuzz_pairs", use_pairs},
    {"fuzz_deduplication", use_deduplication},
};
const std::function<void(const fs::path&)>* use = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  const auto found = kinds.find(fs::path((*arguments)[0]).filename());
  if (found == kinds.end()) {
    std::fprintf(stderr, "this program is called by the name of a kind of file, as fuzz_graph\n");
    std::exit(2);
  }
  use = &found->second;
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_container(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFile file;
  std::vector<std::uint8_t> bytes(data, data + size);
  testing_io::reseal(std::as_writable_bytes(std::span(bytes)));
  file.set(bytes.data(), bytes.size());
  for (const auto& call :
       {*use, std::function<void(const fs::path&)>([](const fs::path& path) { verify(path); })}) {
    try {
      call(file.path());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) std::abort();
    }
  }
  return 0;
}
