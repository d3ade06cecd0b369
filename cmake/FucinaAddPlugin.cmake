# fucina_add_plugin(<name>
#   SOURCES <files>...            # one of them ends with FUCINA_PLUGIN(<name>, …)
#   [LINK <targets>...]           # private dependencies
#   [CONFORMANCE <models>...]     # small models; each adds a CTest
#   [NO_INSTALL])                 # a plugin that only tests use
#
# Builds lib/fucina/plugins/libfucina_<name>.so as target fucina_plugin_<name>,
# with exactly one exported symbol, and installs it to the same place. Used by
# the plugins in this source tree and, through find_package(fucina), by those
# outside it. See docs/plugins.md.
include(GNUInstallDirs)

function(fucina_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 PLUGIN "NO_INSTALL" ""
                        "SOURCES;LINK;CONFORMANCE")
  if(NOT name MATCHES "^[a-z0-9][a-z0-9_]*$")
    message(FATAL_ERROR "fucina_add_plugin: '${name}' is not a plugin name; "
                        "use lower-case letters, digits and underscores")
  endif()
  if(PLUGIN_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fucina_add_plugin(${name}): unknown arguments "
                        "'${PLUGIN_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT PLUGIN_SOURCES)
    message(FATAL_ERROR "fucina_add_plugin(${name}): no SOURCES")
  endif()

  set(target fucina_plugin_${name})
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  add_library(${target} MODULE ${PLUGIN_SOURCES})
  target_link_libraries(${target} PRIVATE fucina::plugin ${PLUGIN_LINK})
  if(TARGET fucina_warnings)
    target_link_libraries(${target} PRIVATE fucina_warnings)
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Results must not depend on where the compiler fuses a*b+c.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME fucina_${name}
    PREFIX lib
    SUFFIX .so
    CXX_STANDARD 20
    CXX_STANDARD_REQUIRED ON
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/fucina/plugins
    BUILD_RPATH "$ORIGIN/../.."
    INSTALL_RPATH "$ORIGIN/../.."
    LINK_DEPENDS ${map})
  # The version script also hides weak standard-library template instances,
  # which hidden visibility lets through.
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
  # A forgotten library must fail here and not at the user's load. Clang leaves
  # the sanitizer runtime of a module to the program, so not under sanitizers.
  if(NOT (CMAKE_CXX_COMPILER_ID MATCHES "Clang"
          AND CMAKE_CXX_FLAGS MATCHES "-fsanitize"))
    target_link_options(${target} PRIVATE "LINKER:--no-undefined")
  endif()

  if(NOT PLUGIN_NO_INSTALL)
    # So that a program built alone can bring its plugins up to date.
    set_property(GLOBAL APPEND PROPERTY FUCINA_PLUGIN_TARGETS ${target})
    install(TARGETS ${target}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fucina/plugins)
  endif()
  foreach(model IN LISTS PLUGIN_CONFORMANCE)
    get_filename_component(model_name ${model} NAME_WE)
    add_test(NAME conformance.${name}.${model_name}
             COMMAND fucina::conformance --plugin $<TARGET_FILE:${target}>
                     --model ${model})
  endforeach()
endfunction()
