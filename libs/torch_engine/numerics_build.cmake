# Writes OUTPUT, the definition of kNumericsBuild: a hash over the contents of SOURCES (in order of
# their paths), and COMPILER. Run at build time whenever one of them changed.
list(SORT SOURCES)
set(digests "${COMPILER}")
foreach(source ${SOURCES})
  file(SHA256 ${source} digest)
  string(APPEND digests "${digest}")
endforeach()
string(SHA256 build "${digests}")
file(WRITE ${OUTPUT} "#include \"libs/torch_engine/numerics_build.h\"

namespace tokenrouter {

const char* const kNumericsBuild = \"${build}\";

}  // namespace tokenrouter
")
