package console

import (
	"net/http"
	"strings"
)

// policy is the Content Security Policy (Level 3) of the pages. A page may load scripts, styles
// and pictures of the console, and connect to it. The only Trusted Types policy is the one of
// assets/console.js: it creates HTML from answers for htmx, but never a script or the URL of a
// script.
var policy = strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
	"form-action 'self'",
	"frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types default",
}, "; ")

// protect sets the headers of every answer. The referrer policy is same-origin and not
// no-referrer, because with no-referrer a browser sends "Origin: null" with our own forms
// (Fetch, "append a request Origin header"), which is also the origin of sandboxed frames.
func protect(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), clipboard-read=(), display-capture=(), geolocation=(), " +
			"microphone=(), payment=(), usb=()",
		"Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
}

// localPath returns the path of a redirect after a form. It returns "/" if a browser could
// interpret path as a URL of another site.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) {
		return "/"
	}
	return path
}
