package images

// PythonOf is for tests of real images.
var PythonOf = pythonOf
