// Searches in lists that the device keeps, with changes between, that any seeded bug must corrupt: prints
// "clean" or the finding. Linked like driver.cu.
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "support/resident_cases.h"

int main() {
  using namespace nearwise;
  const Context context = Context::cuda(0, {.threads = 1});
  bool is_right = true;
  for (const Metric metric : support::every_metric)
    for (std::uint64_t number = 0; number < 16 && is_right; ++number) {
      support::ResidentCase made(metric, number);
      const auto check = [&](const char* what) {
        if (!is_right) return;
        const testing::AssertionResult match = made.is_right(context);
        is_right = static_cast<bool>(match);
        if (!is_right)
          std::printf("found: wrong answer %s, %s: %s\n", what, match.message(), made.describe().c_str());
      };
      try {
        made.index.to(context);
        check("after to()");
        made.change(check);
        made.index.to(Context::cpu());
      } catch (const std::exception& error) {
        const std::string report = cuda_emulation::take_report();
        std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                    report.empty() ? error.what() : report.c_str(), made.describe().c_str());
        is_right = false;
      }
    }
  if (is_right) std::printf("clean\n");
  return 0;
}
