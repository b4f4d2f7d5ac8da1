// Package codegen turns what is known about tools into source files: for each
// server a module, for each tool a typed function that sends its one argument
// object on, unchanged, under the tool's original name.
//
// Generate is pure: the same tools give the same bytes, in whatever order they
// come. Publish and Prune keep generated trees on disk, addressed by content.
//
// Names, descriptions and schemas come from strangers. Three rules keep them
// from ever becoming code: a name reaches the source only as an identifier
// that names.go made, text only through the escapes of text.go, and a schema
// only as the shapes of shape.go. Everything else in a file is template.
package codegen
