# Compiler flags of every target: standard, warnings as errors, sanitizers, linker and compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(TOKENROUTER_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")

# Designated initializers name what differs from the defaults; the rest is left out on purpose.
add_compile_options(-Wall -Wextra -Werror -Wno-psabi -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 reports these inside its own standard library when it inlines across it (GCC bugs 105329, 105562).
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(TOKENROUTER_SANITIZE)
  add_compile_options(-fsanitize=${TOKENROUTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TOKENROUTER_SANITIZE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # Paths are hashed relative to the checkout, so two checkouts share one cache.
  set(_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_launcher})
endif()
