// Marks the declarations of public headers as exported. The library hides all other symbols.
#pragma once

#define NEARWISE_EXPORT [[gnu::visibility("default")]]
