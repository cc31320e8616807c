// The C interface: exact search, indexes, k-NN graphs and k-means, for programs in C99 or later and for
// languages that call C.
//
// Every function that can fail returns a nearwise_status: NEARWISE_OK, or an error code. A function that
// fails leaves its outputs unchanged; nearwise_last_error() returns the message. Results are those of the C++
// functions, bit for bit; distances and metrics are described in nearwise/exact.h and nearwise/types.h.
//
// Options are structs that begin with their size, and zero is the default of every other field:
//   nearwise_knn_options options = {.size = sizeof options, .metric = NEARWISE_COSINE};
// So a program that was compiled against an older header works with a newer library. A null pointer to
// options means all defaults.
//
// Pointers are to host memory. Vectors and ids are read during the call only; results are written to arrays
// that the caller provides. Any thread may call any function at any time, but an object must not be in use
// while it is destroyed. Strings are UTF-8; paths are passed to the system as bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Names and declarations of C. NOLINTBEGIN(readability-identifier-naming,modernize-use-using)
// Marks functions as exported: the library hides all other symbols.
#define NEARWISE_C_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// ---- Errors -------------------------------------------------------------------------------------------

typedef int32_t nearwise_status;
enum {
  NEARWISE_OK = 0,
  NEARWISE_INVALID_ARGUMENT = 1,  // shape, type, range or a non-finite value
  NEARWISE_NOT_FOUND = 2,         // no such file
  NEARWISE_CANNOT_CREATE = 3,     // an output cannot be created
  NEARWISE_IO = 4,                // reading or writing failed
  NEARWISE_CORRUPT = 5,           // a file contradicts itself or its checksums
  NEARWISE_OUT_OF_MEMORY = 6,     // beyond the memory limit, or the machine's memory
  NEARWISE_UNSUPPORTED = 7,       // not available on this device or in this build
  NEARWISE_DEVICE = 8,            // a CUDA device failed
  NEARWISE_CANCELLED = 9,         // nearwise_context_cancel() was called
  NEARWISE_INTERNAL = 10          // a bug in nearwise
};

// The message of this thread's last failed call: "nearwise_knn: queries must not be NULL". Valid until
// the next call of this thread that fails; "" before the first.
NEARWISE_C_EXPORT const char* nearwise_last_error(void);

// "0.2.0". Lives as long as the program.
NEARWISE_C_EXPORT const char* nearwise_version(void);

// ---- Vectors ------------------------------------------------------------------------------------------

typedef int32_t nearwise_element_type;
enum {
  NEARWISE_F32 = 0,
  NEARWISE_F16 = 1,   // IEEE half precision, as bits of uint16_t
  NEARWISE_BF16 = 2,  // the upper half of a float, as bits of uint16_t
  NEARWISE_U8 = 3,
  NEARWISE_I8 = 4
};

typedef int32_t nearwise_metric;
enum {
  NEARWISE_SQEUCLIDEAN = 0,
  NEARWISE_EUCLIDEAN = 1,
  NEARWISE_INNER_PRODUCT = 2,  // largest first
  NEARWISE_COSINE = 3
};

// Vectors in host memory, one after the other.
typedef struct nearwise_rows {
  const void* data;  // may be NULL if there are no rows
  nearwise_element_type type;
  size_t rows;
  size_t dim;
  size_t stride_bytes;  // from one vector to the next; 0: dim elements
} nearwise_rows;

// The ids that a search may return; in exact search an id is a row number.
typedef int32_t nearwise_filter_kind;
enum {
  NEARWISE_FILTER_MASK = 1,   // mask[i] != 0: id i is allowed; ids beyond the mask are not
  NEARWISE_FILTER_ALLOW = 2,  // only ids[0..count) are allowed
  NEARWISE_FILTER_DENY = 3    // all ids but ids[0..count) are allowed
};
typedef struct nearwise_filter {
  nearwise_filter_kind kind;
  size_t count;         // of mask or ids
  const uint8_t* mask;  // of NEARWISE_FILTER_MASK
  const int64_t* ids;   // of NEARWISE_FILTER_ALLOW and NEARWISE_FILTER_DENY
} nearwise_filter;

// ---- Contexts -----------------------------------------------------------------------------------------

// Where operations run, and under which limits. Several threads may use one at the same time.
typedef struct nearwise_context nearwise_context;

typedef struct nearwise_context_options {
  size_t size;            // sizeof(nearwise_context_options)
  int32_t threads;        // 0: all CPUs available to this process
  uint64_t memory_limit;  // bytes of working memory, results and indexes together; 0: no limit
  uint64_t seed;          // of all random numbers
  const char* device;     // "cpu" (also NULL), "cuda", "cuda:1"
} nearwise_context_options;

NEARWISE_C_EXPORT nearwise_status nearwise_context_create(const nearwise_context_options* options,
                                                          nearwise_context** context);
// Indexes that were made with the context stay valid. NULL is accepted.
NEARWISE_C_EXPORT void nearwise_context_destroy(nearwise_context* context);
// Running and later operations of this context end with NEARWISE_CANCELLED: destroy it once they have
// returned. Must not be called from a signal handler.
NEARWISE_C_EXPORT nearwise_status nearwise_context_cancel(nearwise_context* context);
// Bytes counted towards the memory limit: at present, and at their peak. Either pointer may be NULL.
NEARWISE_C_EXPORT nearwise_status nearwise_context_memory(const nearwise_context* context, uint64_t* used,
                                                          uint64_t* peak);

// ---- Exact search -------------------------------------------------------------------------------------

typedef struct nearwise_knn_options {
  size_t size;  // sizeof(nearwise_knn_options)
  nearwise_metric metric;
  // Not 0: queries and base are the same vectors, and query i does not return row i.
  int32_t exclude_self;
  // Not 0: if k exceeds the rows of the base (less 1 with exclude_self), results end in id -1 and +inf (inner
  // product: -inf). 0: that is an error.
  int32_t pad;
  const nearwise_filter* filter;  // NULL: all rows. Results with fewer than k allowed rows are padded.
} nearwise_knn_options;

// The k nearest rows of the base for every query, best first, the lower id in a tie. Writes ids
// [queries, k] and distances [queries, k], which may be NULL. Queries and base may differ in element type.
NEARWISE_C_EXPORT nearwise_status nearwise_knn(const nearwise_context* context, const nearwise_rows* queries,
                                               const nearwise_rows* base, size_t k,
                                               const nearwise_knn_options* options, int64_t* ids,
                                               float* distances);

// ---- Indexes ------------------------------------------------------------------------------------------

// An index of any kind. A search sees every change as a whole or not at all.
typedef struct nearwise_index nearwise_index;

typedef int32_t nearwise_index_kind;
enum {
  NEARWISE_IVF_FLAT = 1,  // inverted file of vectors as they are
  NEARWISE_IVF_PQ = 2,    // inverted file of product codes
  NEARWISE_IVF_LSQ = 3,   // inverted file of additive codes
  NEARWISE_GRAPH = 4      // graph index, for single queries at low latency
};

// What inverted files of codes keep of the vectors, for re-ranking.
typedef int32_t nearwise_vector_storage;
enum {
  NEARWISE_KEEP_VECTORS = 0,  // all of them, as they are
  NEARWISE_KEEP_F16 = 1,      // rounded to half precision
  NEARWISE_KEEP_U8 = 2,       // rounded to 255 steps
  NEARWISE_KEEP_NONE = 3,     // nothing: searches return distances to decoded vectors
  NEARWISE_KEEP_FILE = 4      // their row numbers in `vector_file`, which is mapped and must not change
};

typedef struct nearwise_index_options {
  size_t size;  // sizeof(nearwise_index_options)
  nearwise_index_kind kind;
  nearwise_metric metric;
  double target_recall;    // of calibrated searches; 0: 0.9 for inverted files, 0.95 for graph indexes
  int32_t no_calibration;  // not 0: probes and beam are not calibrated on a sample; target_recall must be 0
  // Inverted files; 0 for graph indexes.
  size_t lists;                     // 0: about 4 sqrt(vectors)
  size_t code_bytes;                // 0: product codes dim / 8, but 8 to 64; additive codes 8
  uint32_t bits;                    // of a product code's parts, 4 or 8; 0: 8
  nearwise_vector_storage vectors;  // kept by inverted files of codes
  const char* vector_file;          // of NEARWISE_KEEP_FILE
  // Graph indexes; 0 for inverted files.
  size_t degree;        // edges per vector, at most: a multiple of 16 from 16 to 128; 0: 48
  double graph_recall;  // of the k-NN graph that edges are chosen from; 0: 0.95
} nearwise_index_options;

// An index of these vectors. ids: one per vector, distinct and not negative; NULL: row numbers. With ids,
// NEARWISE_KEEP_NONE requires no_calibration. `options` must not be NULL, since it names the kind.
NEARWISE_C_EXPORT nearwise_status nearwise_index_build(const nearwise_context* context,
                                                       const nearwise_rows* rows, const int64_t* ids,
                                                       const nearwise_index_options* options,
                                                       nearwise_index** index);
// An index from a file that any interface of nearwise has written. Checksums are verified. The file is
// mapped and must not change while the index exists.
NEARWISE_C_EXPORT nearwise_status nearwise_index_open(const nearwise_context* context, const char* path,
                                                      nearwise_index** index);
// Writes a file atomically: after a crash there is either the complete old file or the complete new one.
NEARWISE_C_EXPORT nearwise_status nearwise_index_save(const nearwise_index* index, const char* path);
// NULL is accepted.
NEARWISE_C_EXPORT void nearwise_index_destroy(nearwise_index* index);

// What add does with ids that the index holds already.
typedef int32_t nearwise_on_duplicate;
enum {
  NEARWISE_REFUSE = 0,   // an error; nothing is added
  NEARWISE_REPLACE = 1,  // the new vector takes the place of the old one
  NEARWISE_SKIP = 2      // the old vector stays, the new one is left out
};

// ids: one per vector; NULL: consecutive ids from nearwise_index_info.next_id. Stores the number of vectors
// added or replaced in `added`, which may be NULL.
NEARWISE_C_EXPORT nearwise_status nearwise_index_add(nearwise_index* index, const nearwise_context* context,
                                                     const nearwise_rows* rows, const int64_t* ids,
                                                     nearwise_on_duplicate on_duplicate, size_t* added);
// Removes every vector with one of these ids. Stores the number removed in `removed`, which may be NULL.
NEARWISE_C_EXPORT nearwise_status nearwise_index_remove(nearwise_index* index,
                                                        const nearwise_context* context, const int64_t* ids,
                                                        size_t count, size_t* removed);

// Fields of the other kind of index must be 0.
typedef struct nearwise_search_options {
  size_t size;                    // sizeof(nearwise_search_options)
  size_t probes;                  // inverted files: lists to scan; 0: as calibrated
  size_t candidates;              // inverted files: vectors to re-rank, at least k; 0: as calibrated
  size_t beam;                    // graph indexes: at least k; 0: as calibrated
  const nearwise_filter* filter;  // NULL: all ids
} nearwise_search_options;

// The k nearest vectors that the index finds for every query. Writes ids [queries, k] and distances [queries,
// k], which may be NULL; a row with fewer than k results ends in id -1 and +inf (inner product: -inf).
NEARWISE_C_EXPORT nearwise_status nearwise_index_search(const nearwise_index* index,
                                                        const nearwise_context* context,
                                                        const nearwise_rows* queries, size_t k,
                                                        const nearwise_search_options* options, int64_t* ids,
                                                        float* distances);

typedef struct nearwise_index_info {
  size_t size;  // sizeof(nearwise_index_info), set by the caller
  nearwise_index_kind kind;
  nearwise_metric metric;
  size_t rows;
  size_t dim;
  int64_t next_id;  // one above the largest id ever added
  // Recall of searches for 10 neighbours with default options, measured on a sample; 0 without calibration.
  int32_t calibrated;
  int32_t reached;  // the recall is at least the target; graph indexes: also that of 100 neighbours
  double target_recall;
  double recall;
  double recall_low;  // 95 % interval
  double recall_high;
} nearwise_index_info;

// Fills in the fields after `size`, as many as the caller's struct has.
NEARWISE_C_EXPORT nearwise_status nearwise_index_describe(const nearwise_index* index,
                                                          nearwise_index_info* info);

// ---- k-NN graphs and k-means --------------------------------------------------------------------------

typedef struct nearwise_knn_graph_options {
  size_t size;  // sizeof(nearwise_knn_graph_options)
  nearwise_metric metric;
  double target_recall;  // 0: 0.95; 1: exact search
} nearwise_knn_graph_options;

typedef struct nearwise_graph_report {
  size_t size;      // sizeof(nearwise_graph_report), set by the caller
  int32_t reached;  // the lower end of the recall's interval is at least the target
  double recall;
  double recall_low;
  double recall_high;
} nearwise_graph_report;

// The `degree` nearest other vectors of every vector. Writes ids [rows, degree], distances [rows, degree]
// and the report; the last two may be NULL. A list ends in id -1 if there are fewer other vectors.
NEARWISE_C_EXPORT nearwise_status nearwise_knn_graph(const nearwise_context* context,
                                                     const nearwise_rows* rows, size_t degree,
                                                     const nearwise_knn_graph_options* options, int64_t* ids,
                                                     float* distances, nearwise_graph_report* report);

typedef struct nearwise_kmeans_options {
  size_t size;             // sizeof(nearwise_kmeans_options)
  nearwise_metric metric;  // NEARWISE_SQEUCLIDEAN, NEARWISE_INNER_PRODUCT or NEARWISE_COSINE
  size_t iterations;       // at most; 0: 20
  double balance;          // at least 1: clusters of at most ceil(balance * rows / clusters) vectors; 0: off
} nearwise_kmeans_options;

// Writes centroids [clusters, dim], and to `sizes` [clusters], which may be NULL, the number of vectors
// averaged into each centroid. To assign vectors to the centroids, call nearwise_knn with k = 1.
NEARWISE_C_EXPORT nearwise_status nearwise_kmeans(const nearwise_context* context, const nearwise_rows* rows,
                                                  size_t clusters, const nearwise_kmeans_options* options,
                                                  float* centroids, size_t* sizes);

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND(readability-identifier-naming,modernize-use-using)
