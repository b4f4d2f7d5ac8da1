package redact

import (
	"bytes"
	"math/big"
	"strings"
)

// mixed says whether a value has lower and upper case and a digit, as random
// base64 of forty characters nearly always has and a path or a digest has not.
func mixed(b []byte) bool {
	return bytes.ContainsAny(b, "0123456789") &&
		bytes.ContainsAny(b, "abcdefghijklmnopqrstuvwxyz") &&
		bytes.ContainsAny(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// noPlaceholder lets through what documentation writes for a password.
func noPlaceholder(b []byte) bool {
	switch strings.ToLower(strings.Trim(string(b), "<>{}[]$%*")) {
	case "", "password", "passwd", "pass", "pwd", "secret", "token", "xxx", "xxxx", "xxxxx", "port":
		return false
	}
	return !bytes.HasPrefix(b, []byte("${"))
}

// isEmail leaves out what only looks like an address: the example domains of
// RFC 2606, and files such as icon@2x.png.
func isEmail(b []byte) bool {
	address := strings.ToLower(string(b))
	_, domain, _ := strings.Cut(address, "@")
	for _, reserved := range []string{"example.com", "example.org", "example.net"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return false
		}
	}
	for _, suffix := range []string{".png", ".jpg", ".gif", ".svg", ".webp", ".example", ".invalid", ".test", ".localhost"} {
		if strings.HasSuffix(domain, suffix) {
			return false
		}
	}
	return true
}

// isCard checks length and number range of the large issuers (ISO/IEC 7812)
// and the Luhn digit.
func isCard(b []byte) bool {
	digits := onlyDigits(b)
	switch n := len(digits); {
	case digits[0] == '4':
		if n != 13 && n != 16 && n != 19 {
			return false
		}
	case digits[0] == '3' && (digits[1] == '4' || digits[1] == '7'):
		if n != 15 {
			return false
		}
	case digits[0] == '3' && (digits[1] == '0' || digits[1] == '6' || digits[1] == '8'):
		if n != 14 {
			return false
		}
	case n != 16:
		return false
	}
	return luhn(digits) && len(bytes.Trim(digits, string(digits[:1]))) > 0
}

func onlyDigits(b []byte) []byte {
	digits := make([]byte, 0, len(b))
	for _, c := range b {
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	return digits
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

// isIBAN checks the remainder of ISO 13616: letters as numbers from 10, the
// first four characters last, modulo 97 is 1.
func isIBAN(b []byte) bool {
	iban := strings.ReplaceAll(string(b), " ", "")
	if len(iban) < 15 || len(iban) > 34 {
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

// isSSN leaves out numbers that the Social Security Administration never gives.
func isSSN(b []byte) bool {
	area, group, serial := string(b[:3]), string(b[4:6]), string(b[7:])
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}
