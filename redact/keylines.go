package redact

import "bytes"

// derKey is how the base64 of a private key begins, whatever stands around it:
// RSA (RFC 8017, A.1.2), PKCS #8 (RFC 5958) of RSA, EC and Edwards curves, EC
// (RFC 5915), OpenSSH.
var derKey = compile(`\A(MII[A-Za-z0-9+/]{2,4}A(?:IB|gE)AAK[A-Za-z0-9+/]{20,}={0,2}|MII[A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAA[A-Za-z0-9+/]{10,}={0,2}|` +
	`MHcCAQEE[A-Za-z0-9+/]{30,}={0,2}|MI(?:GkAgEBBD|HcAgEBBE)[A-Za-z0-9+/]{30,}={0,2}|MIG[HT]AgEAMBMGByqGSM49[A-Za-z0-9+/]{10,}={0,2}|MC4CAQAwBQYDK2Vw[A-Za-z0-9+/]{20,}={0,2}|b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{20,}={0,2})`)

// maxKeyBlock is the longest armoured key that is read.
const maxKeyBlock = 20_000

// keyBlock finds an armoured private key (RFC 7468, RFC 4880). Without its last line it goes to the
// end of the text.
func keyBlock(text []byte, at, _ int) (place, bool) {
	m := keyBegin.FindIndex(text[at:min(len(text), at+100)])
	if m == nil || m[0] != 0 {
		return place{}, false
	}
	stop := min(len(text), at+maxKeyBlock)
	end := stop
	for from := at + m[1]; from < stop; {
		i := bytes.Index(text[from:stop], []byte("-----END"))
		if i < 0 {
			break
		}
		from += i
		if m := keyEnd.FindIndex(text[from:min(len(text), from+100)]); m != nil && m[0] == 0 {
			end = from + m[1]
			break
		}
		from += len("-----END")
	}
	block := text[at:end]
	return place{at, end, 100 + len(block)/4}, isKeyBlock(block)
}

// The lengths of lines of keys (RFC 7468; what ssh-keygen writes).
const (
	pemLine = 64
	sshLine = 70
)

// findKeyLines finds lines of a private key that stand without its head: each
// exactly as long as a key's are, and no readable text. Blocks that begin with
// the head of something public are left alone, as is base64 of other widths.
func findKeyLines(text []byte) []span {
	var spans []span
	public := false
	for start := 0; start < len(text); {
		stop := len(text)
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			stop = start + i
		}
		line := bytes.TrimRight(text[start:stop], "\r")
		switch {
		case bytes.Contains(line, []byte("-----")):
			public = bytes.Contains(line, []byte("-----BEGIN"))
		case !public && (len(line) == pemLine || len(line) == sshLine) && isKeyLine(line):
			spans = append(spans, span{start: start, end: start + len(line), kind: "private-key"})
		}
		start = stop + 1
	}
	return spans
}

// isKeyLine says whether a line is drawn base64 that decodes to no text, and is
// no digest in hexadecimal.
func isKeyLine(line []byte) bool {
	for _, c := range line {
		if !isAlnum(c) && c != '+' && c != '/' {
			return false
		}
	}
	return bytes.ContainsAny(line, "+/") && mixed(line) && entropy(line) >= 4.5 && !monotonous(line)
}
