// Marks the declarations of public headers as exported. The library hides all other symbols.
#pragma once

#ifdef __cplusplus
#define NEARWISE_EXPORT [[gnu::visibility("default")]]
#else
#define NEARWISE_EXPORT __attribute__((visibility("default")))
#endif
