// A library that is no backend.
extern "C" int not_a_backend();
int not_a_backend() { return 0; }
