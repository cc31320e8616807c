// Watching a search and stopping it: the callback of one handle cancels it, another handle goes on.
#include <nearwise/nearwise.h>

#include <cstdio>

int main() {
  nearwise::Matrix<float> points(20'000, 64);
  for (std::size_t i = 0; i < points.rows() * points.cols(); ++i)
    points.data()[i] = static_cast<float>(i * 2654435761U % 1000) / 1000;

  const nearwise::Context context = nearwise::Context::cpu();
  int reports = 0;
  const nearwise::Context watched = context.with_progress([&](const nearwise::Progress& progress) {
    ++reports;
    std::printf("%s: %.0f %%\n", progress.operation,
                100 * static_cast<double>(progress.done) / static_cast<double>(progress.total));
  });
  nearwise::knn(watched, points.view().slice(0, 500), points, 10);
  std::printf("%d reports\n", reports);  // one at the end at least; more if it takes long

  const nearwise::Context stopped = context.with_progress({});
  stopped.cancel();
  try {
    nearwise::knn(stopped, points.view().slice(0, 500), points, 10);
    return 1;
  } catch (const nearwise::Error& error) {
    if (error.code() != nearwise::ErrorCode::cancelled) return 1;
    std::printf("%s\n", error.what());
  }
  return reports >= 1 ? 0 : 1;
}
