// Inverted files in containers (docs/format.md, kind "ivf").
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "core/checked.h"
#include "index/ivf_container.h"
#include "index/ivf_state.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "nearwise/additive_quantizer.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

// What is not an array.
struct Header {
  Metric metric;
  ElementType type;
  std::size_t dim;
  std::size_t parts;  // of product codes; else 0
  unsigned bits;
  std::size_t additive_iterations;  // of additive codes; else 0
  std::size_t probes;
  std::size_t candidates;
  std::optional<Calibration> measured;
  std::map<std::string, std::string> provenance;
  Id next_id;
};

std::uint64_t number(const Json& metadata, const char* key, const std::string& source) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_number_unsigned())
    fail(ErrorCode::corrupt, "{}: metadata: a whole number '{}' expected", source, key);
  return found->get<std::uint64_t>();
}

double share(const Json& metadata, const char* key, const std::string& source) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_number() || !(found->get<double>() >= 0) ||
      !(found->get<double>() <= 1))
    fail(ErrorCode::corrupt, "{}: metadata: a number '{}' of 0 to 1 expected", source, key);
  return found->get<double>();
}

// As a file of before measurements has it: none.
std::optional<Calibration> read_measured(const Json& metadata, const std::string& source) {
  const auto found = metadata.find("measured");
  if (found == metadata.end()) return {};
  if (!found->is_object()) fail(ErrorCode::corrupt, "{}: metadata: an object 'measured' expected", source);
  return Calibration{.probes = number(*found, "probes", source),
                     .candidates = number(*found, "candidates", source),
                     .recall = share(*found, "recall", source),
                     .recall_of_codes = share(*found, "recall_of_codes", source),
                     .target = share(*found, "target", source),
                     .queries = number(*found, "queries", source),
                     .neighbors = number(*found, "neighbors", source),
                     .rows = number(*found, "rows", source)};
}

Json describe(const Calibration& measured) {
  return {{"probes", measured.probes},       {"candidates", measured.candidates},
          {"recall", measured.recall},       {"recall_of_codes", measured.recall_of_codes},
          {"target", measured.target},       {"queries", measured.queries},
          {"neighbors", measured.neighbors}, {"rows", measured.rows}};
}

template <typename Parse>
auto named(const Json& metadata, const char* key, const std::string& source, const Parse& parse) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_string())
    fail(ErrorCode::corrupt, "{}: metadata: a text '{}' expected", source, key);
  try {
    return parse(found->template get_ref<const std::string&>());
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
}

Header read_header(const ContainerReader& reader) {
  const Json metadata = reader.metadata();
  const std::string& source = reader.source();
  Header header = {
      .metric = named(metadata, "metric", source, [](const std::string& text) { return parse_metric(text); }),
      .type =
          named(metadata, "type", source, [](const std::string& text) { return parse_element_type(text); }),
      .dim = number(metadata, "dim", source),
      .parts = number(metadata, "parts", source),
      .bits = static_cast<unsigned>(number(metadata, "bits", source)),
      .additive_iterations =
          metadata.contains("additive_iterations") ? number(metadata, "additive_iterations", source) : 0,
      .probes = number(metadata, "probes", source),
      .candidates = metadata.contains("candidates") ? number(metadata, "candidates", source)
                                                    : index::default_candidates,
      .measured = read_measured(metadata, source),
      .provenance = metadata.contains("provenance") ? read_provenance(metadata, source)
                                                    : std::map<std::string, std::string>(),
      .next_id = static_cast<Id>(number(metadata, "next_id", source))};
  const bool is_product = header.parts != 0;
  const bool is_additive = header.additive_iterations != 0;
  if (header.dim == 0 || header.parts > header.dim || header.next_id < 0 ||
      (header.bits != 4 && header.bits != 8) || (is_product && is_additive) ||
      ((is_product || is_additive) && header.type != ElementType::f32))
    fail(ErrorCode::corrupt,
         "{}: metadata: dim, parts, bits, additive_iterations, type and next_id do not go together", source);
  if (header.candidates < 1 || header.candidates > max_shard_rows)
    fail(ErrorCode::corrupt, "{}: metadata: candidates of 1 to {} expected, {} found", source, max_shard_rows,
         header.candidates);
  return header;
}

void check_values(MatrixView<const float> values, const char* section, const std::string& source,
                  float most = index::most_value) {
  const std::span<const float> all(values.data(), values.rows() * values.cols());
  const std::size_t bad = index::first_too_large(all, most);
  if (bad != all.size())
    fail(ErrorCode::corrupt, "{}: {}: numbers up to {} expected, {} found at element {}", source, section,
         most, all[bad], bad);
}

// Rows that are kept as they are hold numbers, too.
void check_rows_of(const Context& context, const RowsView& rows, const std::string& source) {
  try {
    check_finite("codes", context, rows);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::corrupt, "{}: {}", source, error.what());
  }
}

void check_shape(bool right, const char* section, const std::string& source) {
  if (!right)
    fail(ErrorCode::corrupt, "{}: {}: its shape does not go with the other sections", source, section);
}

Matrix<float> copy_of(MatrixView<const float> values) {
  Matrix<float> copy(values.rows(), values.cols());
  std::copy_n(values.data(), values.rows() * values.cols(), copy.data());
  return copy;
}

}  // namespace

void save(const Ivf& index, const std::filesystem::path& path) {
  const Ivf::State& state = *index.state_;
  ContainerWriter writer(path, std::string(index::container_kind));
  Json metadata = {{"metric", name(state.metric)},
                   {"type", name(state.type)},
                   {"dim", index.dim()},
                   {"parts", state.quantizer ? state.quantizer->parts() : 0},
                   {"bits", state.quantizer ? state.quantizer->bits() : 8},
                   {"probes", state.probes},
                   {"candidates", state.candidates},
                   {"next_id", static_cast<std::uint64_t>(state.next_id)}};
  metadata["provenance"] = state.provenance;
  if (!state.additive_codewords.empty()) metadata["additive_iterations"] = state.additive_iterations;
  if (state.measured) metadata["measured"] = describe(*state.measured);
  writer.write_metadata(metadata);
  writer.write_section("centroids", state.centroids.view());
  if (state.quantizer) {
    const std::span<const float> books = state.quantizer->codebooks();
    writer.write_section("codebooks", MatrixView<const float>(books.data(), books.size(), 1));
  }
  if (!state.additive_codewords.empty())
    writer.write_section("additive_words",
                         MatrixView<const float>(state.additive_codewords.data(),
                                                 state.additive_codewords.size() / index.dim(), index.dim()));
  std::vector<std::uint64_t> sizes(index.lists());
  for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] = state.rows.view(list).rows;
  writer.write_section("list_sizes", MatrixView<const std::uint64_t>(sizes.data(), sizes.size(), 1));
  writer.begin_section("ids", container::ElementOf<Id>::value);
  for (std::size_t list = 0; list < sizes.size(); ++list)
    writer.append(std::as_bytes(std::span(state.rows.view(list).ids, sizes[list])));
  writer.begin_section("codes", container::Element::u8, {.columns = index.code_bytes()});
  for (std::size_t list = 0; list < sizes.size(); ++list)
    writer.append({state.rows.view(list).codes, sizes[list] * index.code_bytes()});
  writer.commit();
}

Ivf load_ivf(const Context& context, const std::filesystem::path& path) {
  const auto reader = std::make_shared<const ContainerReader>(ContainerReader::open(path));
  const std::string& source = reader->source();
  index::expect_ivf(*reader);
  reader->verify();
  const Header header = read_header(*reader);
  const MatrixView<const float> centroids = reader->section("centroids").rows<float>();
  const MatrixView<const std::uint64_t> sizes = reader->section("list_sizes").rows<std::uint64_t>();
  const MatrixView<const Id> ids = reader->section("ids").rows<Id>();
  const MatrixView<const std::uint8_t> codes = reader->section("codes").rows<std::uint8_t>();
  check_shape(centroids.rows() >= 1 && centroids.cols() == header.dim, "centroids", source);
  check_values(centroids, "centroids", source);
  check_shape(sizes.rows() == centroids.rows() && sizes.cols() == 1, "list_sizes", source);
  check_shape(ids.cols() == 1 && ids.rows() == codes.rows() && ids.rows() <= max_shard_rows, "ids", source);
  std::uint64_t rows = 0;
  for (std::size_t list = 0; list < sizes.rows(); ++list)
    rows = checked_add(rows, sizes(list, 0), "list_sizes", ErrorCode::corrupt);
  check_shape(rows == ids.rows(), "list_sizes", source);
  for (std::size_t row = 0; row < ids.rows(); ++row)
    if (ids(row, 0) < 0 || ids(row, 0) >= header.next_id)
      fail(ErrorCode::corrupt, "{}: ids, row {}: 0 to {} expected, {} found", source, row, header.next_id - 1,
           ids(row, 0));
  if (header.probes < 1 || header.probes > centroids.rows())
    fail(ErrorCode::corrupt, "{}: metadata: probes of 1 to {} expected, {} found", source, centroids.rows(),
         header.probes);

  std::optional<ProductQuantizer> quantizer;
  std::vector<std::size_t> part_begins;
  std::size_t code_bytes = header.dim * element_size(header.type);
  if (header.parts != 0) {
    const MatrixView<const float> books = reader->section("codebooks").rows<float>();
    check_shape(books.cols() == 1 && books.rows() == header.dim << header.bits, "codebooks", source);
    check_values(books, "codebooks", source);
    quantizer =
        ProductQuantizer::from_codebooks(header.dim, header.parts, header.bits, {books.data(), books.rows()});
    for (std::size_t part = 0; part <= header.parts; ++part)
      part_begins.push_back(quantizer->part_begin(part));
    code_bytes = quantizer->code_bytes();
  }
  std::vector<float> additive_codewords;
  if (header.additive_iterations != 0) {
    constexpr std::size_t codewords = AdditiveQuantizer::centroids;
    const MatrixView<const float> books = reader->section("additive_words").rows<float>();
    check_shape(books.cols() == header.dim && books.rows() >= codewords && books.rows() % codewords == 0 &&
                    books.rows() / codewords <= AdditiveQuantizer::most_codebooks,
                "additive_words", source);
    check_values(books, "additive_words", source, index::most_additive_value);
    additive_codewords.assign(books.data(), books.data() + books.rows() * books.cols());
    code_bytes = books.rows() / codewords;
  }
  check_shape(codes.cols() == code_bytes, "codes", source);
  if (header.parts == 0 && additive_codewords.empty())
    check_rows_of(context, {codes.data(), header.type, codes.rows(), header.dim, code_bytes}, source);

  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  const auto stream = open_stream(context);
  std::unique_ptr<Ivf::State> state(
      new Ivf::State{.metric = header.metric,
                     .type = header.type,
                     .centroids = copy_of(centroids),
                     .quantizer = std::move(quantizer),
                     .part_begins = std::move(part_begins),
                     .additive_codewords = std::move(additive_codewords),
                     .additive_iterations = header.additive_iterations,
                     .centre = centre_of(*stream, centroids, header.metric),
                     .probes = header.probes,
                     .candidates = header.candidates,
                     .measured = header.measured,
                     .provenance = header.provenance,
                     .next_id = header.next_id,
                     .budget = budget,
                     .file = reader,
                     .rows = index::InvertedLists(budget, centroids.rows(), code_bytes)});
  std::size_t first = 0;
  for (std::size_t list = 0; list < sizes.rows(); ++list) {
    const std::size_t count = sizes(list, 0);
    state->rows.borrow(list, {reinterpret_cast<const std::byte*>(codes.data()) + first * code_bytes,
                              ids.data() + first, count});
    first += count;
  }
  return Ivf(std::move(state));
}

}  // namespace nearwise
