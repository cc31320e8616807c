// Starts threads, and reports those that cannot be started.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace nearwise {

// Returns once the new thread works: it exists, has the memory that it needs before it can throw, and blocks
// the signals of the application. body must not throw: an exception in it ends the process.
// Throws Error(out_of_memory) if there is no such thread: "threads: the system refused to start <name> ...".
std::jthread start_thread(const std::string& name, std::function<void(const std::stop_token&)> body);

// Allocates the thread-local memory of the library and of exceptions for the calling thread.
void touch_thread_locals();

}  // namespace nearwise
