/* The C interface: exact search, and an inverted file that is built, changed, saved, opened again and searched.
   Usage: search [FILE], the file to write and to remove at the end. */
#include <nearwise/c/nearwise_c.h>

#include <stdio.h>
#include <stdlib.h>

enum { rows = 2000, dim = 16, queries = 3, k = 4 };

/* Ends the program with the message of the call that failed. */
static void check(nearwise_status status) {
  if (status == NEARWISE_OK) return;
  fprintf(stderr, "error %d: %s\n", (int)status, nearwise_last_error());
  exit(EXIT_FAILURE);
}

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "search.nw";
  static float data[rows][dim];
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < dim; ++i) data[row][i] = (float)rand() / (float)RAND_MAX;
  const nearwise_rows base = {.data = data, .type = NEARWISE_F32, .rows = rows, .dim = dim};
  const nearwise_rows first = {.data = data, .type = NEARWISE_F32, .rows = queries, .dim = dim};

  const nearwise_context_options limits = {
      .size = sizeof limits, .memory_limit = (uint64_t)1 << 30, .seed = 7};
  nearwise_context* context = NULL;
  check(nearwise_context_create(&limits, &context));

  int64_t ids[queries][k];
  float distances[queries][k];
  check(nearwise_knn(context, &first, &base, k, NULL, &ids[0][0], &distances[0][0]));
  for (size_t query = 0; query < queries; ++query)
    printf("row %zu: nearest is row %lld at squared distance %g\n", query, (long long)ids[query][1],
           (double)distances[query][1]);

  const nearwise_index_options options = {
      .size = sizeof options, .kind = NEARWISE_IVF_PQ, .target_recall = 0.95};
  nearwise_index* index = NULL;
  check(nearwise_index_build(context, &base, NULL, &options, &index));
  nearwise_index_info info = {.size = sizeof info};
  check(nearwise_index_describe(index, &info));
  printf("%zu vectors, recall %.3f (%.3f to %.3f)\n", info.rows, info.recall, info.recall_low,
         info.recall_high);

  const int64_t removed[] = {0};
  check(nearwise_index_remove(index, context, removed, 1, NULL));
  check(nearwise_index_save(index, path));
  nearwise_index_destroy(index);
  check(nearwise_index_open(context, path, &index));
  int64_t found[queries][k];
  check(nearwise_index_search(index, context, &first, k, NULL, &found[0][0], NULL));
  nearwise_index_destroy(index);
  nearwise_context_destroy(context);
  remove(path);

  const int right = ids[0][0] == 0 && found[0][0] != 0 && found[1][0] == 1;
  printf(right ? "as expected\n" : "not as expected\n");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
