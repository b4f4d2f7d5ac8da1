package console

import (
	"net/http"
	"strings"
)

// policy is what a browser may do with a page of the console (Content Security Policy
// Level 3): load our own script, style and pictures, talk to us, and nothing else. The one
// Trusted Types policy is that of assets/console.js: it makes markup of answers that
// htmx puts into the page, and never a script or the address of one.
var policy = strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "form-action 'self'",
	"frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types default",
}, "; ")

// protect sets the headers of every answer. The referrer is kept from other sites and
// not from ours: with no-referrer a browser sends "Origin: null" with our own forms
// (Fetch, "append a request Origin header"), which is that of any sandboxed frame.
func protect(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), clipboard-read=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
		"Cache-Control":                "no-store",
	} {
		h.Set(name, value)
	}
}

// localPath returns a path of this address to go on to after a form, or "/" for whatever
// a browser could take for an address elsewhere.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) {
		return "/"
	}
	return path
}
