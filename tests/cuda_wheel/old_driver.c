/* A driver of CUDA 12.4, as far as the CUDA runtime asks it before it refuses it. */
#include <stddef.h>
#include <string.h>

static int version(int* found) {
  *found = 12040;
  return 0;
}

static int fail(void) { return 500; }

int cuGetProcAddress_v2(const char* name, void** function, int since, unsigned long long flags,
                        void* status) {
  (void)flags;
  (void)status;
  *function = NULL;
  if (strcmp(name, "cuDriverGetVersion") == 0)
    *function = (void*)version;
  else if (strncmp(name, "cuGetProcAddress", 16) == 0)
    *function = (void*)cuGetProcAddress_v2;
  else if (since <= 12040)
    *function = (void*)fail;
  return *function == NULL ? 500 : 0;
}
