# cmake -DROOT=FOLDER -DVERSION=VERSION -DOUTPUT=FILE -P build_id.cmake: writes the function build_id(), the version and the
# first 64 bits of a hash of all sources. Sources alone: a library and a plugin may come from two builds, of two compilers.
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/include/*.h ${ROOT}/src/*.h ${ROOT}/src/*.cpp ${ROOT}/src/*.cu ${ROOT}/src/*.cuh
     ${ROOT}/src/*.def)
list(SORT sources)
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND listing "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${listing}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "// Written by cmake/build_id.cmake.
namespace nearwise {

const char* build_id();
const char* build_id() { return \"${VERSION}-${hash}\"; }

}  // namespace nearwise
")
