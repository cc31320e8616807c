// One base over several devices: by rows, and with every part on two of them. Runs on any machine: contexts
// of the CPU stand in where there are no GPUs.
#include <nearwise/nearwise.h>

#include <cstdio>
#include <vector>

int main() {
  std::vector<nearwise::Context> contexts;
  for (const nearwise::DeviceInfo& device : nearwise::devices())
    if (device.name != "cpu") contexts.push_back(nearwise::Context::on(device.name));
  while (contexts.size() < 4) contexts.push_back(nearwise::Context::cpu({.threads = 1}));
  contexts.erase(contexts.begin() + 4, contexts.end());

  nearwise::Matrix<float> base(1000, 8);
  for (std::size_t i = 0; i < 8000; ++i) base.data()[i] = static_cast<float>(i * i % 1009);

  // Joins the answers, and stops all devices where it is cancelled.
  const nearwise::Context host = nearwise::Context::cpu();
  const auto by_rows = nearwise::shard_exact(contexts, base.view());
  const auto both = nearwise::shard_and_replicate_exact(contexts, 2, base.view());
  const nearwise::MatrixView<float> queries = base.view().slice(0, 5);
  const nearwise::Neighbors one = by_rows.search(host, queries, 3);
  const nearwise::Neighbors other = both.search(host, queries, 3);
  for (std::size_t i = 0; i < 15; ++i)
    if (one.ids.data()[i] != other.ids.data()[i]) return 1;
  std::printf("4 parts, or 2 parts twice: %zu rows, the nearest of row 4 are %lld %lld %lld\n",
              by_rows.size(), static_cast<long long>(one.ids(4, 0)), static_cast<long long>(one.ids(4, 1)),
              static_cast<long long>(one.ids(4, 2)));
}
