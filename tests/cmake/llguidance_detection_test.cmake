# Configures a project that only looks for Rust, once per situation, and reads
# what it says.
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR}/project)
file(WRITE ${WORK_DIR}/project/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(detection NONE)
set(PROJECT_SOURCE_DIR ${SOURCE_DIR})
include(${SOURCE_DIR}/cmake/FucinaLlguidance.cmake)
")

function(write_program path text)
  file(WRITE ${path} "#!/bin/sh\n${text}\n")
  file(CHMOD ${path} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
write_program(${WORK_DIR}/old/rustc "echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'")
write_program(${WORK_DIR}/new/rustc "echo 'rustc 1.87.0 (17067e9ac 2025-05-09)'")
write_program(${WORK_DIR}/broken/rustc "exit 1")
write_program(${WORK_DIR}/good/cargo "exit 0")
write_program(${WORK_DIR}/unreachable/cargo
  "echo 'error: failed to reach the registry' >&2; echo more >&2; exit 101")
# Succeeds without --offline only.
write_program(${WORK_DIR}/online/cargo
  "case \"$*\" in *--offline*) echo 'error: not here' >&2; exit 101;; esac")

set(skipped "constrained decoding: plugin skipped")
function(expect name code text)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${WORK_DIR}/project -B ${WORK_DIR}/${name}
            -G "${GENERATOR}" -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} ${ARGN}
    OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE result)
  string(REGEX REPLACE "[ \n]+" " " flat "${out}")
  if(NOT result EQUAL code)
    message(SEND_ERROR "${name}: ended with ${result}, expected ${code}: ${out}")
  endif()
  string(FIND "${flat}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "${name}: expected '${text}', found: ${out}")
  endif()
endfunction()

set(rust_new -DFUCINA_RUSTC=${WORK_DIR}/new/rustc)
set(cargo_good -DFUCINA_CARGO=${WORK_DIR}/good/cargo)
expect(all_there 0 "constrained decoding: plugin is built"
       ${rust_new} ${cargo_good})
expect(old_rustc 0 "${skipped} (rustc 1.63.0 < 1.87)"
       -DFUCINA_RUSTC=${WORK_DIR}/old/rustc ${cargo_good})
expect(broken_rustc 0 "${skipped} (rustc does not run)"
       -DFUCINA_RUSTC=${WORK_DIR}/broken/rustc ${cargo_good})
expect(no_crates 0
       "${skipped} (crates not reachable: failed to reach the registry)"
       ${rust_new} -DFUCINA_CARGO=${WORK_DIR}/unreachable/cargo)
expect(online 0 "constrained decoding: plugin is built"
       ${rust_new} -DFUCINA_CARGO=${WORK_DIR}/online/cargo)
expect(offline 0 "${skipped} (crates not reachable: not here)"
       ${rust_new} -DFUCINA_CARGO=${WORK_DIR}/online/cargo
       -DFUCINA_CARGO_OFFLINE=ON)
expect(off 0 "${skipped} (switched off with FUCINA_LLGUIDANCE=OFF)"
       -DFUCINA_LLGUIDANCE=OFF)
expect(on 1 "the plugin cannot be built (rustc 1.63.0 < 1.87)"
       -DFUCINA_RUSTC=${WORK_DIR}/old/rustc ${cargo_good}
       -DFUCINA_LLGUIDANCE=ON)
expect(typo 1 "FUCINA_LLGUIDANCE: expected AUTO, ON or OFF, found 'MAYBE'"
       -DFUCINA_LLGUIDANCE=MAYBE)
# Nothing on the path but what a shell needs.
set(ENV{PATH} ${WORK_DIR}/nothing)
expect(no_cargo 0 "${skipped} (cargo not found)"
       -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF)
