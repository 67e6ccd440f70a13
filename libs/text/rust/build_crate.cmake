# Builds the crate in a target folder that every checkout of the machine shares, and copies the
# library out under a lock, because cargo leaves the last built checkout's library in one place.
#   cmake -DCARGO=... -DCRATE=... -DTARGET_DIR=... -DOUTPUT=... -P build_crate.cmake
file(MAKE_DIRECTORY ${TARGET_DIR})
file(LOCK ${TARGET_DIR}/tokenrouter_text.lock GUARD PROCESS TIMEOUT 1800)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${TARGET_DIR}
          ${CARGO} build --quiet --release --locked --manifest-path ${CRATE}/Cargo.toml
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cargo could not build ${CRATE}: ${failed}")
endif()
file(COPY_FILE ${TARGET_DIR}/release/libtokenrouter_text.a ${OUTPUT})
file(TOUCH_NOCREATE ${OUTPUT})
