// nearwise::Error becomes ValueError (invalid_argument) or nearwise.Error with the code's name.
// std::bad_alloc becomes MemoryError, of which `operation` (python/nearwise/_context.py) makes
// nearwise.OutOfMemoryError.
#include "nearwise/error.h"

#include <new>

#include "bindings.h"

namespace nearwise::python {
namespace {

// Messages quote paths and headers, which may hold any bytes.
nb::object text_of(const Error& error) {
  const std::string_view text = error.what();
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      PyErr_SetObject(PyExc_ValueError, text_of(error).ptr());
      return;
    }
    // The class is Python's: it is raised from Python code too, and must be importable to be unpickled.
    const std::string_view code = name(error.code());
    const nb::object type = nb::module_::import_("nearwise._error").attr("Error");
    const nb::object value = type(text_of(error), nb::str(code.data(), code.size()));
    PyErr_SetObject(type.ptr(), value.ptr());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "no memory is left");
  }
}

}  // namespace

void bind_error(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace nearwise::python
