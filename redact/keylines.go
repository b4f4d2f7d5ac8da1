package redact

import "bytes"

// derKey matches the beginning of the base64 of a private key: RSA (RFC 8017, A.1.2), PKCS #8 (RFC
// 5958) of RSA, EC and Edwards curves, EC (RFC 5915), OpenSSH.
var derKey = compile(
	`\A(MII[A-Za-z0-9+/]{2,4}A(?:IB|gE)AAK[A-Za-z0-9+/]{20,}={0,2}|` +
		`MII[A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAA[A-Za-z0-9+/]{10,}={0,2}|MHcCAQEE[A-Za-z0-9+/]{30,}={0,2}|` +
		`MI(?:GkAgEBBD|HcAgEBBE)[A-Za-z0-9+/]{30,}={0,2}|MIG[HT]AgEAMBMGByqGSM49[A-Za-z0-9+/]{10,}={0,2}|` +
		`MC4CAQAwBQYDK2Vw[A-Za-z0-9+/]{20,}={0,2}|b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{20,}={0,2})`)

// maxKeyBlock is the length of the longest armoured key that is read.
const maxKeyBlock = 20_000

// keyBlock finds an armoured private key (RFC 7468, RFC 4880). If its last line is missing, it
// extends to the end of the text.
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

// The lengths of lines of keys (RFC 7468; the output of ssh-keygen).
const (
	pemLine = 64
	sshLine = 70
)

// findKeyLines finds lines of a private key without its header. Each must be random base64 with
// exactly the length of a line of a key. Blocks that begin with the header of something public are
// ignored.
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

// isKeyLine reports whether a line is random base64. It must contain + or /, which hexadecimal
// digests do not.
func isKeyLine(line []byte) bool {
	for _, c := range line {
		if !isAlnum(c) && c != '+' && c != '/' {
			return false
		}
	}
	return bytes.ContainsAny(line, "+/") && mixed(line) && entropy(line) >= 4.5 && !monotonous(line)
}
