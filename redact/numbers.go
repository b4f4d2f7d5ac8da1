package redact

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
)

// cardGroups are the groups of digits in which card numbers are printed. Without separators, all
// digits are one group.
var cardGroups = [][]int{{4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}, {4, 4, 4, 4, 3}, {13}, {14}, {15}, {16}, {19}}

// cardRange is an issuer's range of the first four digits, with the lengths of its numbers.
type cardRange struct {
	from, to int
	lengths  []int
}

// cardRanges are the ranges of the large issuers (ISO/IEC 7812; first digits as published by the
// issuers).
var cardRanges = []cardRange{
	{4000, 4999, []int{13, 16, 19}},                  // Visa
	{5100, 5599, []int{16}}, {2221, 2720, []int{16}}, // Mastercard
	{3400, 3499, []int{15}}, {3700, 3799, []int{15}}, // American Express
	{3000, 3059, []int{14}}, {3095, 3095, []int{14}}, {3600, 3699, []int{14}}, {3800, 3999, []int{14}}, // Diners Club
	{6011, 6011, []int{16, 19}}, {6440, 6599, []int{16, 19}}, {6200, 6299, []int{16, 19}}, // Discover, UnionPay
	{3528, 3589, []int{16, 19}}, {2200, 2204, []int{16, 19}}, // JCB, Mir
	{5018, 5018, []int{16, 19}}, {5020, 5020, []int{16}}, {5038, 5038, []int{16}}, {6304, 6304, []int{16}}, // Maestro
	// Maestro, Elo, RuPay
	{6759, 6763, []int{16, 19}}, {6362, 6363, []int{16}}, {5067, 5067, []int{16}}, {6060, 6099, []int{16}},
	// RuPay, Troy, Bankcard, Maestro
	{8100, 8200, []int{16}}, {9792, 9792, []int{16}}, {5610, 5610, []int{16}}, {5000, 5017, []int{16}},
}

// isCard checks the layout, the length and number range of the large issuers (ISO/IEC 7812), and
// the Luhn digit.
func isCard(b []byte) bool {
	var groups []int
	for group := range bytes.FieldsFuncSeq(b, func(r rune) bool { return r == ' ' || r == '-' }) {
		groups = append(groups, len(group))
	}
	if !slices.ContainsFunc(cardGroups, func(layout []int) bool { return slices.Equal(layout, groups) }) {
		return false
	}
	digits := onlyDigits(b)
	first := 0
	for _, c := range digits[:4] {
		first = 10*first + int(c-'0')
	}
	inRange := slices.ContainsFunc(cardRanges, func(r cardRange) bool {
		return r.from <= first && first <= r.to && slices.Contains(r.lengths, len(digits))
	})
	return inRange && luhn(digits) && len(bytes.Trim(digits[1:], "0")) > 0
}

// luhn checks the last digit (ISO/IEC 7812-1, annex B).
func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// ibanLengths are the lengths by country in the IBAN registry (ISO 13616).
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
	"BY": 28, "CH": 21, "CR": 22,
	"CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18,
	"FO": 18, "FR": 27, "GB": 22,
	"GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23,
	"IS": 26, "IT": 27, "JO": 30,
	"KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24,
	"ME": 22, "MK": 19, "MN": 20,
	"MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
	"QA": 29, "RO": 24, "RS": 22,
	"RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28,
	"TL": 23, "TN": 24, "TR": 26,
	"UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}

// isIBAN checks the length by country and the checksum of ISO 13616: with letters as numbers from
// 10 and the first four characters moved to the end, the remainder modulo 97 is 1.
func isIBAN(b []byte) bool {
	iban := strings.ReplaceAll(string(b), " ", "")
	if len(iban) < 15 || len(iban) != ibanLengths[iban[:2]] {
		return false
	}
	var digits strings.Builder
	for _, c := range iban[4:] + iban[:4] {
		if c >= 'A' {
			digits.WriteString([]string{"1", "2", "3"}[(c-'A')/10])
			digits.WriteByte(byte('0' + (c-'A')%10))
			continue
		}
		digits.WriteRune(c)
	}
	n, ok := new(big.Int).SetString(digits.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// isSSN reports whether b is a number that the Social Security Administration can assign.
func isSSN(b []byte) bool {
	area, group, serial := string(b[:3]), string(b[4:6]), string(b[7:])
	if len(bytes.Trim(onlyDigits(b), string(b[:1]))) == 0 {
		return false // in forms
	}
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}

// onlyDigits returns the digits of b.
func onlyDigits(b []byte) []byte {
	digits := make([]byte, 0, len(b))
	for _, c := range b {
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	return digits
}
