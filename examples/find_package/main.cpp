// The smallest program that uses nearwise: the two nearest of four points.
#include <nearwise/nearwise.h>

#include <cstdio>

int main() {
  const float points[] = {0, 0, 1, 0, 0, 2, 5, 5};
  const float query[] = {0.9F, 0.1F};
  const nearwise::MatrixView<const float> base(points, 4, 2);
  const nearwise::MatrixView<const float> queries(query, 1, 2);

  const nearwise::Context context = nearwise::Context::cpu();
  const nearwise::Neighbors found = nearwise::knn(context, queries, base, 2);
  for (std::size_t rank = 0; rank < 2; ++rank)
    std::printf("point %lld at squared distance %g\n", static_cast<long long>(found.ids(0, rank)),
                static_cast<double>(found.distances(0, rank)));
  return found.ids(0, 0) == 1 && found.ids(0, 1) == 0 ? 0 : 1;
}
