# The headers that most sources parse, parsed once per build folder. Sanitizer builds use them; the
# release build does not, so that it proves that each source includes what it uses.
#   tr_use_precompiled(TARGET [TESTING])    TESTING: with GoogleTest's headers
# A source with compile options of its own sets SKIP_PRECOMPILE_HEADERS.
option(TOKENROUTER_PRECOMPILE "Parse the common headers once" OFF)

if(TOKENROUTER_PRECOMPILE)
  # A precompiled header holds only for sources with the same flags: every target gets this one.
  add_compile_options(-pthread)
  set(empty_source ${CMAKE_BINARY_DIR}/precompiled/empty.cc)
  file(WRITE ${empty_source}.new "")
  file(COPY_FILE ${empty_source}.new ${empty_source} ONLY_IF_DIFFERENT)
  set(common_headers
    <algorithm> <array> <chrono> <cstdint> <deque> <functional> <map> <memory> <optional> <set>
    <span> <string> <string_view> <thread> <utility> <variant> <vector>
    <google/protobuf/map.h> <google/protobuf/message.h> <google/protobuf/repeated_ptr_field.h>
    <absl/container/btree_map.h> <absl/container/btree_set.h> <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/time/time.h>)
  add_library(tr_precompiled STATIC ${empty_source})
  target_precompile_headers(tr_precompiled PRIVATE ${common_headers})
  target_link_libraries(tr_precompiled PRIVATE protobuf::libprotobuf)
  add_library(tr_precompiled_testing STATIC ${empty_source})
  target_precompile_headers(tr_precompiled_testing PRIVATE ${common_headers} <gmock/gmock.h> <gtest/gtest.h>)
  target_link_libraries(tr_precompiled_testing PRIVATE protobuf::libprotobuf GTest::gmock)
endif()

function(tr_use_precompiled target)
  cmake_parse_arguments(ARG "TESTING" "" "" ${ARGN})
  if(NOT TOKENROUTER_PRECOMPILE)
    return()
  endif()
  if(ARG_TESTING)
    target_precompile_headers(${target} REUSE_FROM tr_precompiled_testing)
  else()
    target_precompile_headers(${target} REUSE_FROM tr_precompiled)
  endif()
endfunction()
