# What `cmake --install` puts where, and what find_package(fucina) then finds.
# Plugins install themselves (fucina_add_plugin), and so does the program.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fucina)

install(TARGETS fucina_core fucina_plugin fucina_conformance
  EXPORT fucinaTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Public headers: everything under include/, and the configured version.
install(DIRECTORY core/include/fucina DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY registry/include/fucina
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/core/include/fucina/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fucina)

install(EXPORT fucinaTargets NAMESPACE fucina:: DESTINATION ${package_dir})
configure_package_config_file(cmake/fucinaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/fucinaConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Below 1.0 the minor number is the breaking one, as in the ABI tag.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/fucinaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/fucinaConfig.cmake
  ${PROJECT_BINARY_DIR}/fucinaConfigVersion.cmake
  cmake/FucinaAddPlugin.cmake
  cmake/plugin.map
  DESTINATION ${package_dir})
