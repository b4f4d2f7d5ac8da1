package redact_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

func TestPersonalData(t *testing.T) {
	tests := []struct{ name, text, kind string }{
		{"an address with a plus", "to ann+news@corp.io", "email"},
		{"an address in a country's domain", "ann@firma.co.uk", "email"},
		{"an address behind mailto", "mailto:ann.lee@corp.io?subject=x", "email"},
		{"an international number", "call +49 30 1234567 now", "phone"},
		{"one without separators", "+4915112345678", "phone"},
		{"a British one", "+44 (20) 7946-0958", "phone"},
		{"an American number", "(415) 555-2671", "phone"},
		{"one with hyphens", "415-555-2671", "phone"},
		{"one with dots", "415.555.2671", "phone"},
		{"one with its country code", "+1 415-555-2671", "phone"},
		{"a French number", "au 01 42 68 53 00 svp", "phone"},
		{"a British number", "ring 020 7946 0958", "phone"},
		{"a British mobile", "on 07700 900123", "phone"},
		{"a German number that is announced", "Tel.: 030/1234567", "phone"},
		{"digits that are announced", "phone 4155552671", "phone"},
		{"digits to call", "call us at 4155552671", "phone"},
		{"an address of version 4", "from 81.2.69.142 at", "ip-address"},
		{"one in a URL", "http://81.2.69.142/x", "ip-address"},
		{"one of version 6", "[2a02:6b8:0:1::feed:ff]:443", "ip-address"},
		{"a card without separators", "5555555555554444", "card"},
		{"a card in groups", "4111-1111-1111-1111", "card"},
		{"a Mastercard of the newer range", "2223003122003222", "card"},
		{"an American Express card", "3782 822463 10005", "card"},
		{"a Diners Club card", "30569309025904", "card"},
		{"a Visa card of 19 digits that is announced", "card: 4000000000000000006", "card"},
		{"an IBAN without spaces", "GB82WEST12345698765432", "iban"},
		{"an IBAN in groups", "FR14 2004 1010 0505 0001 3M02 606", "iban"},
		{"the shortest IBAN", "NO9386011117947", "iban"},
		{"a social security number", "536-22-1234", "us-ssn"},
		{"one without hyphens that is announced", "SSN: 536221234", "us-ssn"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, found := redact.New().Bytes([]byte(test.text))
			if len(found) != 1 || found[0].Kind != test.kind || found[0].Count != 1 {
				t.Errorf("%q: got %v, want one %s", test.text, found, test.kind)
			}
		})
	}
}

func TestWhatLooksLikePersonalDataStays(t *testing.T) {
	tests := []struct{ name, text string }{
		{"addresses of documentation", "ann@example.com bob@mail.example.org x@host.invalid"},
		{"a package with a version", "left-pad@1.3.0 @scope/name@2.0.0"},
		{"a repository", "git@github.com:owner/repo.git"},
		{"a picture for dense screens", "logo@2x.png"},
		{"a unit of systemd", "getty@tty1.service"},
		{"a loopback address", "127.0.0.1 ::1"},
		{"private addresses", "10.1.2.3 172.16.9.8 192.168.1.7 fd12:3456:789a::1"},
		{"addresses of documentation ranges", "192.0.2.7 198.51.100.7 203.0.113.7 2001:db8::7"},
		{"a network", "93.184.216.0/24 2a02:6b8::/32"},
		{"a version", "version 81.2.69.142"},
		{"a browser's version", "Chrome/146.0.7.99 Safari/537.36"},
		{"an object identifier", "1.2.840.113549.1.1.11"},
		{"a time", "12:34:56.789 2026-01-02T03:04:05.678901Z"},
		{"a hardware address", "00:1b:44:11:3a:b7"},
		{"a C++ name", "std::vector a::b::c::d"},
		{"a date and a time without separators", "20260102030405"},
		{"a time in milliseconds", "1767322800000"},
		{"an article's number", "4006381333931"},
		{"an identifier of 19 digits", "4115247474741222238"},
		{"a card of no issuer", "1234567890123452"},
		{"a card with a wrong digit", "4111 1111 1111 1112"},
		{"a row of hexadecimal digits", "00 01 02 03 04 05 06 07 08 09"},
		{"a row of decimal digits", "01 12 23 34 45 56 67 78"},
		{"a telephone number of no plan", "+1234567890"},
		{"a short number", "dial 911 or 112"},
		{"a number of bytes",
			"the arguments of a call hold at most 16777216 bytes; called 12345678 times, in 10000000 cells"},
		{"a difference of numbers", "+0012345678"},
		{"an IBAN of a wrong length", "DE8937040044053201300"},
		{"an IBAN with a wrong check", "DE88370400440532013000"},
		{"social security numbers that are never given", "000-12-3456 666-12-3456 912-12-3456 536-00-1234 536-22-0000"},
		{"numbers of forms", "111-11-1111 222-22-2222"},
		{"a part number", "A-123-45-6789-B"},
		{"a UUID of digits", "12345678-1234-4234-8234-123456789012"},
		{"a digest of digits", "12345678901234567890123456789012"},
		{"a book", "ISBN 978-3-16-148410-0"},
		{"a range of pages", "pp. 1234-1298, 2021-2022"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, found := redact.New().Bytes([]byte(test.text)); len(found) > 0 {
				t.Errorf("%q became %q", test.text, got)
			}
		})
	}
}
