# Whether the constraint plugin can be built: its engine is a Rust crate, so
# that takes cargo, a recent rustc and the crates of plugins/llguidance/rust.
#
# FUCINA_LLGUIDANCE      AUTO builds the plugin when it can and says in one line
#                        when it cannot; ON fails instead; OFF leaves it out
# FUCINA_CARGO_OFFLINE   never ask the network for crates; a folder made with
#                        `cargo vendor` is honoured as cargo is told to
#
# Sets FUCINA_LLGUIDANCE_SKIPPED to the reason, empty when the plugin is built.
set(FUCINA_LLGUIDANCE AUTO CACHE STRING
    "Build the llguidance plugin (needs Rust): AUTO, ON or OFF")
set_property(CACHE FUCINA_LLGUIDANCE PROPERTY STRINGS AUTO ON OFF)
option(FUCINA_CARGO_OFFLINE "Take crates from this machine only" OFF)

set(fucina_rust_dir ${PROJECT_SOURCE_DIR}/plugins/llguidance/rust)
set(fucina_rust_minimum 1.87)
# A configuration must not hang on a network that does not answer.
set(fucina_fetch_seconds 120)

# Sets `result` to what stands in the way, or to nothing.
function(fucina_find_rust result)
  find_program(FUCINA_CARGO cargo DOC "cargo, for the llguidance plugin")
  find_program(FUCINA_RUSTC rustc DOC "rustc, for the llguidance plugin")
  mark_as_advanced(FUCINA_CARGO FUCINA_RUSTC)
  foreach(tool cargo rustc)
    string(TOUPPER ${tool} upper)
    if(NOT FUCINA_${upper})
      set(${result} "${tool} not found" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  execute_process(COMMAND ${FUCINA_RUSTC} --version
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code TIMEOUT 30)
  if(NOT code EQUAL 0 OR NOT text MATCHES "rustc ([0-9]+\\.[0-9]+[0-9.]*)")
    set(${result} "rustc does not run" PARENT_SCOPE)
    return()
  endif()
  set(version ${CMAKE_MATCH_1})
  if(version VERSION_LESS fucina_rust_minimum)
    set(${result} "rustc ${version} < ${fucina_rust_minimum}" PARENT_SCOPE)
    return()
  endif()

  # What is on this machine already needs no network.
  foreach(offline --offline "")
    if(FUCINA_CARGO_OFFLINE AND NOT offline)
      break()
    endif()
    execute_process(
      COMMAND ${FUCINA_CARGO} fetch --locked ${offline}
              --manifest-path ${fucina_rust_dir}/Cargo.toml
      WORKING_DIRECTORY ${fucina_rust_dir}
      OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE code
      TIMEOUT ${fucina_fetch_seconds})
    if(code EQUAL 0)
      set(${result} "" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(code MATCHES "timeout")
    set(text "no answer in ${fucina_fetch_seconds} s")
  endif()
  string(REGEX MATCH "error: [^\n]*" line "${text}")
  if(NOT line)
    string(REGEX MATCH "[^\n]+" line "${text}")
  endif()
  string(REGEX REPLACE "^error: " "" line "${line}")
  set(${result} "crates not reachable: ${line}" PARENT_SCOPE)
endfunction()

if(FUCINA_LLGUIDANCE STREQUAL "OFF")
  set(FUCINA_LLGUIDANCE_SKIPPED "switched off with FUCINA_LLGUIDANCE=OFF")
elseif(FUCINA_LLGUIDANCE MATCHES "^(AUTO|ON)$")
  fucina_find_rust(FUCINA_LLGUIDANCE_SKIPPED)
  if(FUCINA_LLGUIDANCE STREQUAL "ON" AND FUCINA_LLGUIDANCE_SKIPPED)
    message(FATAL_ERROR "constrained decoding: the plugin cannot be built "
                        "(${FUCINA_LLGUIDANCE_SKIPPED}); see docs/constrained.md, "
                        "or leave it out with -DFUCINA_LLGUIDANCE=OFF")
  endif()
else()
  message(FATAL_ERROR "FUCINA_LLGUIDANCE: expected AUTO, ON or OFF, found "
                      "'${FUCINA_LLGUIDANCE}'")
endif()
if(FUCINA_LLGUIDANCE_SKIPPED)
  message(STATUS "constrained decoding: plugin skipped "
                 "(${FUCINA_LLGUIDANCE_SKIPPED}); see docs/constrained.md")
else()
  message(STATUS "constrained decoding: plugin is built")
endif()
