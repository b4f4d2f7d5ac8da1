// Package truncate shortens UTF-8 text without cutting a character (a Unicode code point) in two.
package truncate

import "unicode/utf8"

// mark stands where Bytes and Characters left something out.
const mark = "…"

// Head returns the longest start of s that has at most n bytes and ends between
// characters. Bytes that are not UTF-8 count as characters of one byte.
func Head(s string, n int) string {
	end := max(n, 0)
	if len(s) <= end {
		return s
	}
	for back := 0; back < utf8.UTFMax && back <= end; back++ {
		if start := end - back; utf8.RuneStart(s[start]) {
			if _, size := utf8.DecodeRuneInString(s[start:]); start+size > end {
				end = start
			}
			break
		}
	}
	return s[:end]
}

// Tail returns the longest end of s that has at most n bytes and begins between
// characters. Bytes that are not UTF-8 count as characters of one byte.
func Tail(s string, n int) string {
	start := len(s) - max(n, 0)
	if start <= 0 {
		return s
	}
	if start == len(s) || utf8.RuneStart(s[start]) {
		return s[start:]
	}
	for back := 1; back < utf8.UTFMax && back <= start; back++ {
		if first := start - back; utf8.RuneStart(s[first]) {
			if _, size := utf8.DecodeRuneInString(s[first:]); first+size > start {
				start = first + size
			}
			break
		}
	}
	return s[start:]
}

// Bytes returns Head, followed by "…" if it is shorter than s: at most n bytes and
// the three of the mark.
func Bytes(s string, n int) string {
	if head := Head(s, n); head != s {
		return head + mark
	}
	return s
}

// Characters returns s in at most n characters; the last of them is "…" where
// something was left out. Bytes that are not UTF-8 count as one character each.
func Characters(s string, n int) string {
	if len(s) <= max(n, 0) {
		return s
	}
	if n <= 0 {
		return ""
	}
	last, count := 0, 0 // where character n begins; how many there are
	for i := range s {
		if count++; count == n {
			last = i
		}
		if count > n {
			return s[:last] + mark
		}
	}
	return s
}
