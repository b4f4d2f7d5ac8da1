package webhook

// Sign is sign for tests.
var Sign = sign
