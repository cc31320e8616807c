#include "cuda_emulation/engine/fiber.h"

#include <sys/mman.h>

#include "cuda_emulation/engine/failure.h"

// Saves the callee-saved registers on the stack; the caller saves the others.
asm(R"(
.text
.globl cuda_emulation_switch
.type cuda_emulation_switch,@function
cuda_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_emulation_switch,.-cuda_emulation_switch
)");

namespace cuda_emulation {
namespace {

constexpr std::size_t guard_bytes = 4096;
constexpr int saved_registers = 6;

}  // namespace

char* new_stack() {
  void* const memory = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0)
    throw Failure(cudaErrorLaunchOutOfResources, "the machine has no memory for the stack of a thread");
  return static_cast<char*>(memory) + guard_bytes;
}

void* start_of_fiber(char* stack, void (*entry)()) {
  // On entry, the System V ABI requires a stack pointer of 8 modulo 16, as after the push of a return
  // address.
  auto* top = reinterpret_cast<void**>(stack + stack_bytes - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < saved_registers; ++i) *--top = nullptr;
  return top;
}

}  // namespace cuda_emulation
