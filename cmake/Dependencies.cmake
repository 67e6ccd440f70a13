# Every package the project stands on, found once. Versions are those of tools/versions.lock.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)

if(TOKENROUTER_TORCH)
  set(TOKENROUTER_LIBTORCH "${TOKENROUTER_HOME}/libtorch-2.11.0/torch" CACHE PATH "Unpacked libtorch wheel")
  if(NOT EXISTS "${TOKENROUTER_LIBTORCH}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "libtorch not found in ${TOKENROUTER_LIBTORCH}: run ./tokenrouter setup --yes, "
                        "or configure with -DTOKENROUTER_TORCH=OFF")
  endif()
  # Only libs/torch_engine links this: the wheel's include folder shadows Debian's protobuf.
  add_library(torch_cpu INTERFACE)
  target_include_directories(torch_cpu SYSTEM INTERFACE
    ${TOKENROUTER_LIBTORCH}/include ${TOKENROUTER_LIBTORCH}/include/torch/csrc/api/include)
  target_link_libraries(torch_cpu INTERFACE
    -Wl,--no-as-needed ${TOKENROUTER_LIBTORCH}/lib/libtorch_cpu.so -Wl,--as-needed ${TOKENROUTER_LIBTORCH}/lib/libc10.so)
  target_link_options(torch_cpu INTERFACE -Wl,-rpath,${TOKENROUTER_LIBTORCH}/lib -Wl,--allow-shlib-undefined)
endif()
