package visible

import "unicode"

// Is reports whether a character is visible: it leaves a distinct mark
// (Unicode general categories L, M, N, P and S and the prepended signs among Cf,
// without what is ignorable by default), or it is the plain space. It is the one
// answer to "can a reader see this?" for approvals, the hygiene of tool
// definitions, generated code and messages.
func Is(r rune) bool {
	switch {
	case r < 0x7F:
		return ' ' <= r
	case r == brailleBlank || r == nullNotehead:
		return false
	case unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S):
		return !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
	return unicode.Is(unicode.Prepended_Concatenation_Mark, r) || isReservedPictograph(r)
}

// Symbols without ink.
const (
	brailleBlank = '\u2800'
	nullNotehead = '\U0001D159'
)

// IsBlank reports whether a character is a space within a line that can be taken
// for the plain one: it is not Is, but hides nothing.
func IsBlank(r rune) bool {
	return r == brailleBlank || r > 0x7F && unicode.Is(unicode.Zs, r)
}

// isReservedPictograph reports whether a character is, or will be when it is
// assigned, a pictograph (Unicode Technical Standard 51, Extended_Pictographic):
// the emoji of a Unicode version that this program does not know.
func isReservedPictograph(r rune) bool {
	return 0x1F000 <= r && r <= 0x1FAFF || 0x1FC00 <= r && r <= 0x1FFFD
}
