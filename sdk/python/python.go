// Package python is the source of the Python distribution "airlock-verify", embedded, so
// that a released airlock program can build the image of its engines without a
// checkout.
package python

import "embed"

// Source holds the packages below "src" as they are installed, and
// "requirements/engines.txt", the locked requirements of the engines in pip's format.
//
//go:embed all:src requirements/engines.txt
var Source embed.FS
