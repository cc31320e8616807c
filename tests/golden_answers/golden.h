// Golden answers: the digests of answers and saved files, compared with those that were recorded
// (digests.txt).
//
// Answers are the same on every machine, instruction set, device and number of threads.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "golden_answers/digest.h"
#include "nearwise/context.h"

namespace nearwise::golden {

// The CPU, or the device that NEARWISE_GOLDEN_DEVICE names ("cuda:0").
Context context(ContextOptions options = {.threads = 2, .seed = 7});

bool on_device();

// Contexts that must give the same answers: with 1, 2 and 3 threads, and with every instruction set of this
// machine. Of a CUDA device, where each would take long on the emulated one, only context(); also where
// NEARWISE_GOLDEN_CONTEXTS is "one", for emulated CPUs.
std::vector<Context> every_context();

// Whether this run has case `number`: all of them on the CPU; on a device, of which the emulated one takes
// seconds for a training, every `step`-th.
bool is_due(std::size_t number, std::size_t step);

// Fails where the digest of what `fill` adds is not the recorded one, in digests.txt or the file that
// NEARWISE_GOLDEN_DIGESTS names. Where NEARWISE_RECORD_DIGESTS names a file, it appends the name and the
// digest to that file instead and skips the test.
void expect(const std::string& name, const std::function<void(Digest&)>& fill);

// The same of one answer.
template <typename T>
void expect_answer(const std::string& name, const T& answer) {
  expect(name, [&](Digest& digest) { digest.add(answer); });
}

// Of a saved container: NAME.sections without its metadata, and NAME.bytes.
void expect_container(const std::string& name, const std::filesystem::path& path);

}  // namespace nearwise::golden
