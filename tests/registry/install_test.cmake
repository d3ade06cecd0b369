# Installs fucina to a scratch prefix, builds the family template out of tree
# against it and runs its tests: what keeps the public headers sufficient.
#   cmake -DBUILD=<build tree> -DSOURCE=<source tree> -DSCRATCH=<folder>
#         -DCXX=<compiler> -DCXX_FLAGS=<flags> -P install_test.cmake
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(prefix ${SCRATCH}/prefix)
set(template ${SCRATCH}/template)
set(ENV{DESTDIR} "")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
foreach(file bin/fucina-conformance lib/libfucina.so include/fucina/version.h
             include/fucina/plugin/manifest.h include/fucina/runner/runner.h
             lib/cmake/fucina/fucinaConfig.cmake
             lib/cmake/fucina/FucinaAddPlugin.cmake
             lib/cmake/fucina/plugin.map
             lib/fucina/plugins/libfucina_qwen3.so)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()

# Nothing of the source or build tree may be needed: the template is copied.
file(COPY ${SOURCE}/examples/family_template/ DESTINATION ${template})
run(${CMAKE_COMMAND} -G Ninja -S ${template} -B ${template}/build
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${template}/build)
set(plugin ${template}/build/lib/fucina/plugins/libfucina_llama.so)
if(NOT EXISTS ${plugin})
  message(FATAL_ERROR "the template built no ${plugin}")
endif()
run(${CMAKE_CTEST_COMMAND} --test-dir ${template}/build --output-on-failure)
if(NOT output MATCHES "conformance.llama.tiny_qwen2")
  message(FATAL_ERROR "the template's tests did not run:\n${output}")
endif()

# The installed conformance program sees the installed core and the plugin.
run(${prefix}/bin/fucina-conformance --plugin ${plugin}
    --model ${template}/build/tiny_llama.gguf)
message(STATUS "${output}")

# Another minor version is refused.
file(WRITE ${SCRATCH}/other/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES CXX)\n"
  "find_package(fucina 0.99 REQUIRED)\n")
execute_process(
  COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SCRATCH}/other
          -B ${SCRATCH}/other/build -DCMAKE_PREFIX_PATH=${prefix}
          -DCMAKE_CXX_COMPILER=${CXX}
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(FATAL_ERROR "find_package(fucina 0.99) accepted this version")
endif()

# The installed program lists the template's plugin beside its own, from any
# working directory.
if(EXISTS ${prefix}/bin/fucina)
  run(${CMAKE_COMMAND} -E chdir / ${CMAKE_COMMAND} -E env
      FUCINA_PLUGIN_PATH=${template}/build/lib/fucina/plugins
      ${prefix}/bin/fucina plugins)
  foreach(text "llama 0.1.0" "qwen3 0.1.0" "${prefix}/lib/fucina/plugins")
    string(FIND "${output}" "${text}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "'${text}' is not in the listing:\n${output}")
    endif()
  endforeach()
endif()
file(REMOVE_RECURSE ${SCRATCH})
