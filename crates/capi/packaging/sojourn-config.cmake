# Targets sojourn::sojourn (shared library) and sojourn::static.
get_filename_component(sojourn_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET sojourn::sojourn)
  add_library(sojourn::sojourn SHARED IMPORTED)
  set_target_properties(sojourn::sojourn PROPERTIES
    IMPORTED_LOCATION "${sojourn_prefix}/lib/libsojourn.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${sojourn_prefix}/include")

  add_library(sojourn::static STATIC IMPORTED)
  set_target_properties(sojourn::static PROPERTIES
    IMPORTED_LOCATION "${sojourn_prefix}/lib/libsojourn.a"
    INTERFACE_INCLUDE_DIRECTORIES "${sojourn_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m")
endif()
