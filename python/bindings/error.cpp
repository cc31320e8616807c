// nearwise::Error becomes ValueError (invalid_argument) or nearwise.Error with the code's name.
#include "nearwise/error.h"

#include "bindings.h"

namespace nearwise::python {
namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      PyErr_SetString(PyExc_ValueError, error.what());
      return;
    }
    // The class is Python's: it is raised from Python code too, and must be importable to be unpickled.
    const std::string_view code = name(error.code());
    const nb::object type = nb::module_::import_("nearwise._error").attr("Error");
    const nb::object value = type(error.what(), nb::str(code.data(), code.size()));
    PyErr_SetObject(type.ptr(), value.ptr());
  }
}

}  // namespace

void bind_error(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace nearwise::python
